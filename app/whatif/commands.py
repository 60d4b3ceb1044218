"""Changes as manifests and as shell commands, for people who want to make them."""

import shlex
from collections.abc import Iterable
from typing import Any

import msgspec

from policy.explain.remedy import ObjectChange

PATCHED = {
    "ElasticQuota": "elasticquotas.scheduling.x-k8s.io",
    "Queue": "queues.scheduling.volcano.sh",
    "Job": "jobs.batch",
    "Namespace": "namespaces",
    "Pod": "pods",
}
"""Kinds whose fields kubectl can set as a remedy changes them, by kubectl's name."""


def commands(changes: Iterable[ObjectChange]) -> list[str]:
    """Returns the commands for these changes; none if kubectl is not enough, as for nodes or new pods.

    Also none if the API server would reject a name, which a folder of manifests or a quota's bounds may contain.
    kubectl would read such a name as a flag, or a terminal would run it as a command.
    """
    made = []
    for change in changes:
        if change.name.startswith("-") or change.namespace.startswith("-"):
            return []
        named = [change.name, *(["-n", change.namespace] if change.namespace else [])]
        if change.removed and change.kind == "Pod":
            made.append(shlex.join(["kubectl", "delete", "pod", *named]))
        elif change.kind in PATCHED and change.fields and _can_be_patched(change):
            patch = msgspec.json.encode(nested(change, {})).decode()
            made.append(shlex.join(["kubectl", "patch", PATCHED[change.kind], *named, "--type", "merge", "-p", patch]))
        else:
            return []
    return made if all(command.isprintable() for command in made) else []


def _can_be_patched(change: ObjectChange) -> bool:
    """Whether all its fields can be set. Most of the spec of a pod cannot, once there is one."""
    return all(
        path[:2] == ("metadata", "annotations") or (path[0] == "spec" and change.kind != "Pod")
        for path, _ in change.fields
    )


def nested(change: ObjectChange, document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document with the change's fields set in it."""
    for path, value in change.fields:
        inner: dict[str, Any] = document
        for part in path[:-1]:
            if inner.get(part) is None:  # also if the change removed it: this replaces it
                inner[part] = {}
            inner = inner[part]
        inner[path[-1]] = value
    return document
