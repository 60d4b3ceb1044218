"""A large cluster as a folder of manifests: nodes full of pods, under quotas and in queues."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Object = dict[str, Any]

CROWDED = 50
"""Nodes that have twenty pods more than the others: those that preemption is offered."""
OWNERS = 4
"""Namespaces that are guaranteed more than they use; all others borrow."""


def write(
    directory: Path, nodes: int, pods: int, quotas: int, queues: int, waiting: Iterable[Object] = (), levels: int = 1
) -> None:
    """The cluster as one List in JSON, and some waiting pods."""
    items = [*objects(nodes, pods, quotas, queues, levels), *waiting]
    directory.mkdir(parents=True)
    (directory / "world.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def objects(nodes: int, pods: int, quotas: int, queues: int, levels: int = 1) -> Iterator[Object]:
    """Pods stand evenly on nodes and in namespaces; each namespace has a quota, and half of them a queue.

    Each queue is so many levels below the root, with queues above it that it alone is below.
    """
    yield from map(node, range(nodes))
    for number in range(queues):
        yield from _queues(number, levels)
    for number in range(quotas):
        yield _namespace(number, queues)
        yield _quota(number)
    for number in range(pods):
        yield pod(number, number % quotas, node=f"node-{number % nodes}")
    for number in range(20 * CROWDED if pods else 0):
        yield pod(pods + number, number % quotas, node=f"node-{number % min(nodes, CROWDED)}")


def starving(count: int, promised: str | None = None, cpu: str = "60") -> Iterator[Object]:
    """Pods that starve, each with a node that is reserved for it, and perhaps the promise of a start."""
    for number in range(count):
        waits = pod(4 * 10**6 + number, 3, cpu=cpu)
        yield waits
        meta = waits["metadata"]
        of = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
        spec = {"reason": "Starving", "pod": of, "nodeName": f"node-{number}", "job": meta["name"]}
        status = {"promisedStart": promised, "promisedAt": promised} if promised else {}
        yield _object("quotaward.dev/v1alpha1", "Reservation", {"name": f"starving-{number}"}, spec=spec, status=status)


def node(number: int) -> Object:
    size = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return _object("v1", "Node", {"name": f"node-{number}", "labels": labels}, status={"allocatable": size})


def pod(number: int, namespace: int, node: str = "", cpu: str = "1", **spec: Any) -> Object:
    """A pod of about 4 KB, as they come from a real controller."""
    containers = [
        {
            "name": "main",
            "image": "registry/team/training:2026-11",
            "env": [{"name": f"SETTING_{index}", "value": "x" * 40} for index in range(30)],
            "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
        }
    ]
    name = f"pod-{number}"
    metadata = {
        "name": name,
        "namespace": f"team-{namespace}",
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "labels": {"app": "training", "team": f"team-{namespace}"},
        "annotations": {"example.com/about": "y" * 800},
    }
    status = {"phase": "Running" if node else "Pending"}
    placed = {"nodeName": node} if node else {}
    return _object("v1", "Pod", metadata, spec={"containers": containers, "priority": 0} | placed | spec, status=status)


def _queues(number: int, levels: int) -> Iterator[Object]:
    parent = "root"
    for level in range(levels):
        name = f"queue-{number}" + f"-{level}" * (level < levels - 1)
        spec = {"weight": 1 + number % 5, "guarantee": {"resource": {"cpu": "10"}}, "parent": parent}
        yield _object("scheduling.volcano.sh/v1beta1", "Queue", {"name": name}, spec=spec)
        parent = name


def _namespace(number: int, queues: int) -> Object:
    in_queue = number % 2  # what a queue deserves would protect those whom preemption is to find
    annotations = {"scheduling.volcano.sh/queue-name": f"queue-{number % queues}"} if in_queue else {}
    return _object("v1", "Namespace", {"name": f"team-{number}", "annotations": annotations})


def _quota(number: int) -> Object:
    spec = {"min": {"cpu": "400" if number < OWNERS else "4"}, "max": {"cpu": "800"}}
    metadata = {"name": "quota", "namespace": f"team-{number}"}
    return _object("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", metadata, spec=spec)


def _object(version: str, kind: str, metadata: Object, **rest: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
