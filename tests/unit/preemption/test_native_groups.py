"""Native groups: which nodes filter leaves to a member, so that nobody is evicted there who may not be."""

from dataclasses import replace

import pytest

from policy.cluster import waiting_members
from policy.cluster.budgets import Budget
from policy.cluster.leaving import Leaving
from policy.objects.constraints import Constraints
from policy.objects.group import Group
from policy.preemption import native_groups
from policy.preemption.native_groups import NativeGroups
from policy.quota.kept_nodes import PROTECTED
from tests.unit.app.lines import lines_once
from tests.unit.given import pod, quota
from tests.unit.given_gangs import see, seeing
from tests.unit.given_nodes import labelled, node
from tests.unit.given_queues import divided, pods, queue
from tests.unit.given_queues import world as queues_world

ALL = ["n1", "n2", "n3"]
NOBODY: list[str] = []
OWN, OTHER = quota("a", least={"cpu": 12}), quota("own", least={"cpu": 12})
"""The quota of the group, and one whose pods are within their min."""


def group(**rest):
    return Group("a", "g", 2, native=True, **rest)


def members(count=2, cpu=3, **rest):
    return [pod(f"g{each}", "a", group="g", request={"cpu": cpu}, **({"priority": 10} | rest)) for each in range(count)]


def borrows(name, on, cpu=4, **rest):
    return pod(name, "lent", request={"cpu": cpu}, node=on, **rest)


def owns(name, on, cpu=4, **rest):
    return pod(name, "own", request={"cpu": cpu}, node=on, **rest)


def world(*objects, nodes=3, **options):
    found = [node(name) for name in ALL[:nodes]]
    return seeing(*found, OWN, OTHER, quota("lent", most={"cpu": 50}), group(), *objects, **options)


def offer(cluster, *asking, native=None, offered=ALL, **options):
    """The nodes that each of these may go to, asked for one after the other."""
    native, found = native or NativeGroups(), []
    for each in asking:
        names = [name for name in offered if cluster.table.node(name) is not None]
        answer = cluster.filter(each, 0, lambda names=names: names)
        if native.concerns(cluster, each, answer):
            answer = native.narrow(cluster, each, answer, names, **options)
        found.append([] if answer.refused else [name for name in names if name not in answer.failed])
    return found


STORIES = {  # pods on nodes of four cores; where each of two members of three cores may go
    "borrowers may go": ([borrows("o1", "n1"), borrows("o2", "n2"), borrows("o3", "n3")], [ALL, ALL]),
    "one of three is protected": (
        [owns("o1", "n1"), borrows("o2", "n2"), borrows("o3", "n3")],
        [["n2", "n3"], ["n2", "n3"]],
    ),
    "all are protected": ([owns("o1", "n1"), owns("o2", "n2"), owns("o3", "n3")], [NOBODY, NOBODY]),
    "one node is free": ([owns("o1", "n1"), owns("o2", "n2")], [["n3"], ["n3"]]),
    "one of two on a node is protected": (
        [borrows("o1", "n1", 3), owns("p", "n1", 1), borrows("o2", "n2"), owns("o3", "n3")],
        [["n2"], ["n2"]],
    ),
    "those that leave anyway need no leave": (
        [owns("o1", "n1", terminating=True), owns("o2", "n2"), owns("o3", "n3")],
        [["n1"], ["n1"]],
    ),
}


@pytest.mark.parametrize(("pods", "open_to"), STORIES.values(), ids=STORIES)
def test_a_member_may_go_where_whoever_is_less_important_may_be_evicted(pods, open_to):
    assert offer(world(*pods, members()), *members()) == open_to


def test_a_member_without_a_node_holds_no_grant_and_the_rule_is_named():
    cluster, native = world(owns("o1", "n1"), members(), nodes=1), NativeGroups()
    [first, _] = members()
    answer = native.narrow(cluster, first, cluster.filter(first, 0, lambda: ["n1"]), ["n1"])
    assert (answer.refused.rule, answer.failed) == (PROTECTED.name, {"n1": PROTECTED})
    assert first.uid not in cluster.grants


def test_members_let_in_before_take_of_the_free_room_beside_a_protected_pod():
    both = members(cpu=2)
    cluster = world(owns("o6", "n1", 1), both, nodes=1)
    native = NativeGroups()
    assert offer(cluster, *both, native=native) == [["n1"], NOBODY]
    assert offer(cluster, *both, native=native) == [["n1"], NOBODY]


