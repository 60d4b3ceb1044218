"""Whatever is lent: nobody borrows what an owner who waits within its min could have, so that it would take it back."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.nodes import fit
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.preemption import victims
from policy.preemption.plans import Plan
from policy.quota.elastic_quota import elastic_quota
from tests.worlds.walk import Pick, by_dice, scaled

NO_PLACE = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
REQUESTS = [{"cpu": 1, "pods": 1}, {"cpu": 2, "pods": 1}, {"cpu": 1, "gpu": 1, "pods": 1}, {"gpu": 1, "pods": 1}]


def a_world(pick: Pick) -> Cluster:
    """One node, three quotas that may be sure of more than it has, pods that run and pods that wait."""
    cluster = Cluster(settle_time=0)
    size = {"cpu": pick((4, 6, 9)), "gpu": pick((1, 2, 4)), "pods": 110}
    cluster.upsert_node(Node("n1", size))
    for namespace in "abc":
        least = pick(({"cpu": 2, "gpu": 1}, {"cpu": 3}, {"gpu": 1, "cpu": 0}, {"cpu": 4, "gpu": 2}, {}))
        cluster.upsert_quota(elastic_quota(namespace, "x", 0.0, least, pick(({}, {}, {"cpu": 5}))))
    for number in range(10):
        pod = Pod(f"p{number}", pick("abcd"), f"p{number}", pick(REQUESTS), created=float(number))
        if pick((True, True, False)):
            placed = fit.fits(cluster.table, pod).any() and cluster.admit(pod, now=0) is None
            cluster.upsert_pod(replace(pod, node="n1" if placed else ""), now=0)
        else:
            said, gated = pick((None, NO_PLACE)), pick((False, False, False, True))
            cluster.upsert_pod(replace(pod, unschedulable=said, gated=gated), now=0)
    for _ in range(pick(range(4))):
        running = [uid for uid, pod in cluster.pods.items() if pod.assigned]
        if running:
            cluster.delete_pod(pick(running))
    for _ in cluster.divide_steps():
        pass
    return cluster


def have_room(cluster: Cluster) -> list[Pod]:
    """The owners' pods that could run now within their min."""
    waiting = [pod for pod in cluster.pods.values() if pod.pending and not pod.gated]
    return [
        pod
        for pod in waiting
        if not cluster.ledger.borrows(pod) and cluster.check(pod) is None and fit.fits(cluster.table, pod).any()
    ]


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_nobody_borrows_what_an_owner_would_take_back_at_once(seed):
    lent = 0
    for number in range(150):
        pick = by_dice(1000 * seed + number)
        cluster = a_world(pick)
        asking = Pod("new", pick("abc"), "new", pick(REQUESTS), created=99.0)
        owners = have_room(cluster)
        if not cluster.ledger.borrows(asking) or not fit.fits(cluster.table, asking).any():
            continue
        if cluster.admit(asking, now=1) is not None:
            continue
        lent += 1
        cluster.upsert_pod(replace(asking, node="n1"), now=1)
        for owner in owners:
            plan = victims.plan(cluster, owner)
            assert not isinstance(plan, Plan) or asking.uid not in {each.uid for each in plan.victims}, number
    assert lent, "there were borrowers at all"
