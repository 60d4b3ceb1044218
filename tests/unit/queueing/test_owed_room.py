"""Jobs that wait as a whole, and start without room only where somebody may have to go for them."""

from dataclasses import replace

import pytest

from policy.objects.membership import Namespace
from policy.objects.pod import Pod
from policy.objects.queued_job import PodSet, QueuedJob
from policy.queueing.owed_room import may_go_without_room
from policy.queueing.ungating import UngatingRound
from policy.quota.admission import Rules
from tests.unit.given import pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, queue, world

NODES = [node(f"n{number}", size={"cpu": 4, "pods": 99}) for number in range(2)]


def job(priority=0, cpu=4):
    """A Job of one pod, which needs a whole node, or most of one."""
    template = Pod("", "a", "train", {"cpu": 1000 * cpu, "pods": 1}, priority=priority)
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


@pytest.mark.parametrize(("preemption", "beyond", "starts"), [(True, 1, True), (True, 0, False), (False, 1, False)])
def test_what_a_namespace_has_beyond_its_share_of_the_queue_is_owed_to_a_job(preemption, beyond, starts):
    """Both namespaces are entitled to half of the queue: two Jobs of the one ask for more than that."""
    running = [*on_both_nodes("b", 2), *(pod(f"beyond{n}", "b", node="n1") for n in range(beyond))]
    cluster = world(*NODES, queue("q"), "a:q", "b:q", *running, rules=Rules(fair_share_preemption=preemption))
    cluster.upsert_namespace(Namespace("a", "q", queues_jobs=True))
    cluster.queued_jobs.upsert(replace(job(cpu=3), name="other", uid="other", created=2.0), now=0)
    assert started(cluster, job(cpu=3)) == starts


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


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_resource_that_a_job_does_not_request_is_not_owed_to_it(who):
    """It is within its min of what it requests, and memory is borrowed."""
    borrower = pod("borrower", who, node="n0", request={"memory": 1})
    cluster = world(*NODES, "a:", borrower, *on_both_nodes("without-quota", 1))
    for each in (quota("a", least={"cpu": 4, "memory": 0}), quota("b", least={"memory": 0})):
        cluster.upsert_quota(each)
    assert not started(cluster, job())


def test_in_a_queue_what_a_quota_borrows_of_another_resource_is_not_owed_to_a_job():
    cluster = in_queues(*on_both_nodes("b", 1), pod("borrower", "c", node="n0", request={"memory": 1}))
    cluster.upsert_quota(quota("c", least={"memory": 0}))
    assert not started(cluster, job())


def test_a_pod_may_always_go_for_no_part_of_it_can_run():
    assert may_go_without_room(in_queues(), pod("p", "a"))
