"""Remedies that work: each is tried on a copy, and completed with what is still missing there, until the pod runs."""

import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any

from app.store.kinds import KINDS
from app.whatif import changes
from app.whatif.changes import Json
from app.whatif.commands import commands, nested
from app.whatif.difference import title
from app.whatif.models import WhatIfRequest
from app.whatif.rendering import node_manifest, pod_manifest
from app.whatif.trial import Scene, Trial, run
from policy.approach import Approach, Change, listed
from policy.approaches import ahead, approaches
from policy.pod import Pod
from policy.queue_approaches import OPENED
from policy.snapshot import copy

MOST = 6
"""Ways that are tried."""
ROUNDS = 5
"""How often a way is completed with what is still missing."""

_FROM = re.compile(r"from \S+ to")


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes with which the pod runs; none, if it does without. ``path`` and ``value`` where it is a single field.

    ``commands`` are the same for a shell, where kubectl is enough for them.
    """

    text: str
    target: str
    path: str
    value: str
    change: WhatIfRequest
    commands: list[str]


class Search:
    """Looks for remedies of one pod. ``found`` has those that were tried and work, also while it goes on."""

    def __init__(self, scene: Scene, pod: Pod) -> None:
        self.found: list[Remedy] = []
        self._scene = scene
        self._namespace, self._name = pod.namespace, pod.name

    def run(self) -> Generator[None, None, None]:
        """Tries what could help, one after the other."""
        otherwise = yield from run(self._scene, ())
        if otherwise.admits(self._namespace, self._name):
            self.found.append(Remedy(self._left_alone(otherwise), "", "", "", WhatIfRequest(), []))
            return
        now = yield from copy(self._scene.taken)
        ways: dict[str, Approach] = {}
        for cluster in (now, otherwise.cluster):  # what the rules compare now, and when all others have had their turn
            pod = cluster.pod(self._namespace, self._name)
            for approach in approaches(cluster, pod) if pod else ():
                ways.setdefault(approach.sort, approach)
        for approach in list(ways.values())[:MOST]:
            remedy = yield from self._complete(approach)
            if remedy is not None:
                self.found.append(remedy)

    def _complete(self, first: Approach) -> Generator[None, None, Remedy | None]:
        parts, made = {first.sort: first}, merged_changes((), first.changes)
        for _ in range(ROUNDS):
            request = request_of(made.values())
            made_now = changes.read(request.apply, request.remove)
            trial = yield from run(self._scene, made_now)
            if trial.admits(self._namespace, self._name):
                return _remedy(list(parts.values()), list(made.values()), request)
            cluster = trial.cluster
            if cluster.pod(self._namespace, self._name) is None:  # it had room, and was evicted again
                cluster = yield from copy(self._scene.taken)
                changes.apply(cluster, made_now, self._scene.taken.now, trial.simulation.time)
            pod = cluster.pod(self._namespace, self._name)
            more = approaches(cluster, pod, ahead(cluster, pod)) if pod else []
            more.sort(key=lambda each: each.sort != first.sort)
            after = next((each for each in more if merged_changes(made.values(), each.changes) != made), None)
            if after is None:
                return None
            made = merged_changes(made.values(), after.changes)
            before = parts.get(after.sort)
            parts[after.sort] = after if before is None else _both(before, after)
        return None

    def _left_alone(self, trial: Trial) -> str:
        pod = trial.cluster.pod(self._namespace, self._name)
        gone = [
            title(each.pod) for each in trial.simulation.evictions if each.for_ and title(each.for_) == title_of(pod)
        ]
        evicted = f", when {listed(gone)} {'is' if len(gone) == 1 else 'are'} evicted for it" if gone else ""
        return f"wait, nothing has to be changed: it gets node {pod.node if pod else ''}{evicted}"


def title_of(pod: Pod | None) -> str:
    """What people call a pod, if there is one."""
    return title(pod) if pod else ""


Changes = dict[tuple[str, str, str], Change]


def merged_changes(made: Iterable[Change], more: Iterable[Change]) -> Changes:
    """Changes, and then more of them: of the same field the later one counts."""
    result = {(each.kind, each.namespace, each.name): each for each in made}
    for change in more:
        key = change.kind, change.namespace, change.name
        known = result.get(key)
        if known is None or change.removed or change.like is not None:
            result[key] = change
        else:
            result[key] = replace(known, fields=tuple((dict(known.fields) | dict(change.fields)).items()))
    return result


def request_of(made: Iterable[Change]) -> WhatIfRequest:
    """The changes as they are asked about, and as kubectl would take them."""
    request = WhatIfRequest(apply=[], remove=[])
    for change in made:
        kind = next(kind for kind in KINDS if change.kind in (kind.name, kind.label))
        named = {"namespace": change.namespace, "name": change.name} if kind.namespaced else {"name": change.name}
        if change.removed:
            request.remove.append({"kind": kind.name, **named})
            continue
        document: Json = {"apiVersion": kind.api_version, "kind": kind.name}
        document |= _new(change.like, change.name) if change.like else nested(change, {"metadata": named})
        request.apply.append(document)
    return request


def _new(like: Any, name: str) -> Json:
    if not isinstance(like, Pod):
        return node_manifest(like)
    new = replace(like, name=name, node="", nominated_node="", unschedulable=None, created=0.0, version=0, owner="")
    manifest = pod_manifest(new)
    del manifest["metadata"]["uid"], manifest["status"]
    return manifest


def _remedy(parts: list[Approach], made: list[Change], request: WhatIfRequest) -> Remedy:
    text, created = listed([part.text for part in parts]), any(part.sort == OPENED for part in parts)
    target = path = value = ""
    if len(made) == 1:
        [change] = made
        kind = next(kind for kind in KINDS if change.kind in (kind.name, kind.label))
        target = f"{kind.name} {change.namespace}/{change.name}" if kind.namespaced else f"{kind.name} {change.name}"
        if len(change.fields) == 1:
            [(where, to)] = change.fields
            path, value = ".".join(where), "" if to is None else str(to)
    return Remedy(text, target, path, value, request, [] if created else commands(made))


def _both(before: Approach, after: Approach) -> Approach:
    """One sentence for what was done twice: a bound that was raised and then raised again, pods and more pods."""
    both = tuple(merged_changes(before.changes, after.changes).values())
    starts = _FROM.findall(before.text)
    if all(change.removed for change in both):
        names = [f"{change.namespace}/{change.name}" for change in both]
        text = f"wait until {', '.join(names)} have ended, or delete them"
    elif starts and len(starts) == len(_FROM.findall(after.text)):
        text = _FROM.sub(lambda _: starts.pop(0), after.text)
    else:
        text = listed([before.text, after.text])
    return Approach(after.sort, text, both)
