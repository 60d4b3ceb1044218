"""Pods that should be gone: which of them count, and what is said of them."""

from dataclasses import replace

import pytest

from policy.cluster.deadlines import SPARE, Deadlines
from policy.explain.terminating import (
    command,
    conditions_of_queue,
    conditions_of_quota,
    late_beside,
    sentences,
)
from policy.explain.verdicts import verdict_on
from policy.nodes.tolerations import ALL
from policy.objects.constraints import Taint
from policy.preemption.plans import NoPlan
from policy.preemption.victims import plan
from tests.unit.given import amounts, cluster_of, pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import queue

DUE = 1000.0
"""When the pod that is being deleted has to be gone."""
DOOMED = pod("old", node="n1", terminating=True, deletion_time=DUE)
UNREACHABLE = node(
    "n1", ready=False, reachable=False, taints=(Taint("node.kubernetes.io/unreachable", "", "NoExecute"),)
)


def world(*objects, **options):
    return cluster_of(quota(most={"cpu": 1}), *objects, **options)


def used(cluster):
    return cluster.ledger.account("a").used.get("cpu", 0)


@pytest.mark.parametrize(
    ("on", "now", "counts"),
    [
        (UNREACHABLE, DUE + 299, True),
        (UNREACHABLE, DUE + 300, False),
        (None, DUE + 299, True),
        (None, DUE + 300, False),
        (node("n1"), DUE + 100_000, True),
        (node("n1", unschedulable=True), DUE + 100_000, True),
        (node("n1", ready=False), DUE + 100_000, True),
    ],
    ids=str,
)
def test_a_pod_that_should_be_gone_for_long_counts_unless_its_node_is_lost(on, now, counts):
    cluster = world(DOOMED, *([on] if on else []))
    cluster.leaving.pass_time(now)
    assert used(cluster) == (1000 if counts else 0)
    assert (cluster.check(pod("new")) is None) is not counts


def test_how_long_that_is_can_be_chosen():
    cluster = world(DOOMED, overdue_after=10)
    cluster.leaving.pass_time(DUE + 9)
    assert used(cluster) == 1000
    cluster.leaving.pass_time(DUE + 10)
    assert used(cluster) == 0


def test_its_node_stays_full():
    cluster = world(UNREACHABLE, DOOMED)
    cluster.leaving.pass_time(DUE + 300)
    assert cluster.table.placed("old").site.name == "n1"
    assert cluster.table.used[cluster.table.rows["n1"], cluster.table.columns["cpu"]] == 1000


def test_what_it_uses_of_a_lost_node_is_nothing_that_queues_could_share():
    cluster = world(UNREACHABLE, node("n2"), DOOMED)
    assert cluster.table.capacity(ALL)["cpu"] == 5000
    cluster.leaving.pass_time(DUE + 300)
    assert cluster.table.capacity(ALL)["cpu"] == 4000
    assert cluster.to_be_divided


def test_it_counts_again_when_its_node_is_back_and_no_more_when_that_is_lost_again():
    cluster = world(UNREACHABLE, DOOMED)
    cluster.leaving.pass_time(DUE + 300)
    cluster.upsert_node(node("n1"))
    assert used(cluster) == 1000
    generation = cluster.generations.admission
    cluster.delete_node("n1")
    assert used(cluster) == 0
    assert cluster.generations.admission > generation


def test_seen_again_it_still_does_not_count():
    cluster = world(UNREACHABLE, DOOMED)
    cluster.leaving.pass_time(DUE + 300)
    cluster.upsert_pod(replace(DOOMED, version=7, labels={"x": "y"}), now=1)
    assert used(cluster) == 0
    assert cluster.leaving.overdue.uids() == {"old"}


@pytest.mark.parametrize("end", ["gone", "finished", "not deleted after all"])
def test_when_it_ends_nothing_is_left_of_it(end):
    cluster = world(UNREACHABLE, DOOMED)
    cluster.leaving.pass_time(DUE + 300)
    if end == "gone":
        cluster.delete_pod("old")
    else:
        cluster.upsert_pod(replace(DOOMED, finished=end == "finished", terminating=False, deletion_time=0), now=1)
    assert len(cluster.leaving.overdue) == 0
    assert cluster.leaving.overdue.namespaces() == {}
    assert cluster.leaving.uids == frozenset()
    assert used(cluster) == (1000 if end == "not deleted after all" else 0)


def test_one_whose_deletion_time_is_not_known_is_never_overdue():
    cluster = world(replace(DOOMED, deletion_time=0.0))
    cluster.leaving.pass_time(1e12)
    assert used(cluster) == 1000


def test_it_holds_no_part_of_its_queue_also_if_it_changes_queues():
    cluster = cluster_of(UNREACHABLE, replace(DOOMED, queue="q"))
    cluster.upsert_queue(queue("q"))
    cluster.leaving.pass_time(DUE + 300)
    assert cluster.ledger.queues.account("q").taken == {}
    assert [each.uid for each in cluster.leaving.overdue.in_queue("q")] == ["old"]
    cluster.delete_queue("q")
    cluster.upsert_queue(queue("default"))
    cluster.upsert_pod(replace(DOOMED, queue=""), now=1)
    assert list(cluster.leaving.overdue.in_queue("q")) == []
    assert cluster.ledger.queues.outside == {}


