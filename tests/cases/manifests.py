"""Turns the words of a case into ordinary Kubernetes manifests, as an API server would hand them out."""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Manifest = dict[str, Any]
Words = Mapping[str, Any]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_META = {"age", "labels", "annotations", "uid"}
_ALLOWED = {
    "nodes": {"taints", "unschedulable", "ready"},
    "namespaces": {"queue", "weight", "gated"},
    "elasticQuotas": {"min", "max"},
    "queues": {"weight", "capability", "guarantee", "reclaimable", "priority", "state"},
    "podGroups": {"min"},
    "pdbs": {"selector", "disruptionsAllowed"},
    "pods": {
        *("name", "ns", "node", "priority", "count", "phase", "nominated", "group", "terminating", "due"),
        *("preemptionPolicy", "unschedulable", "gated", "owner", "tolerations"),
    },
}
KINDS = tuple(_ALLOWED)


class UnknownWord(ValueError):
    """A case says something that the format has no word for."""


def translate(given: Words, now: datetime, namespaces: Iterable[str] = ()) -> list[Manifest]:
    """Every object of ``given``; a namespace that is only mentioned is made too, unless it is among ``namespaces``."""
    if unknown := set(given) - set(KINDS):
        raise UnknownWord(f"given: {sorted(unknown)}")
    pods = [pod for words in given.get("pods") or [] for pod in _pods(words, now)]
    made = [
        *_each(given, "nodes", now, _node),
        *(
            manifest
            for name, words in (given.get("namespaces") or {}).items()
            for manifest in _namespace(name, _checked("namespaces", words), now)
        ),
        *_each(given, "elasticQuotas", now, _elastic_quota),
        *_each(given, "queues", now, _queue),
        *_each(given, "podGroups", now, _pod_group),
        *_each(given, "pdbs", now, lambda name, words, now: _budget(name, words, now, pods)),
        *pods,
    ]
    there = {*namespaces, *(given.get("namespaces") or {})}
    mentioned = {manifest["metadata"]["namespace"] for manifest in made if "namespace" in manifest["metadata"]}
    return [manifest for name in sorted(mentioned - there) for manifest in _namespace(name, {}, now)] + made


def seconds(duration: str | float) -> float:
    """``10s``, ``5m``, ``3d``, ``1h30m``; a bare number is seconds."""
    text = str(duration)
    if re.fullmatch(r"(\d+(\.\d+)?[smhd])+", text):
        return sum(float(n) * _SECONDS[unit] for n, unit in re.findall(r"([\d.]+)([smhd])", text))
    return float(text)


def is_resource(word: str) -> bool:
    return word in ("cpu", "memory", "ephemeral-storage") or "/" in word or word.startswith("hugepages-")


def _each(given: Words, kind: str, now: datetime, make: Any) -> Iterator[Manifest]:
    for name, words in (given.get(kind) or {}).items():
        yield make(name, _checked(kind, words), now)


def _checked(kind: str, words: Words | None) -> Words:
    words = words or {}
    resources = kind in ("nodes", "pods")
    for word in words:
        if word in _META or word in _ALLOWED[kind] or (resources and is_resource(word)):
            continue
        if not (kind == "nodes" and word == "pods"):
            raise UnknownWord(f"{kind}: {word}")
    return words


def _metadata(name: str, words: Words, now: datetime) -> Manifest:
    namespace, _, name = name.rpartition("/")
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": words.get("uid") or str(uuid.uuid4()),
        "creationTimestamp": _stamp(now - timedelta(seconds=seconds(words.get("age", 0)))),
        **{
            field: {k: str(v) for k, v in words[field].items()} for field in ("labels", "annotations") if field in words
        },
    }


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _quantities(words: Words) -> dict[str, str]:
    return {resource: str(quantity) for resource, quantity in words.items()}


def _node(name: str, words: Words, now: datetime) -> Manifest:
    room = {"pods": "110"} | _quantities({r: q for r, q in words.items() if is_resource(r) or r == "pods"})
    metadata = _metadata(name, words, now)
    metadata["labels"] = {"kubernetes.io/hostname": name} | metadata.get("labels", {})
    spec: Manifest = {}
    if words.get("unschedulable"):
        spec["unschedulable"] = True
    if words.get("taints"):
        spec["taints"] = words["taints"]
    ready = {"type": "Ready", "status": "True" if words.get("ready", True) else "False", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {"capacity": room, "allocatable": dict(room), "conditions": [ready]},
    }


def _namespace(name: str, words: Words, now: datetime) -> Iterator[Manifest]:
    metadata = _metadata(name, words, now)
    metadata["labels"] = {"kubernetes.io/metadata.name": name} | metadata.get("labels", {})
    if words.get("gated"):
        metadata["labels"]["quotaward.dev/gated"] = "true"
    if "queue" in words:
        metadata.setdefault("annotations", {})["scheduling.volcano.sh/queue-name"] = words["queue"]
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": {"phase": "Active"}}
    if "weight" in words:
        hard = {"volcano.sh/namespace.weight": str(words["weight"])}
        yield {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": _metadata(f"{name}/weight", {}, now),
            "spec": {"hard": hard},
            "status": {"hard": dict(hard)},
        }