def test_members_that_were_not_seen_yet_count_towards_the_minimum():
    first, second = members(cpu=2)
    cluster, native = world(owns("o6", "n1", 1), first, nodes=1), NativeGroups()
    assert offer(cluster, first, native=native) == [["n1"]]
    see(cluster, second)
    assert offer(cluster, second, native=native) == [NOBODY]


def test_free_room_beside_protected_pods_is_given_to_as_many_members_as_fit():
    four = members(4, cpu=1)
    found = offer(world(owns("p1", "n1", 2), owns("p2", "n2", 2), four, nodes=2), *four)
    assert sorted(found) == [["n1"], ["n1"], ["n2"], ["n2"]]


def test_the_pods_on_all_nodes_together_stay_within_their_min():
    lent = [pod(f"o{each}", "lent", request={"cpu": 4}, node=f"n{each}") for each in (1, 2, 3)]
    cluster = world(*lent, members())
    see(cluster, quota("lent", least={"cpu": 8}, most={"cpu": 50}))
    first, second = offer(cluster, *members())
    assert len(first) == 1
    assert second == first


def test_nodes_emptied_for_members_before_count_although_they_are_not_offered_again():
    lent = [pod(f"o{each}", "lent", request={"cpu": 4}, node=f"n{each}") for each in (1, 2, 3)]
    cluster, native = world(*lent, members()), NativeGroups()
    see(cluster, quota("lent", least={"cpu": 8}, most={"cpu": 50}))
    one, other = members()
    assert offer(cluster, one, native=native, offered=["n1"]) == [["n1"]]
    assert offer(cluster, other, native=native, offered=["n2", "n3"]) == [NOBODY]


def test_pods_on_a_node_that_stays_closed_do_not_count_as_evicted():
    beside = [borrows("o1", "n1", 3), owns("p1", "n1", 1)]
    cluster = world(*beside, borrows("o2", "n2", 4), members(), nodes=2)
    see(cluster, quota("lent", least={"cpu": 4}, most={"cpu": 50}))
    assert offer(cluster, *members()) == [["n2"], ["n2"]]


def test_a_gang_that_needs_its_member_keeps_it():
    needed = [borrows(f"m{each}", "n1", 2, group="h") for each in (1, 2)]
    cluster = world(Group("lent", "h", 2), *needed, members(), nodes=1)
    assert offer(cluster, *members()) == [NOBODY, NOBODY]


def test_budgets_are_respected_where_the_settings_say_so():
    cluster = world(borrows("o1", "n1", labels={"app": "web"}), members(), nodes=1)
    cluster.upsert_budget(Budget("lent", "b", labelled(app="web"), 0))
    assert offer(cluster, *members()) == [["n1"], ["n1"]]
    assert offer(cluster, *members(), respect_budgets=True) == [NOBODY, NOBODY]


@pytest.mark.parametrize(
    "both",
    [members(may_preempt=False), members(priority=0), [pod("alone", "a", priority=10)]],
    ids=["never preempts", "nobody is less important", "no native group"],
)
def test_a_pod_for_which_nobody_is_evicted_unasked_may_go_anywhere(both):
    assert offer(world(owns("o1", "n1"), both, nodes=1), *both) == [["n1"]] * len(both)


def test_nobody_is_evicted_where_it_is_undecidable_whether_that_helps():
    both = members(constraints=Constraints(undecidable=("a volume",)))
    assert offer(world(borrows("o1", "n1"), both, nodes=1), *both) == [NOBODY, NOBODY]


@pytest.mark.parametrize("bound", ["MOST_LOOKED_AT", "MOST_TRIED", "MOST_MEMBERS"])
def test_beyond_what_is_looked_at_nobody_is_evicted(monkeypatch, bound):
    monkeypatch.setattr(native_groups, bound, -1 if bound == "MOST_LOOKED_AT" else 0)
    assert offer(world(borrows("o1", "n1"), members(), nodes=1), *members()) == [NOBODY, NOBODY]


def test_nodes_without_pods_count_towards_what_is_looked_at(monkeypatch):
    monkeypatch.setattr(native_groups, "MOST_LOOKED_AT", 1)
    assert offer(world(members()), members()[0]) == [["n1", "n2"]]


def test_who_leaves_is_worked_out_as_often_for_many_nodes_as_for_one(monkeypatch):
    worked_out, uids = [], Leaving.uids
    monkeypatch.setattr(Leaving, "uids", property(lambda leaving: worked_out.append(1) or uids.fget(leaving)))
    numbers = []
    for offered in (["n1"], ALL):
        cluster = world(*(borrows(f"o{name}", name) for name in ALL), members())
        worked_out.clear()
        assert offer(cluster, members()[0], offered=offered) == [offered]
        numbers.append(len(worked_out))
    assert numbers[0] == numbers[1]


