"""A change as manifests and as commands for a shell, for people who want to make it."""

import shlex
from collections.abc import Iterable
from typing import Any

import msgspec

from policy.explain.remedy import Change

PATCHED = {"ElasticQuota": "elasticquotas.scheduling.x-k8s.io", "Queue": "queues.scheduling.volcano.sh"}
"""Kinds of which kubectl can set what a remedy changes, as it names them."""


def commands(changes: Iterable[Change]) -> list[str]:
    """What makes these changes; nothing where that takes more than kubectl, as nodes or new pods do.

    Nor where a name is none that the API server would take, which may be so in a folder of manifests, or in a quota's
    bounds: kubectl would read it as a flag, or the terminal into which it is pasted as a command of its own.
    """
    made = []
    for change in changes:
        if change.name.startswith("-") or change.namespace.startswith("-"):
            return []
        named = [change.name, *(["-n", change.namespace] if change.namespace else [])]
        if change.removed and change.kind == "Pod":
            made.append(shlex.join(["kubectl", "delete", "pod", *named]))
        elif change.kind in PATCHED and all(path[0] == "spec" for path, _ in change.fields):
            patch = msgspec.json.encode(nested(change, {})).decode()
            made.append(shlex.join(["kubectl", "patch", PATCHED[change.kind], *named, "--type", "merge", "-p", patch]))
        else:
            return []
    return made if all(command.isprintable() for command in made) else []


def nested(change: Change, document: dict[str, Any]) -> dict[str, Any]:
    """The document, with the fields of the change set in it."""
    for path, value in change.fields:
        inner: dict[str, Any] = document
        for part in path[:-1]:
            if inner.get(part) is None:  # also what was to be removed: this is what stands there instead
                inner[part] = {}
            inner = inner[part]
        inner[path[-1]] = value
    return document