# From whom no room is expected


@pytest.mark.parametrize(("late", "comes"), [(59, True), (60, False)])
def test_no_room_is_expected_of_a_pod_that_does_not_end(late, comes):
    cluster = cluster_of(node(), quota(least={"cpu": 4}), replace(DOOMED, request=amounts(cpu=4) | {"pods": 1}))
    cluster.leaving.pass_time(DUE + late)
    assert (cluster.leaving.uids == {"old"}) is comes
    found = plan(cluster, pod("new"))
    assert isinstance(found, NoPlan)
    assert found.reason == ("waiting" if comes else "protected")


def test_nobody_who_is_being_deleted_already_is_asked_to_go():
    low, new = replace(DOOMED, priority=-1), pod("new", request={"cpu": 4})
    cluster = cluster_of(node(), quota(least={"cpu": 4}), low)
    cluster.leaving.pass_time(DUE + 1000)
    assert isinstance(plan(cluster, new), NoPlan)


# What is said


def said(cluster, one):
    return sentences(cluster, late_beside(cluster, one), lambda seconds: f"{seconds:g}")


def test_who_should_be_gone_is_named_with_since_when_and_what_ends_it():
    cluster = world(UNREACHABLE, DOOMED, pod("new"))
    cluster.leaving.pass_time(DUE - 1)
    assert said(cluster, pod("new")) == []
    ends = "if it is dead for sure, end it: kubectl delete pod old -n a --force --grace-period=0"
    cluster.leaving.pass_time(DUE)
    assert said(cluster, pod("new")) == [
        "a/old is terminating and still holds its quota: it had to be gone by 1000, and its node n1 is unreachable; "
        + ends
    ]
    cluster.leaving.pass_time(DUE + 300)
    cluster.delete_node("n1")
    assert (
        said(cluster, pod("new"))
        == said(cluster, DOOMED)
        == [
            "a/old is terminating and counts for nobody any more: it had to be gone by 1000, and its node n1 is gone; "
            + ends
        ]
    )
    assert said(cluster, pod("new", "b")) == []
    assert "it is overdue" in verdict_on(cluster, "a", "old").message


def test_one_that_does_not_end_on_a_node_that_is_there_is_named_without_a_command():
    cluster = world(node(), DOOMED)
    cluster.leaving.pass_time(DUE + 60)
    assert said(cluster, pod("new")) == [
        "a/old is terminating and still holds its quota: it had to be gone by 1000, and has not ended on node n1"
    ]


def test_of_many_only_the_first_are_named():
    many = [replace(DOOMED, uid=str(at), name=f"p{at}", deletion_time=DUE + at) for at in range(9)]
    cluster = world(*many)
    cluster.leaving.pass_time(DUE + 1000)
    told = said(cluster, pod("new"))
    assert [each.split()[0] for each in told] == ["a/p0", "a/p1", "a/p2", "6"]
    governing = cluster.quotas["a"]["quota"]
    [condition] = conditions_of_quota(cluster, governing, governing)
    assert "9 (a/p0, a/p1, a/p2, …)" in condition.message


def test_a_quota_and_a_queue_have_a_condition_while_pods_of_theirs_are_overdue():
    cluster = world(UNREACHABLE, replace(DOOMED, queue="q"))
    cluster.upsert_queue(queue("q"))
    governing = cluster.quotas["a"]["quota"]
    assert conditions_of_quota(cluster, governing, governing) == []
    cluster.leaving.pass_time(DUE + 300)
    for found in (conditions_of_quota(cluster, governing, governing), conditions_of_queue(cluster, "q")):
        [condition] = [each for each in found if each.type == "OverduePods"]
        assert "1 (a/old)" in condition.message
        assert command(DOOMED) in condition.message
    cluster.upsert_node(node("n1"))
    assert conditions_of_quota(cluster, governing, governing) == []


# Deadlines


def test_names_are_due_in_time_and_once():
    deadlines = Deadlines()
    for name, at in (("b", 2.0), ("a", 1.0), ("c", 3.0), ("d", 1.0)):
        deadlines.set(name, at)
    deadlines.clear("d")
    deadlines.set("c", 1.5)
    assert list(deadlines.over(0.5)) == []
    assert list(deadlines.over(2.0)) == ["a", "c", "b"]
    assert list(deadlines.over(9.0)) == []


def test_what_is_set_anew_again_and_again_takes_no_more_memory():
    deadlines = Deadlines()
    for number in range(10_000):
        deadlines.set(f"{number % 3}", 1e9 + number)
        deadlines.set("gone", 1e9 + number)
        deadlines.clear("gone")
    assert len(deadlines._heap) <= SPARE + 8
