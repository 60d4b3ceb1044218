"""Running pods are annotated with another queue: they count where they were admitted, also after a restart."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.controlplane.api import Api
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import condition, pods
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import ensure_for, wait_for

OWN, ALLOWED = "scheduling.volcano.sh/queue-name", "quotaward.dev/allowed-queues"
COUNTS_IN = "quotaward.dev/CountsIn"


@contextmanager
def a_tenant(cluster: Cluster, namespace: str) -> Iterator[Api]:
    """Somebody who has Kubernetes' role ``edit`` in a namespace, as it is without what others aggregate to it."""
    rbac, account = "rbac.authorization.k8s.io", {"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}
    cluster.api.create({"apiVersion": "v1", **account, "metadata": {"name": "tenant", "namespace": namespace}})
    for role in ("system:aggregate-to-edit", "system:aggregate-to-view"):
        binding = {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding"}
        binding["metadata"] = {"name": role.replace(":", "-"), "namespace": namespace}
        role_ref = {"apiGroup": rbac, "kind": "ClusterRole", "name": role}
        cluster.api.create(binding | {"roleRef": role_ref, "subjects": [account]})
    tenant = Api(cluster.api.url, cluster.api.ca_file, cluster.api.service_account_token("tenant", namespace))
    try:
        yield tenant
    finally:
        tenant.close()


def test_moving_running_pods_never_fills_a_queue_beyond_its_capability(cluster, watch):
    cluster.node(cpu=20)
    cluster.queue("from")
    cluster.queue("to", capability={"cpu": "5"})
    mover, other = cluster.namespace("mover", "from"), cluster.namespace("other", "to")
    cluster.api.patch("namespaces", mover, {"metadata": {"annotations": {ALLOWED: "to"}}})
    moving, staying = watch(mover), watch(other)

    def allocated(quotaward: Quotaward) -> dict[str, str]:
        queues = quotaward.get("/api/v1/queues")["items"]
        return {each["name"]: each["allocated"].get("cpu", "0") for each in queues}

    def noted() -> list[str]:
        return [found["message"] for each in moving.pods if (found := condition(each, COUNTS_IN))]

    def told(name: str) -> bool:
        return bool(condition(cluster.api.get("queues", name), "Moved"))

    with a_tenant(cluster, mover) as tenant, Quotaward(cluster.control_plane) as quotaward:
        with Scheduler(cluster.control_plane, extender(quotaward.url)):
            cluster.api.create_all([*pods(8, mover), *pods(3, other)])
            wait_for(moving, bound=8)
            wait_for(staying, bound=3)
        for each in moving.pods:
            tenant.patch("pods", each["metadata"]["name"], {"metadata": {"annotations": {OWN: "to"}}}, mover)
        wait_until(lambda: allocated(quotaward) == {"from": "6", "to": "5"}, "as many have moved as there was room for")
        wait_until(
            lambda: noted() == ["from"] * 6, "it is noted on the others where they count", detail=lambda: str(noted())
        )
        wait_until(lambda: told("from") and told("to"), "both queues are told")
        events = [each for each in cluster.api.items("events", mover) if each["reason"] == "Moved"]
        assert all(f"{mover}/" in each["message"] and "queue to" in each["message"] for each in events)
        wait_until(lambda: any(each["reason"] == "Moved" for each in cluster.api.items("events", mover)), "it is told")

        some = moving.pods[0]["metadata"]["name"]
        forged = {"status": {"conditions": [{"type": COUNTS_IN, "status": "True", "message": "elsewhere"}]}}
        with pytest.raises(httpx.HTTPStatusError, match="403"):
            tenant.patch("pods", f"{some}/status", forged, mover)
        [new] = pods(1, mover, prefix="new", nodeName="nowhere")
        assert not condition(tenant.create(new | forged), COUNTS_IN)
        tenant.delete("pods", new["metadata"]["name"], mover, grace=0)

        quotaward.crash()
        quotaward.start()
        ensure_for(2, lambda: allocated(quotaward) == {"from": "6", "to": "5"}, "they count where they did")
        assert noted() == ["from"] * 6

        for each in staying.pods[:2]:
            cluster.api.delete("pods", each["metadata"]["name"], other, grace=0)
        wait_until(lambda: allocated(quotaward) == {"from": "4", "to": "5"}, "two more have moved to where two went")
        wait_until(lambda: noted() == ["from"] * 4, "and have no note any more")
        cluster.api.patch("namespaces", mover, {"metadata": {"annotations": {ALLOWED: None}}})
        wait_until(lambda: allocated(quotaward) == {"from": "8", "to": "1"}, "all are back where the namespace says")
        wait_until(lambda: not noted() and not told("from") and not told("to"), "and nothing is said of it any more")
