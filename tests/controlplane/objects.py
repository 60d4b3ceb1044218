"""The Kubernetes objects that tests create, each with the little that the test is about."""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

Object = dict[str, Any]


GPU = "nvidia.com/gpu"
LINGERS = "tests.quotaward.dev/lingers"
_LARGEST, _SMALLEST = Decimal(2**63 - 1), Decimal("1e-9")
_BEYOND = 30  # powers of ten
_UNITS = {
    name: Decimal(10) ** power for name, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_UNITS |= {f"{name}i": Decimal(2) ** power for name, power in zip("KMGTPE", range(10, 70, 10), strict=True)} | {
    "": Decimal(1)
}
GROUP = "scheduling.x-k8s.io/pod-group"


def node(
    name: str,
    cpu: str | int = 64,
    memory: str = "256Gi",
    pods: int = 500,
    gpus: int = 0,
    taints: Sequence[Object] = (),
    **metadata: Any,
) -> Object:
    size = {"cpu": str(cpu), "memory": memory, "pods": str(pods)} | ({GPU: str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}} | metadata,
        "spec": {"taints": list(taints)},
        "status": {"capacity": size, "allocatable": size},
    }


def pod(
    name: str,
    namespace: str,
    cpu: str | int | None = 1,
    memory: str | None = None,
    gpus: int | None = None,
    **spec: Any,
) -> Object:
    """A pod of one container; further arguments are fields of its spec, as Kubernetes spells them."""
    requests = {key: str(value) for key, value in (("cpu", cpu), ("memory", memory), (GPU, gpus)) if value is not None}
    limits = {GPU: str(gpus)} if gpus is not None else {}  # Kubernetes insists on it
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests, "limits": limits}}],
            "terminationGracePeriodSeconds": 0,
        }
        | spec,
    }


def pods(count: int, namespace: str, prefix: str = "pod", **arguments: Any) -> list[Object]:
    return [pod(f"{prefix}-{number}", namespace, **arguments) for number in range(count)]


def lingering(item: Object) -> Object:
    """The pod, changed so that once deleted it stays terminating, until a test deletes it with grace period 0."""
    item["metadata"].setdefault("annotations", {})[LINGERS] = "true"
    item["spec"]["terminationGracePeriodSeconds"] = 3600
    return item


def labelled(item: Object, **labels: str) -> Object:
    item["metadata"].setdefault("labels", {}).update(labels)
    return item


def replica_set(name: str, namespace: str, replicas: int, **spec: Any) -> Object:
    """A replica set of pods as ``pod`` makes them."""
    template = labelled(pod(name, namespace, **spec), set=name)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": name}},
            "template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]},
        },
    }


def job(name: str, namespace: str, pods: int = 1, cpu: str | int = 1, group: str = "", **spec: Any) -> Object:
    """A Job that keeps so many pods running; ``group`` is their pod group, further arguments are fields of its spec."""
    template = pod(name, namespace, cpu=cpu, restartPolicy="Never", terminationGracePeriodSeconds=1)
    labels = {"labels": {GROUP: group}} if group else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"parallelism": pods, "completions": pods, "template": {"metadata": labels, "spec": template["spec"]}}
        | spec,
    }


def budget_of_none(name: str, namespace: str, **labels: str) -> Object:
    """A disruption budget that never allows an eviction."""
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": labels}}
    return disruption_budget(name, namespace, 0) | {"spec": spec}


def disruption_budget(name: str, namespace: str, min_available: int, **labels: str) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": labels}},
    }


def elastic_quota(namespace: str, name: str = "quota", **bounds: Any) -> Object:
    """An ElasticQuota; ``min`` and ``max`` are mappings of resource names to quantities."""
    spec = {bound: {key: str(value) for key, value in sizes.items()} for bound, sizes in bounds.items()}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def queue(name: str, **spec: Any) -> Object:
    """A Queue of Volcano's; further arguments are fields of its spec."""
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def is_bound(item: Object) -> bool:
    """Whether the pod takes room on a node: it has one, and has not finished."""
    finished = item.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return bool(item["spec"].get("nodeName")) and not finished


def condition(item: Object, kind: str) -> Object:
    """The condition of this type; empty if there is none."""
    found = (entry for entry in item.get("status", {}).get("conditions", ()) if entry["type"] == kind)
    return next(found, {})


def requested(item: Object, resource: str) -> Decimal:
    """What the containers of a pod request together."""
    sizes = (c.get("resources", {}).get("requests", {}).get(resource, "0") for c in item["spec"]["containers"])
    return sum(map(number, sizes), Decimal(0))


@lru_cache(4096)
def number(quantity: str) -> Decimal:
    """The value of a Kubernetes quantity, which is at most what 63 bits hold."""
    digits = quantity.rstrip("numkKMGTPEi")
    value = Decimal(digits)
    if abs(value.adjusted()) > _BEYOND:
        return value and (_LARGEST if value.adjusted() > 0 else _SMALLEST)
    return min(value * _UNITS[quantity[len(digits) :]], _LARGEST)
