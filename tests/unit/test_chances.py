"""Who waits in vain claims nothing, until something changes that could help."""

import pytest

from policy.constraints import Constraints
from policy.pod import Unschedulable
from tests.unit.given import pod
from tests.unit.given_nodes import node
from tests.unit.given_queues import admitted, deserved, divided, pods, queue, world

NO_PLACE = Unschedulable(
    "Unschedulable", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
)
OURS = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Queue deserved exceeded: cpu.")
ELSEWHERE = Constraints(node_selector=(("disk", "ssd"),))


def cluster_with(one, *others):
    return world(queue("q1"), queue("q2"), "a:q1", "b:q2", one, *pods("b", 9), *others, cpu=8)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"unschedulable": NO_PLACE}, 8),
        ({"unschedulable": OURS}, 4),
        ({}, 4),
        ({"unschedulable": Unschedulable("SchedulerError", "boom")}, 4),
    ],
)
def test_only_who_was_found_no_place_for_by_others_loses_its_claim_in_time(state, expected):
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, **state))
    assert deserved(cluster, "q2") == 4
    cluster.tick(29)
    assert deserved(divided(cluster), "q2") == 4
    cluster.tick(31)
    assert deserved(divided(cluster), "q2") == expected


@pytest.mark.parametrize("state", [{"gated": True}, {"terminating": True}])
def test_who_is_gated_by_others_or_going_claims_nothing(state):
    assert deserved(cluster_with(pod("p", "a", request={"cpu": 4}, **state)), "q2") == 8


def test_in_a_closed_queue_nobody_has_a_claim_until_it_is_open_again():
    cluster = cluster_with(pod("p", "a", request={"cpu": 3}), pod("r", "a", node="n1"))
    for state in ("Closed", "Closing"):
        cluster.upsert_queue(queue("q1", state=state))
        assert [deserved(divided(cluster), name) for name in ("q1", "q2")] == [1, 7]
        assert admitted(cluster, *pods("b", 7)) == [f"b-{number}" for number in range(7)]
        for number in range(7):
            cluster.withdraw(f"b-{number}")
    cluster.upsert_queue(queue("q1"))
    assert [deserved(divided(cluster), name) for name in ("q1", "q2")] == [4, 4]
    assert admitted(cluster, *pods("b", 7)) == [f"b-{number}" for number in range(4)]


def test_the_guarantee_of_a_closed_queue_is_kept():
    cluster = world(queue("q1", kept={"cpu": 3}, state="Closed"), queue("q2"), "b:q2", *pods("b", 9), cpu=8)
    assert admitted(cluster, *pods("b", 9)) == [f"b-{number}" for number in range(5)]


def test_a_node_that_could_take_it_gives_the_claim_back():
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, constraints=ELSEWHERE, unschedulable=NO_PLACE))
    cluster.tick(31)
    assert deserved(divided(cluster), "q1") == 0
    cluster.upsert_node(node("n2", size={"cpu": 1}, labels={"disk": "ssd"}))
    cluster.tick(32)
    assert deserved(divided(cluster), "q1") == 4
    cluster.tick(61)
    assert deserved(divided(cluster), "q1") == 4
    cluster.tick(63)
    assert deserved(divided(cluster), "q1") == 0


def test_a_pod_that_leaves_helps_only_who_could_take_its_place():
    place = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
    cluster = cluster_with(
        pod("p", "a", request={"cpu": 4}, constraints=ELSEWHERE, unschedulable=NO_PLACE),
        pod("other", "a", request={"cpu": 1}, unschedulable=place),
        pod("runs", "b", node="n1"),
    )
    cluster.tick(31)
    assert deserved(divided(cluster), "q1") == 0
    cluster.delete_pod("runs")
    cluster.tick(32)
    assert deserved(divided(cluster), "q1") == 1


def test_who_gets_a_place_is_doubted_no_more():
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, unschedulable=NO_PLACE))
    cluster.tick(31)
    cluster.upsert_pod(pod("p", "a", request={"cpu": 4}), now=32)
    assert deserved(divided(cluster), "q1") == 4
