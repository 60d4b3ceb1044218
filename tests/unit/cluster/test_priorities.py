"""Whether pods have less important ones on nodes in their namespace."""

from dataclasses import replace

from policy.cluster.priorities import Priorities
from policy.stepwise import at_once
from tests.unit.given import cluster_of, pod

LOW, HIGH = pod("low", "a", node="n1"), pod("high", "a", node="n1", priority=5)


def priorities_of(*pods):
    known = Priorities()
    for each in pods:
        known.see(each)
    return known


def test_lower_priorities_are_looked_for_in_one_namespace():
    known = priorities_of(LOW, HIGH)
    assert [known.has_lower("a", priority) for priority in (0, 1, 5)] == [False, True, True]
    assert not known.has_lower("b", 9)


def test_pods_that_wait_are_going_have_ended_or_are_gone_do_not_count():
    gone = replace(LOW, uid="gone")
    others = replace(LOW, node=""), replace(HIGH, terminating=True), replace(HIGH, uid="h2", finished=True)
    known = priorities_of(LOW, LOW, HIGH, gone, *others)
    assert known.has_lower("a", 9)
    known.forget("gone")
    known.forget("gone")
    assert not known.has_lower("a", 9)


def test_a_cluster_keeps_them_also_of_pods_that_are_taken_in_together():
    cluster = cluster_of()
    cluster.upsert_pod(LOW, now=0)
    at_once(cluster.take_in_steps([(replace(LOW, uid="other", namespace="b"), 0.0)]))
    assert cluster.priorities.has_lower("a", 1)
    assert cluster.priorities.has_lower("b", 1)
    cluster.delete_pod("low")
    assert not cluster.priorities.has_lower("a", 1)
