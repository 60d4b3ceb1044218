"""Jobs that wait as a whole, and start without room only where somebody may have to go for them."""

from dataclasses import replace

import pytest

from policy.objects.pod import Pod
from policy.objects.queued_job import PodSet, QueuedJob
from policy.queueing.owed_room import may_go_without_room
from policy.queueing.ungating import UngatingRound
from tests.unit.given import pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, queue, world

NODES = [node(f"n{number}", size={"cpu": 4, "pods": 99}) for number in range(2)]


def job(priority=0):
    """A Job of one pod, which needs a whole node."""
    template = Pod("", "a", "train", {"cpu": 4000, "pods": 1}, priority=priority)
    return QueuedJob("a", "train", "uid", (PodSet(template, 1),), 1, suspended=True, created=1.0)


def started(cluster, waiting):
    """Whether a Job is started, though no node has room for one of its pods."""
    namespace = cluster.membership.namespaces["a"]
    cluster.upsert_namespace(replace(namespace, queues_jobs=True))
    cluster.queued_jobs.upsert(waiting, now=0)
    return any(UngatingRound(divided(cluster), 1.0).run(0))


def in_queues(*running, others="b:qb", weight=1):
    """``weight``: that of the queue of ``a``."""
    return world(*NODES, queue("qa", weight), queue("qb"), "a:qa", others, *running)


def on_both_nodes(namespace, each):
    """So many pods of one core on each node."""
    return [
        pod(f"{namespace}{row}{n}", namespace, node=f"n{row}", request={"cpu": 1})
        for row in range(2)
        for n in range(each)
    ]


def test_where_no_queue_has_more_than_it_deserves_a_job_waits_for_a_whole_node():
    cluster = in_queues(*on_both_nodes("b", 1))
    assert not started(cluster, job()), "three cores are free on each node, and both queues have what is theirs"


def test_what_another_queue_has_beyond_its_own_is_owed_to_a_job():
    assert started(in_queues(*on_both_nodes("b", 3)), job())


@pytest.mark.parametrize(("priority", "starts"), [(1, True), (0, False)])
def test_less_important_pods_of_its_own_namespace_go_for_a_job(priority, starts):
    assert started(in_queues(*on_both_nodes("a", 1), weight=3), job(priority=priority)) == starts


def test_within_a_queue_that_admits_a_job_no_namespace_has_more_than_its_share():
    assert not started(in_queues(*on_both_nodes("b", 2), others="b:qa", weight=99), job())


@pytest.mark.parametrize(
    ("least", "used", "starts"),
    [({"cpu": 2}, 1, False), ({"cpu": 2}, 3, True), ({}, 1, True), ({"memory": 1}, 1, True)],
)
def test_what_another_quota_has_beyond_its_min_is_owed_to_a_job_within_its_own(least, used, starts):
    quotas = quota("a", least={"cpu": 4}), quota("b", least=least, most={"cpu": 99})
    cluster = world(*NODES, "a:", *on_both_nodes("b", used))
    for each in quotas:
        cluster.upsert_quota(each)
    assert started(cluster, job()) == starts


@pytest.mark.parametrize(("who", "starts"), [("a", False), ("b", True)])
def test_what_its_own_namespace_borrows_is_not_owed_to_a_job(who, starts):
    """It is within its min of what it requests, and memory is borrowed."""
    borrower = pod("borrower", who, node="n0", request={"memory": 1})
    cluster = world(*NODES, "a:", borrower, *on_both_nodes("without-quota", 1))
    for each in (quota("a", least={"cpu": 4, "memory": 0}), quota("b", least={"memory": 0})):
        cluster.upsert_quota(each)
    assert started(cluster, job()) == starts


def test_a_pod_may_always_go_for_no_part_of_it_can_run():
    assert may_go_without_room(in_queues(), pod("p", "a"))
