"""A claim that several pods share counts for one of them."""

import pytest

from policy.objects.node import Node
from policy.objects.queue import Queue
from policy.stepwise import at_once
from tests.unit.given import quota
from tests.unit.given_devices import (
    FULL,
    GPU,
    answer,
    claim,
    of_template,
    pod,
    see,
    used,
    with_devices,
)


def test_a_shared_claim_counts_once_and_until_the_last_pod_has_gone():
    cluster = with_devices(quota(most={GPU: 2}), claim("shared", gpu=2))
    for uid in "pqr":
        assert answer(cluster, pod(uid, "a", "shared")) == ""
    see(cluster, *(pod(uid, "a", "shared", node="n") for uid in "pqr"))
    for uid in "pqr":
        assert used(cluster) == 2
        cluster.delete_pod(uid)
    assert used(cluster) == 0


def test_a_claim_that_nobody_holds_counts_for_each_pod_that_asks():
    cluster = with_devices(quota(most={GPU: 1}), claim("shared", gpu=2))
    see(cluster, pod("p", "a", "shared"), pod("q", "a", "shared"))
    assert [answer(cluster, pod(uid, "a", "shared")) for uid in "pq"] == [FULL, FULL]
    assert cluster.check(cluster.pods["q"]).message == FULL


def test_of_two_pods_that_wait_with_a_claim_only_one_demands_it():
    cluster = with_devices(claim("shared", gpu=2), pod("p", "a", "shared"), pod("q", "a", "shared"))
    assert sorted(cluster.pods[uid].request.get(GPU, 0) for uid in "pq") == [0, 2]


def two_queues(big=8, small=0):
    """Queues with so many devices, and a pod in ``big`` that holds a claim for eight of them."""
    cluster = with_devices(claim("c", gpu=8))
    cluster.upsert_node(Node("n", {"cpu": 9000, "pods": 9}))
    for name, capability in (("big", big), ("small", small)):
        cluster.upsert_queue(Queue(name, capability={GPU: capability}))
    at_once(cluster.divide_steps())
    see(cluster, pod("h", "a", "c", queue="big", node="n"))
    return cluster


def used_in(cluster, *queues):
    return [cluster.ledger.queues.account(queue).taken.get(GPU, 0) for queue in queues]


@pytest.mark.parametrize("uid", ["a", "z"])
def test_a_claim_that_another_queue_holds_needs_room_in_the_queue_of_who_asks(uid):
    cluster = two_queues()
    assert GPU in cluster.admit(pod(uid, "a", "c", queue="small"), now=0).resources
    assert answer(cluster, pod(uid, "a", "c", queue="big")) == ""
    assert used_in(cluster, "big", "small") == [8, 0]


@pytest.mark.parametrize("uid", ["a", "z"])
def test_a_claim_counts_in_the_queue_of_its_first_holder_until_that_has_gone(uid):
    cluster = two_queues(small=8)
    see(cluster, pod(uid, "a", "c", queue="small"))
    for _ in range(2):
        assert answer(cluster, pod(uid, "a", "c", queue="small")) == ""
        assert used_in(cluster, "big", "small") == [8, 0]
    see(cluster, pod(uid, "a", "c", of_template("t"), queue="small", node="n"), claim("c", has={"gpu": 8}))
    see(cluster, pod("h", "a", "c", of_template("t"), queue="big", node="n"))
    assert used_in(cluster, "big", "small") == [8, 0]
    cluster.delete_pod("h")
    assert used_in(cluster, "big", "small") == [0, 8]


def test_a_grant_that_ends_gives_the_claim_to_another_holder():
    cluster = with_devices(claim("shared", gpu=2))
    see(cluster, pod("p", "a", "shared"), pod("q", "a", "shared"))
    cluster.admit(pod("p", "a", "shared"), now=0)
    cluster.admit(pod("q", "a", "shared"), now=0)
    cluster.withdraw("p")
    assert used(cluster) == 2
    cluster.withdraw("q")
    assert used(cluster) == 0
