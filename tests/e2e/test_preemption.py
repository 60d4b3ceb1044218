"""Who is evicted on whose behalf, by the scheduler's own preemption."""

import time

from tests.controlplane.objects import pod, pods
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.e2e.waiting import is_being_evicted, wait_for


def test_a_pod_that_its_quota_refuses_evicts_nobody_on_a_full_node(cluster, quotaward, scheduler):
    full, free = cluster.node("full", cpu=4), cluster.node("free", cpu=16)
    high = cluster.priority("high", 1000)
    refused, bystander = cluster.namespace("refused"), cluster.namespace("bystander")
    cluster.quota(refused, max={"cpu": 1})
    cluster.quota(bystander, max={"cpu": 4})
    asked = quotaward.requests("preempt")
    first = pod("first", refused, nodeName=free, priorityClassName=high)  # a less important one would go for its peer
    with PodWatch(cluster.api, bystander) as others, PodWatch(cluster.api, refused) as own:
        cluster.api.create_all([*pods(4, bystander, nodeName=full), first])
        wait_for(others, bound=4)
        wait_for(own, bound=1)
        cluster.api.create(pod("second", refused, priorityClassName=high))
        wait_for(own, bound=1, refused=1)
        # the scheduler did want to evict: it asks only when it has found victims
        wait_until(lambda: quotaward.requests("preempt") > asked, "the scheduler has asked for victims")
        time.sleep(5)  # the time under test
        assert not others.ever(is_being_evicted)
        assert not own.ever(is_being_evicted)
