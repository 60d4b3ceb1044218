"""What a suspended Job counts with is what the API server makes of a pod of its template."""

import httpx
import pytest

from app.store.jobs import JOBS
from app.store.kind import Kind
from app.store.limit_ranges import LIMIT_RANGES
from app.store.pods import PODS, pod_of
from app.store.priority_classes import PRIORITY_CLASSES
from app.store.runtime_classes import RUNTIME_CLASSES
from policy.cluster.cluster import Cluster
from tests.controlplane.objects import Object, job, pod, priority_class
from tests.controlplane.processes import wait_until
from tests.unit.app.given import made

ONE = {"default": {"cpu": "500m"}, "min": {"ephemeral-storage": "1Gi"}, "type": "Container"}
OTHER = {"default": {"memory": "128Mi"}, "defaultRequest": {"memory": "64Mi"}, "type": "Container"}
HIGH, NORMAL = 1000, 7

TEMPLATES = {
    "nothing": {},
    "requests": {"requests": {"cpu": "100m", "memory": "100Mi"}},
    "zero": {"requests": {"cpu": "0"}},
    "limits": {"limits": {"cpu": "2", "example.com/device": "3"}},
    "huge pages": {"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"cpu": "1m"}},
}
PORTS = {"ports": [{"containerPort": 8080}, {"containerPort": 81, "protocol": "UDP"}]}
INIT = {
    "initContainers": [{"name": "init", "image": "x"}, {"name": "sidecar", "image": "x", "restartPolicy": "Always"}]
}
SPECS = {
    "plain": {},
    "init containers": INIT,
    "classes": {"priorityClassName": "high", "runtimeClassName": "vm"},
    "a class of the system": {"priorityClassName": "system-node-critical"},
    "a request of the pod": {"resources": {"requests": {"cpu": "3", "memory": "2Gi"}, "limits": {"cpu": "4"}}} | INIT,
    "the network of the host": {
        "hostNetwork": True,
        "initContainers": [{"name": "sidecar", "image": "x", "restartPolicy": "Always"} | PORTS],
    },
}


@pytest.fixture
def defaults(cluster):
    """A namespace with defaults, and classes."""
    namespace = cluster.namespace()
    vm = made(RUNTIME_CLASSES, "vm", handler="vm", overhead={"podFixed": {"cpu": "250m", "memory": "10M"}})
    normal = priority_class("normal", NORMAL) | {"globalDefault": True, "preemptionPolicy": "Never"}
    ranges = [made(LIMIT_RANGES, f"x{n}", namespace, spec={"limits": [each]}) for n, each in enumerate((ONE, OTHER))]
    for item in (vm, normal, priority_class("high", HIGH), *ranges):
        cluster.api.apply(item)
    for named, priority in (({}, NORMAL), ({"priorityClassName": "high"}, HIGH)):
        asked = pod("p", namespace, cpu=None, **named)
        wait_until(lambda of=asked, is_=priority: _priority(cluster, of) == is_, f"priority {priority} is known")
    yield namespace
    cluster.api.delete("runtimeclasses", "vm")


def real(cluster, item: Object) -> Object:
    """The pod that the API server would create."""
    path = f"/api/v1/namespaces/{item['metadata']['namespace']}/pods"
    return cluster.api.request("POST", path, params={"dryRun": "All"}, json=item)


def _priority(cluster, item: Object) -> int | None:
    """None while the admission of the API server does not know its class."""
    try:
        return real(cluster, item)["spec"]["priority"]
    except httpx.HTTPStatusError as error:
        if error.response.status_code != httpx.codes.FORBIDDEN:
            raise
        return None


def shown(cluster, kind: Kind, namespace: str = "") -> list[Object]:
    return [
        item
        for item in cluster.api.request("GET", kind.path)["items"]
        if item["metadata"].get("namespace", "") == namespace
    ]


def seen(kind: Kind, item: Object):
    return kind.decoder.decode(httpx.Response(200, json=item).content)


@pytest.mark.parametrize("spec", SPECS)
def test_a_job_demands_what_a_pod_of_its_template_has(cluster, defaults, spec):
    mine = Cluster()
    for kind, namespace in ((PRIORITY_CLASSES, ""), (RUNTIME_CLASSES, ""), (LIMIT_RANGES, defaults)):
        for item in shown(cluster, kind, namespace):
            kind.upsert(mine, seen(kind, item), 0.0)
    for number, (title, resources) in enumerate(TEMPLATES.items()):
        name = f"train-{number}"
        given = job(name, defaults, suspend=True)
        given["metadata"]["labels"] = {"quotaward.dev/queued": "true"}
        template = given["spec"]["template"]["spec"]
        template["containers"][0]["resources"] = resources
        template["containers"][0]["ports"] = [{"containerPort": 9090}]
        template |= SPECS[spec]
        created = cluster.api.create(given)
        JOBS.upsert(mine, seen(JOBS, created), 0.0)
        expected = pod_of(seen(PODS, real(cluster, pod(name, defaults) | {"spec": template})))
        found = mine.pods[f"job/{created['metadata']['uid']}"]
        assert found.request == expected.request, title
        assert found.constraints.host_ports == expected.constraints.host_ports, title
        assert (found.priority, found.may_preempt) == (expected.priority, expected.may_preempt), title
