"""What protects a pod from being taken back protects no more than it says, on a real API server and scheduler."""

import pytest

from tests.controlplane.objects import budget_of_none, labelled, lingering, pod, pods
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, right_to_delete
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import ensure_for, evicted, wait_for

OPTED_OUT = {"quotaward.dev/preemptible": "false"}


@pytest.mark.parametrize(
    "bounds", [None, {"max": {"cpu": 100}}, {"min": {"memory": "1Gi"}}], ids=["no quota", "max only", "another min"]
)
def test_who_opts_out_of_eviction_keeps_no_more_of_a_queue_than_it_deserves(
    cluster, quotaward, scheduler, watch, bounds
):
    cluster.node(cpu=4)
    lending = cluster.namespace("lending", cluster.queue("lends"))
    asking = cluster.namespace("asking", cluster.queue("asks"))
    if bounds:
        cluster.quota(lending, **bounds)
    lent, asked = watch(lending), watch(asking)
    for item in pods(4, lending):
        item["metadata"]["annotations"] = OPTED_OUT
        cluster.api.create(item)
    wait_for(lent, bound=4)
    cluster.api.create_all(pods(3, asking))
    wait_until(lambda: (lent.bound, asked.bound) == (2, 2), "each queue has what it deserves")
    ensure_for(3, lambda: len(evicted(lent)) == 2 and not evicted(asked), "it stays so")


@pytest.mark.parametrize("version", ["no.such.group/v1", "apps/v9", "v1"])
def test_an_owner_of_a_kind_that_no_api_server_has_protects_nobody(cluster, scheduler, watch, version):
    cluster.node(cpu=2)
    lending, asking = cluster.namespace("lending"), cluster.namespace("asking")
    cluster.quota(lending, min={"cpu": 0}, max={"cpu": 2})
    cluster.quota(asking, min={"cpu": 2}, max={"cpu": 2})
    lent, asked = watch(lending), watch(asking)
    owner = {"apiVersion": version, "kind": "DaemonSet", "name": "x", "uid": "u", "controller": True}
    for item in pods(2, lending):
        item["metadata"]["ownerReferences"] = [owner]
        cluster.api.create(item)
    wait_for(lent, bound=2)
    cluster.api.create(pod("owner", asking))
    wait_for(asked, bound=1)
    ensure_for(2, lambda: len(evicted(lent)) == 1, "one has gone for it")


def test_a_budget_that_allows_nothing_delays_a_reclaim_and_long_grace_is_cut(cluster, watch):
    cluster.node(cpu=2)
    lending, asking = cluster.namespace("lending"), cluster.namespace("asking")
    cluster.quota(lending, min={"cpu": 0}, max={"cpu": 2})
    cluster.quota(asking, min={"cpu": 2}, max={"cpu": 2})
    lent, asked = watch(lending), watch(asking)
    cluster.api.create(budget_of_none("never", lending, app="lent"))
    with (
        right_to_delete(cluster.api),
        Quotaward(cluster.control_plane, "--reclaim.budget-patience=5", "--reclaim.max-grace=7") as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        cluster.api.create_all(labelled(lingering(item), app="lent") for item in pods(2, lending))
        wait_for(lent, bound=2)
        cluster.api.create(pod("owner", asking))
        wait_until(lambda: quotaward.metric("quotaward_evictions_total", reason="reclaim", outcome="blocked"), "asked")
        ensure_for(3, lambda: not evicted(lent), "the budget is heeded")
        [name] = wait_until(lambda: evicted(lent), "it has been heeded for long enough")

        def grace():
            return cluster.api.get("pods", name, lending)["metadata"].get("deletionGracePeriodSeconds")

        assert wait_until(grace, "it is deleted") == 7
        cluster.api.delete("pods", name, lending, grace=0)
        wait_for(asked, bound=1)
        assert evicted(lent) == {name}
