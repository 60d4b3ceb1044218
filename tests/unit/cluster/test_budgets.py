"""Disruption budgets: which evictions violate one, as the Eviction API sees it."""

import functools
from random import Random

import pytest

from policy.cluster.budgets import MOST_KEPT, Budget, Budgets
from policy.objects.constraints import Requirement, Selector, matches
from policy.objects.pod import Pod
from policy.preemption.plans import Plan
from policy.preemption.victims import search_steps, victims_on
from policy.stepwise import at_once
from tests.unit.app.test_hot_path import lines_of
from tests.unit.given import cluster_of, pod, quota
from tests.unit.given_nodes import labelled, node

WEB = labelled(app="web")


def web(*uids: str, namespace: str = "a", **labels: str) -> list[Pod]:
    return [pod(uid, namespace, labels={"app": "web"} | labels) for uid in uids]


def budget(
    allowed: int = 0, name: str = "budget", namespace: str = "a", selector: Selector | None = WEB, **rest
) -> Budget:
    return Budget(namespace, name, selector, allowed, **rest)


def all_of(budgets: list[Budget]) -> Budgets:
    found = Budgets()
    for each in budgets:
        found.put(each)
    return found


def violating(victims: list[Pod], budgets: list[Budget]) -> set[str]:
    return all_of(budgets).violating(victims)


def protecting(victim: Pod, budgets: list[Budget]) -> list[Budget]:
    return all_of(budgets).protecting(victim)


@pytest.mark.parametrize(
    ("allowed", "violated"),
    [(3, set()), (2, {"p3"}), (1, {"p2", "p3"}), (0, {"p1", "p2", "p3"}), (-1, {"p1", "p2", "p3"})],
)
def test_a_budget_is_drawn_on_pod_by_pod_and_those_past_it_violate_it(allowed, violated):
    assert violating(web("p1", "p2", "p3"), [budget(allowed)]) == violated


@pytest.mark.parametrize(
    ("selector", "protects"),
    [
        (WEB, True),
        (labelled(app="db"), False),
        (labelled(app="web", tier="front"), False),
        (Selector((Requirement("app", "Exists"),)), True),
        (Selector((Requirement("tier", "DoesNotExist"),)), True),
        (Selector((Requirement("app", "NotIn", ("db",)),)), True),
        (Selector(), True),
        (None, False),
    ],
)
def test_an_empty_selector_of_a_budget_matches_all_and_an_absent_one_nobody(selector, protects):
    assert bool(protecting(web("p")[0], [budget(selector=selector)])) is protects


def test_a_pod_without_labels_is_in_the_budgets_that_ask_for_none():
    others = Selector((Requirement("tier", "DoesNotExist"),))
    assert (
        violating([pod("p")], [budget(selector=others)])
        == violating([pod("p")], [budget(selector=Selector())])
        == {"p"}
    )
    assert violating([pod("p")], [budget()]) == set()


def test_a_budget_protects_pods_of_its_namespace_only():
    assert violating(web("p", namespace="b"), [budget()]) == set()
    assert violating(web("p", namespace="b"), [budget(), budget(namespace="b")]) == {"p"}


def test_budgets_of_one_name_in_two_namespaces_are_two():
    victims = [*web("p1"), *web("p2", namespace="b")]
    assert violating(victims, [budget(1), budget(1, namespace="b")]) == set()


def test_a_pod_in_two_budgets_draws_on_both():
    front = budget(1, "front", selector=labelled(tier="front"))
    victims = web("p1", "p2", tier="front")
    assert violating(victims, [budget(5), front]) == {"p2"}
    assert violating(victims, [budget(0), front]) == {"p1", "p2"}


def test_a_pod_that_violates_two_budgets_counts_once():
    assert violating(web("p", tier="front"), [budget(0), budget(0, "front", selector=labelled(tier="front"))]) == {"p"}


def test_an_eviction_that_was_let_through_already_is_free():
    victims = web("p1", "p2")
    assert violating(victims, [budget(0, disrupted=frozenset({"p1"}))]) == {"p2"}
    assert violating(victims, [budget(1, disrupted=frozenset({"p1"}))]) == set()


def test_without_budgets_nothing_is_violated():
    assert violating(web("p"), []) == set()


# The index

KEYS, VALUES = ("app", "tier", "zone"), ("x", "y", "z")


def some_selector(random: Random) -> Selector | None:
    asked = [
        Requirement(
            random.choice(KEYS),
            operator := random.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt")),
            tuple(random.choices(VALUES, k=random.randrange(3))) if operator in ("In", "NotIn", "Gt") else (),
        )
        for _ in range(random.randrange(4))
    ]
    return None if random.random() < 0.1 else Selector(tuple(asked))


