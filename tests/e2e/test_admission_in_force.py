"""With all rules of admission in force, those who serve the cluster work as ever, each with the rights that it has."""

import pytest

from tests.controlplane.admission import POLICY, installed
from tests.controlplane.api import read_manifests
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import condition, elastic_quota, job, replica_set
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.e2e.deeds import ALLOWED, QUEUE, SCHEDULER, WEIGHT, limited
from tests.e2e.test_manifests import MANIFESTS, api, second_scheduler, system  # noqa: F401 - fixtures
from tests.e2e.test_quota_manager import ON, hard
from tests.e2e.waiting import wait_for

RULES = read_manifests(MANIFESTS / "admission") + read_manifests(MANIFESTS / "resize")
COUNTS_IN = "quotaward.dev/CountsIn"


@pytest.fixture
def rules(cluster):
    with installed(cluster, RULES):
        yield


@pytest.fixture
def controllers(control_plane):
    """Some of Kubernetes' controllers, each with its own account, as in most clusters."""
    names = ("job-controller", "replicaset-controller", "resourcequota-controller", "namespace-controller")
    with ControllerManager(control_plane, *names, flags=["--use-service-account-credentials"]) as running:
        yield running


def test_jobs_run_pods_move_and_limits_are_written(
    cluster,
    rules,
    controllers,
    second_scheduler,  # noqa: F811
    watch,
    api,  # noqa: F811
):
    cluster.node(cpu=20)
    cluster.queue("from")
    cluster.queue("to", capability={"cpu": 5})
    mover, quota = cluster.namespace("mover", "from"), cluster.namespace("quota")
    api.patch("namespaces", mover, {"metadata": {"annotations": {ALLOWED: "to"}}})
    cluster.quota(quota, max={"cpu": 2})
    moving, bounded = watch(mover), watch(quota)
    with Quotaward(cluster.control_plane, ON) as quotaward, second_scheduler(quotaward.url):
        api.create(replica_set("set", mover, 8, memory="1Gi", schedulerName=SCHEDULER))
        work = job("job", quota, 2)
        work["spec"]["template"]["spec"]["schedulerName"] = SCHEDULER
        api.create(work)
        wait_for(moving, bound=8)
        wait_for(bounded, bound=2)
        wait_until(lambda: hard(api, mover), "the quota manager has written a limit")
        wait_until(
            lambda: api.get("elasticquotas", "quota", quota).get("status", {}).get("used", {}).get("cpu") == "2",
            "what the quota's pods use is written",
            detail=lambda: str(api.get("elasticquotas", "quota", quota)),
        )
        for each in moving.pods:
            api.patch("pods", each["metadata"]["name"], {"metadata": {"annotations": {QUEUE: "to"}}}, mover)
        wait_until(
            lambda: sum(bool(condition(each, COUNTS_IN)) for each in moving.pods) == 3, "it is noted where they count"
        )
        api.create(replica_set("elsewhere", mover, 1, memory="1Gi"))
        wait_until(
            lambda: any("set spec.schedulerName to" in each["message"] for each in api.items("events", mover)),
            "what makes pods for others is told",
        )


def test_a_namespace_with_all_that_is_the_operators_comes_to_its_end(rules, controllers, api):  # noqa: F811
    name = "ends"
    annotations = {QUEUE: "q", ALLOWED: "r"}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
    api.create(elastic_quota(name, max={"cpu": 1}))
    api.create(limited(name, "weight", {WEIGHT: "2"}))
    api.create(limited(name, "quotaward", {"pods": "9"}, **{"quotaward.dev/managed": "true"}))
    api.delete("namespaces", name)
    wait_until(lambda: name not in {each["metadata"]["name"] for each in api.items("namespaces")}, "it is gone")


def test_every_expression_is_of_the_right_types(cluster, rules):
    with ControllerManager(cluster.control_plane, "validatingadmissionpolicy-status-controller"):
        for rule in RULES:
            if rule["kind"] == "ValidatingAdmissionPolicy":
                name = rule["metadata"]["name"]
                checked = wait_until(
                    lambda name=name: cluster.api.get(POLICY, name).get("status"), f"{name} is checked"
                )
                assert checked["typeChecking"] == {}, name
