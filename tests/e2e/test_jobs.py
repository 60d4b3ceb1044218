"""Jobs of Kubernetes whose pods are evicted: which of them fail, and that nobody's does while another would do."""

import pytest

from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.gates import gated_namespace, policy, right_to_open
from tests.controlplane.objects import job, pod
from tests.controlplane.processes import wait_until
from tests.e2e.waiting import bound, ensure_for, evicted, wait_for

IGNORE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
KILLED = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [137]}}


@pytest.fixture
def controllers(control_plane):
    """What makes the pods of Jobs, and counts those that fail."""
    with ControllerManager(control_plane, "job-controller") as running:
        yield running


def failed(cluster, namespace, name):
    """Why a Job has failed; empty if it has not."""
    conditions = cluster.api.get("jobs", name, namespace).get("status", {}).get("conditions", ())
    return next((each["reason"] for each in conditions if each["type"] == "Failed" and each["status"] == "True"), "")


def events(cluster, namespace, reason):
    return [each["message"] for each in cluster.api.items("events", namespace) if each["reason"] == reason]


def evict(cluster, namespace, name):
    """As somebody else would."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    metadata = {"name": name, "namespace": namespace}
    cluster.api.request("POST", path, json={"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})


@pytest.mark.parametrize(
    "spec",
    [{"backoffLimit": 0}, {"podFailurePolicy": {"rules": [KILLED, IGNORE]}}, {"backoffLimit": 1}],
    ids=["backoffLimit 0", "FailJob on 137", "backoffLimit used up"],
)
def test_a_job_that_an_eviction_would_fail_is_spared_and_another_goes_on(cluster, scheduler, controllers, watch, spec):
    """The one that would fail has borrowed as much or more, and its pods are newer: for that they would go first."""
    cluster.node(cpu=6)
    high = cluster.priority("high", 1000)
    fragile, robust, owner = (cluster.namespace(name) for name in ("fragile", "robust", "owner"))
    for namespace, least in ((fragile, 0), (robust, 0), (owner, 6)):
        cluster.quota(namespace, min={"cpu": least}, max={"cpu": 6})
    of_fragile, of_robust, of_owner = watch(fragile), watch(robust), watch(owner)
    cluster.api.create(job("robust", robust, 2, backoffLimit=0, podFailurePolicy={"rules": [IGNORE]}))
    wait_for(of_robust, bound=2)
    cluster.api.create(job("fragile", fragile, 4, **spec))
    wait_for(of_fragile, bound=4)
    if spec == {"backoffLimit": 1}:
        evict(cluster, fragile, min(bound(of_fragile)))
        wait_until(lambda: cluster.api.get("jobs", "fragile", fragile)["status"].get("failed") == 1, "it has failed")
        cluster.api.create(pod("filler", robust, priorityClassName=high))
        wait_until(lambda: "filler" in bound(of_robust), "the node is full again")
    before = evicted(of_fragile)
    cluster.api.create(pod("owner", owner))
    wait_for(of_owner, bound=1)
    ensure_for(2, lambda: evicted(of_fragile) == before and len(evicted(of_robust)) == 1, "one that ignores it went")
    assert failed(cluster, fragile, "fragile") == failed(cluster, robust, "robust") == ""


def test_where_nobody_else_will_do_the_job_fails_and_that_is_said(cluster, quotaward, scheduler, controllers, watch):
    cluster.node(cpu=4)
    borrower, owner = cluster.namespace("borrower"), cluster.namespace("owner")
    cluster.quota(borrower, min={"cpu": 1}, max={"cpu": 4})
    cluster.quota(owner, min={"cpu": 3}, max={"cpu": 4})
    borrowing, owning = watch(borrower), watch(owner)
    cluster.api.create(job("train", borrower, 4, backoffLimit=0))
    wait_for(borrowing, bound=4)
    before = quotaward.metric("quotaward_jobs_failed_by_eviction_total")
    cluster.api.create(pod("owner", owner))
    wait_for(owning, bound=1)
    wait_until(lambda: failed(cluster, borrower, "train"), "the Job has failed")
    wait_for(borrowing, bound=0)
    [said] = wait_until(lambda: events(cluster, borrower, "Reclaimed"), "an Event says who was evicted")
    assert f"evicting it fails Job {borrower}/train" in said
    assert quotaward.metric("quotaward_jobs_failed_by_eviction_total") == before + 1


def test_a_job_with_a_deadline_is_told_of_while_its_pods_wait_at_gates(cluster, scheduler, controllers):
    with policy(cluster), right_to_open(cluster):
        namespace = gated_namespace(cluster)
        cluster.quota(namespace, max={"cpu": 0})
        cluster.api.create(job("slow", namespace, activeDeadlineSeconds=600))
        [said] = wait_until(lambda: events(cluster, namespace, "DeadlineRunsAtGate"), "an Event on the Job says it")
        assert f"its Job {namespace}/slow is ended at " in said
