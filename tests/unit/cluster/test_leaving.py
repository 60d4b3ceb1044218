"""Pods that are on their way out: their room is coming."""

from dataclasses import replace

from tests.unit.cluster.test_reservations import QUOTAS, kept
from tests.unit.given_nodes import node
from tests.unit.preemption.test_victims import me, run, world


def test_victims_of_a_reservation_and_terminating_pods_are_leaving_until_gone():
    cluster = world(node(), *QUOTAS, run("b1"), run("b2", terminating=True), run("b3"), me())
    assert cluster.leaving.uids == {"b2"}
    kept(cluster, "b1")
    assert cluster.leaving.uids == {"b1", "b2"}
    cluster.delete_pod("b1")
    cluster.delete_pod("b2")
    assert cluster.leaving.uids == set()


def test_a_namesake_that_replaces_a_victim_is_not_going():
    cluster = world(node(), *QUOTAS, run("b1", name="web-0"), me())
    kept(cluster, "b1")
    cluster.upsert_pod(run("new", name="web-0"), now=1)
    assert cluster.leaving.uids == set()


def test_room_of_evicted_pods_is_coming_also_when_the_pod_it_was_for_is_replaced():
    cluster = world(node(), *QUOTAS, run("v", "b", 4), me(2))
    kept(cluster, "v")
    assert cluster.leaving.uids == {"v"}
    cluster.leaving.ask_to_go("v")
    cluster.delete_reservation("r")
    assert cluster.leaving.uids == {"v"}
    cluster.leaving.may_stay("v")
    assert cluster.leaving.uids == frozenset()
    cluster.leaving.ask_to_go("v")
    cluster.upsert_pod(replace(cluster.pods["v"], terminating=True), now=0)
    cluster.upsert_pod(replace(cluster.pods["v"], terminating=False), now=0)
    assert cluster.leaving.uids == frozenset()
    cluster.leaving.ask_to_go("v")
    cluster.delete_pod("v")
    assert cluster.leaving.uids == frozenset()