def some_budget(random: Random) -> Budget:
    disrupted = frozenset(random.choices(("p0", "p1", "p2"), k=random.randrange(2)))
    name, namespace = f"b{random.randrange(12)}", random.choice("ab")
    return budget(random.randrange(-1, 4), name, namespace, some_selector(random), disrupted=disrupted)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_changes_the_budgets_of_a_pod_are_those_that_match_it(seed):
    random, budgets, there = Random(seed), Budgets(), dict[tuple[str, str], Budget]()
    pods = [
        pod(f"p{number}", random.choice("ab"), labels={k: random.choice(VALUES) for k in KEYS if random.random() < 0.6})
        for number in range(8)
    ]
    for _ in range(120):
        if random.random() < 0.7:
            each = some_budget(random)
            there[each.namespace, each.name] = each
            budgets.put(each)
        else:
            key = random.choice("ab"), f"b{random.randrange(12)}"
            assert budgets.remove(*key) == there.pop(key, None)
        assert budgets == there
        for each in pods:
            expected = {
                one.name
                for one in there.values()
                if one.namespace == each.namespace
                and each.name not in one.disrupted
                and not any(asked.operator == "Gt" for asked in (one.selector.requirements if one.selector else ()))
                and matches(one.selector, each.labels)
            }
            assert {one.name for one in budgets.protecting(each)} == expected
            assert budgets.protect(each) is bool(expected)
            assert budgets.left().allows(each) == all(there[each.namespace, name].allowed > 0 for name in expected)


def test_budgets_that_are_exhausted_are_passed_over_where_only_open_ones_count():
    budgets = all_of([budget(0), budget(1, "front", selector=labelled(tier="front"))])
    assert budgets.violating(web("p1", "p2", tier="front"), with_exhausted=False) == {"p2"}
    assert budgets.violating(web("p1", "p2"), with_exhausted=False) == set()


def test_what_is_kept_of_labels_is_bounded():
    budgets = all_of([budget(selector=labelled(k="v"))])
    for number in range(2 * MOST_KEPT):
        assert not budgets.protecting(pod("p", labels={"k": str(number)}))
    assert len(budgets._of["a"]._known) <= MOST_KEPT


def test_a_number_beyond_64_bits_is_a_number():
    assert violating(web("p"), [budget(10**30)]) == set()
    assert violating(web("p"), [budget(-(10**30))]) == {"p"}


# A tenant that borrows writes budgets by the hundred

MANY = 500
HOSTILE = {
    "long ones that select nobody": lambda n: (
        *(Requirement(f"z{n}-{i}", "DoesNotExist") for i in range(20)),
        Requirement(f"q{n}", "Exists"),
    ),
    "long ones that nearly select all": lambda n: (
        *(Requirement("app", "In", ("x", f"{n}-{i}")) for i in range(20)),
        Requirement(f"q{n}", "Exists"),
    ),
    "long ones that select all": lambda n: tuple(Requirement(f"z{n}-{i}", "DoesNotExist") for i in range(20)),
    "empty ones": lambda _: (),
    "with many values": lambda n: (Requirement("app", "NotIn", tuple(f"{n}-{i}" for i in range(20))),),
}


def lending(budgets: int, kind: str = "empty ones", nodes: int = 10):
    """Nodes full of borrowers, each labelled otherwise, and a pod whose namespace has lent all of that."""
    cluster = cluster_of(
        *(node(f"n{number}", size={"cpu": 10, "pods": 20}) for number in range(nodes)),
        quota("t", least={"cpu": 0}),
        quota("o", least={"cpu": 10 * nodes}),
        *(
            pod(f"r{number}", "t", node=f"n{number % nodes}", labels={"app": "x", f"k{number}": "v"})
            for number in range(10 * nodes)
        ),
    )
    for number in range(budgets):
        cluster.upsert_budget(budget(0, f"b{number}", "t", Selector(HOSTILE[kind](number))))
    return cluster, pod("w", "o", request={"cpu": 2})


def answer(case):
    cluster, asking = case
    assert victims_on(cluster, asking, [f"n{number}" for number in range(10)])
    assert isinstance(at_once(search_steps(cluster, asking)), Plan)


@functools.cache
def lines_without_budgets():
    return lines_of(answer, lending(0))


@pytest.mark.parametrize("kind", HOSTILE)
def test_many_budgets_make_neither_preempt_nor_a_plan_much_longer(kind):
    assert lines_of(answer, lending(MANY, kind)) <= 3 * lines_without_budgets()