def test_evictions_for_members_before_count_towards_what_is_tried(monkeypatch):
    lent = [borrows("o1", "n1"), borrows("o2", "n2")]
    first, second = members()
    assert offer(world(*lent, members(), nodes=2), first, second) == [["n1", "n2"]] * 2
    monkeypatch.setattr(native_groups, "MOST_TRIED", 1)
    assert offer(world(*lent, members(), nodes=2), first, second) == [["n1"], ["n1"]]


def test_members_and_groups_whose_grants_have_ended_are_forgotten():
    cluster, native = world(borrows("o1", "n1"), members()), NativeGroups()
    first, second = members()
    offer(cluster, first, native=native)
    cluster.withdraw(first.uid)
    offer(cluster, second, native=native)
    assert {key: [*there._passed] for key, there in native._let_through.items()} == {("a", "g"): [second.uid]}
    cluster.withdraw(second.uid)
    see(cluster, Group("a", "h", 1, native=True), other := pod("h0", "a", group="h", request={"cpu": 3}, priority=10))
    offer(cluster, other, native=native)
    assert list(native._let_through) == [("a", "h")]


def test_an_answer_takes_no_longer_for_more_members_than_may_evict(monkeypatch):
    monkeypatch.setattr(native_groups, "MOST_MEMBERS", 5)

    def lines(number):
        there = members(number, cpu=1)
        cluster, native = world(owns("o1", "n1", 1), there), NativeGroups()
        for each in there[1:]:
            offer(cluster, each, native=native, offered=["n1"])
        answer = cluster.filter(there[0], 0, lambda: ["n1"])
        return lines_once(native.narrow, cluster, there[0], answer, ["n1"])

    assert lines(60) == lines(20)


def test_free_room_is_for_all_members_by_the_largest_of_them():
    small, large = members(2)
    large = replace(large, request=large.request | {"cpu": 4000})
    for number, both in ((2, [small, replace(large, request=small.request)]), (1, [small, large])):
        cluster = world(node("n1", size={"cpu": 7, "pods": 99}), owns("o1", "n1", 1), both, nodes=0)
        assert len([each for each in offer(cluster, *both, offered=["n1"]) if each]) == number


def test_members_that_request_too_many_different_things_get_free_room_one_by_one(monkeypatch):
    monkeypatch.setattr(waiting_members, "MOST_AMOUNTS", 1)
    assert offer(world(owns("o1", "n1", 1), members(2, cpu=1), nodes=2), *members(2, cpu=1)) == [["n2"], ["n2"]]
    assert offer(world(owns("o1", "n1", 1), members(2, cpu=1), nodes=1), *members(2, cpu=1)) == [["n1"], ["n1"]]


@pytest.mark.parametrize(("held", "open_to"), [(3, ["n1"]), (4, NOBODY)])
def test_a_group_that_goes_beyond_its_departments_part_takes_nothing_outside(held, open_to):
    """Each pod on the node borrows, and may go for members whose department has room within its part for all."""
    company = queue("A"), queue("a1", parent="A"), queue("a2", parent="A"), queue("B"), queue("b1", parent="B")
    nodes = [node(name, size={"cpu": cpu, "pods": 99}) for name, cpu in (("n1", 2), ("n2", 14))]
    lent = *pods("z", 2, node="n1"), *pods("z", 8, 2, node="n2"), *pods("y", held, node="n2")
    those = [pod(f"g{each}", "x", group="g", request={"cpu": 1}, priority=10) for each in range(2)]
    cluster = queues_world(*company, queue("C"), "x:a1", "y:a2", "z:b1", "c:C", *nodes, *lent, *pods("c", 16), *those)
    cluster.upsert_group(Group("x", "g", 2, native=True))
    divided(cluster)
    assert offer(cluster, those[0], offered=["n1"]) == [open_to]


def test_afterwards_the_ledger_is_as_it_was():
    cluster = world(borrows("o1", "n1"), borrows("o2", "n2"), owns("o3", "n3"), members())
    used = {each: dict(cluster.ledger.account(each).used) for each in ("lent", "own")}
    offer(cluster, *members())
    assert {each: dict(cluster.ledger.account(each).used) for each in ("lent", "own")} == used
    assert cluster.ledger.account("a").used["cpu"] == 6000
