"""Capacity: which nodes count for whom depends on what pods tolerate, also before they are on a node."""

from policy.objects.constraints import Constraints, Taint, Toleration
from tests.unit.given import pod
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, queue, world

TOLERANT = Constraints(tolerations=(Toleration("dedicated", "Exists"),))


def with_a_tainted_node():
    cluster = world(queue("q1"), "a:q1", cpu=4)
    cluster.upsert_node(node("tainted", size={"cpu": 8}, taints=(Taint("dedicated", "", "NoSchedule"),)))
    return divided(cluster)


def test_a_tainted_node_counts_for_queues_while_a_pod_in_one_tolerates_it():
    cluster = with_a_tainted_node()
    without = cluster.capacity.for_queues["cpu"]
    cluster.upsert_pod(pod("p", "a", constraints=TOLERANT), now=0)
    assert cluster.capacity.for_queues["cpu"] == without + 8000
    cluster.delete_pod("p")
    assert cluster.capacity.for_queues["cpu"] == without


def test_shares_are_computed_anew_for_a_pod_in_no_queue_that_tolerates_more():
    cluster = with_a_tainted_node()
    cluster.upsert_pod(pod("p", "b", constraints=TOLERANT), now=0)
    assert cluster.to_be_divided
    divided(cluster).delete_pod("p")
    assert cluster.to_be_divided


def test_shares_stay_as_they_are_for_a_pod_in_no_queue_that_tolerates_nothing_new():
    cluster = with_a_tainted_node()
    cluster.upsert_pod(pod("p", "b", constraints=TOLERANT), now=0)
    divided(cluster).upsert_pod(pod("q", "b", constraints=TOLERANT), now=0)
    assert not cluster.to_be_divided
