"""Disruption budgets: which evictions violate one, as the Eviction API sees it."""

import pytest

from policy.constraints import Requirement, Selector
from policy.disruption import Budget, protecting, violating
from policy.pod import Pod
from tests.unit.given import pod
from tests.unit.given_nodes import labelled

WEB = labelled(app="web")


def web(*uids: str, namespace: str = "a", **labels: str) -> list[Pod]:
    return [pod(uid, namespace, labels={"app": "web"} | labels) for uid in uids]


def budget(
    allowed: int = 0, name: str = "budget", namespace: str = "a", selector: Selector | None = WEB, **rest
) -> Budget:
    return Budget(namespace, name, selector, allowed, **rest)


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
def test_a_budget_protects_what_its_selector_matches_an_empty_one_all_and_an_absent_one_nobody(selector, protects):
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