def _elastic_quota(namespace: str, words: Words, now: datetime) -> Manifest:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": _metadata(f"{namespace}/{namespace}", words, now),
        "spec": {bound: _quantities(words[bound]) for bound in ("min", "max") if bound in words},
    }


def _queue(name: str, words: Words, now: datetime) -> Manifest:
    spec: Manifest = {"weight": words.get("weight", 1), "reclaimable": words.get("reclaimable", True)}
    if words.get("capability"):
        spec["capability"] = _quantities(words["capability"])
    if words.get("guarantee"):
        spec["guarantee"] = {"resource": _quantities(words["guarantee"])}
    if "priority" in words:
        spec["priority"] = words["priority"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": _metadata(name, words, now),
        "spec": spec,
        "status": {"state": words.get("state", "Open")},
    }


def _pod_group(name: str, words: Words, now: datetime) -> Manifest:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": _metadata(name, words, now),
        "spec": {"minMember": words.get("min", 1)},
    }


def _budget(name: str, words: Words, now: datetime, pods: list[Manifest]) -> Manifest:
    metadata = _metadata(name, words, now)
    selector = {key: str(value) for key, value in words["selector"].items()}
    allowed = words["disruptionsAllowed"]
    healthy = sum(1 for pod in pods if matches(pod, metadata["namespace"], selector) and "nodeName" in pod["spec"])
    wanted = max(0, healthy - allowed)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"minAvailable": wanted, "selector": {"matchLabels": selector}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "expectedPods": healthy,
        },
    }


def matches(pod: Manifest, namespace: str, selector: Mapping[str, str]) -> bool:
    """Whether a budget of ``namespace`` with that selector covers the pod."""
    labels = pod["metadata"].get("labels", {})
    return pod["metadata"]["namespace"] == namespace and selector.items() <= labels.items()


def _pods(words: Words, now: datetime) -> Iterator[Manifest]:
    words = _checked("pods", words)
    if "count" not in words:
        yield _pod(words["name"], words, now)
        return
    for number in range(1, words["count"] + 1):
        uid = {"uid": f"{words['uid']}-{number}"} if "uid" in words else {}
        yield _pod(f"{words['name']}-{number}", {**words, **uid}, now)


def _pod(name: str, words: Words, now: datetime) -> Manifest:
    metadata = _metadata(f"{words['ns']}/{name}", words, now)
    if "group" in words:
        metadata.setdefault("labels", {})["scheduling.x-k8s.io/pod-group"] = words["group"]
    if "owner" in words:
        owner = {"apiVersion": "apps/v1", "kind": words["owner"], "name": name, "uid": name, "controller": True}
        metadata["ownerReferences"] = [owner]
    if words.get("terminating"):  # due: for how long it should have been gone
        due = now - timedelta(seconds=seconds(words["due"])) if "due" in words else now + timedelta(seconds=30)
        metadata |= {"deletionTimestamp": _stamp(due), "deletionGracePeriodSeconds": 30}
    requests = _quantities({word: value for word, value in words.items() if is_resource(word)})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [{"name": "c", "image": "img", "resources": _resources(requests)}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "schedulerName": "default-scheduler",
            **({"nodeName": words["node"]} if "node" in words else {}),
            **({"tolerations": words["tolerations"]} if words.get("tolerations") else {}),
            **({"schedulingGates": [{"name": "quotaward.dev/quota"}]} if words.get("gated") else {}),
            "priority": words.get("priority", 0),
            "preemptionPolicy": words.get("preemptionPolicy", "PreemptLowerPriority"),
        },
        "status": _pod_status(words, metadata["creationTimestamp"], best_effort=not requests),
    }


def _resources(requests: dict[str, str]) -> Manifest:
    extended = {resource: quantity for resource, quantity in requests.items() if "/" in resource}  # need a limit
    return {**({"requests": requests} if requests else {}), **({"limits": extended} if extended else {})}


def _pod_status(words: Words, created: str, *, best_effort: bool) -> Manifest:
    bound = "node" in words
    status: Manifest = {"phase": words.get("phase", "Running" if bound else "Pending")}
    scheduled = {"type": "PodScheduled", "lastProbeTime": None, "lastTransitionTime": created}
    if bound:
        status |= {"startTime": created, "conditions": [scheduled | {"status": "True"}]}
    elif words.get("unschedulable"):
        said = words["unschedulable"]  # what the scheduler says, or just that it does
        message = (
            said
            if isinstance(said, str)
            else "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
        )
        status["conditions"] = [scheduled | {"status": "False", "reason": "Unschedulable", "message": message}]
    if "nominated" in words:
        status["nominatedNodeName"] = words["nominated"]
    return status | {"qosClass": "BestEffort" if best_effort else "Burstable"}
