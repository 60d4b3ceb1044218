"""Tries remedies on a copy, and completes each with what is still missing, until the pod runs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.problems import Problem
from app.store.kinds import KINDS
from app.store.pods import PODS
from app.whatif import changes
from app.whatif.changes import Json
from app.whatif.commands import commands, nested
from app.whatif.models import WhatIfRequest
from app.whatif.rendering import node_manifest, pod_manifest
from app.whatif.trial import Scene, Trial, run_steps
from app.whatif.undoing import Meanwhile
from policy.cluster.cluster import Cluster
from policy.explain.queue_remedies import OPENED
from policy.explain.remedies import ahead, remedies_steps
from policy.explain.remedy import ObjectChange, Remedy, listed
from policy.explain.verdicts import verdict_on
from policy.nodes import fit
from policy.objects.pod import Pod
from policy.preemption import victims
from policy.preemption.plans import Plan
from policy.stepwise import Steps

MOST = 6
"""Maximum number of remedies that are tried."""
ROUNDS = 5
"""Maximum number of times that a remedy is completed with what is still missing."""

_FROM = re.compile(r"from \S+ to")


Changes = dict[tuple[str, str, str], ObjectChange]
"""Changes by kind, namespace and name."""
NOTHING = ""
"""The sort of the remedy that changes nothing."""
WITH_ALL, ALONE, UNTRIED = "with-all", "alone", "no"
"""Ways to try a remedy: with all other waiting pods, with this pod (or its gang) alone, or not at all."""


@dataclass(frozen=True, slots=True)
class TriedRemedy:
    """Changes with which the pod runs; none if it runs without. ``path`` and ``value`` if it is a single field.

    ``commands`` make the changes in a shell, if kubectl is enough. ``tried`` is WITH_ALL, ALONE (the pod runs if no
    other waiting pod comes before it) or UNTRIED (the numbers suggest it).
    """

    text: str
    target: str
    path: str
    value: str
    change: WhatIfRequest
    commands: list[str]
    tried: str = WITH_ALL

    @property
    def changes_nothing(self) -> bool:
        """Whether the pod runs by waiting alone."""
        return not (self.change.apply or self.change.remove)


class RemedySearch:
    """Searches for remedies of one pod. First it finds what is enough for the pod (or its gang) alone.

    Then it simulates everything that follows from each change, which takes long if many pods wait.
    """

    def __init__(self, scene: Scene, pod: Pod) -> None:
        self._scene = scene
        self._namespace, self._name = pod.namespace, pod.name
        self._ways: dict[str, Remedy] = {}
        self._alone: dict[str, TriedRemedy | None] = {}
        self._with_all: dict[str, TriedRemedy | None] = {}
        self.complete = False

    @property
    def found(self) -> list[TriedRemedy]:
        """The remedies found so far, also during the search, with what each was tried with."""
        known: dict[str, TriedRemedy | None] = {}
        if not self.complete and NOTHING not in self._alone:
            known |= {sort: _remedy([way], way.changes, tried=UNTRIED) for sort, way in self._ways.items()}
        known |= self._alone | self._with_all
        return [remedy for remedy in known.values() if remedy is not None]

    def run_steps(self) -> Steps[None]:
        """Tries the possible remedies one by one."""
        cluster = yield from self._scene.copy_steps()
        yield from self._add_ways_steps(cluster)
        pod = cluster.pod(self._namespace, self._name)
        if pod is not None and fit.unlisted(cluster.table, pod) and cluster.check(pod) is None:
            self._ways, self.complete = {}, True  # no rule refuses it, and the rest cannot be judged from here
            return
        if pod is not None and (yield from runs_alone_steps(cluster, pod)):
            text = "wait, nothing has to be changed for this pod alone"
            self._alone = {NOTHING: TriedRemedy(text, "", "", "", WhatIfRequest(), [], ALONE)}
        else:
            for remedy in list(self._ways.values()):
                if _can_be_taken_back(cluster, remedy.changes):
                    self._alone[remedy.sort] = yield from self._enough_alone_steps(cluster, remedy)
        otherwise = yield from run_steps(self._scene, ())
        if otherwise.admits(self._namespace, self._name):
            text = self._left_alone(otherwise)
            self._ways, self._alone = {}, {}
            self._with_all = {NOTHING: TriedRemedy(text, "", "", "", WhatIfRequest(), [])}
        else:
            self._alone.pop(NOTHING, None)
            yield from self._add_ways_steps(otherwise.cluster)  # after all other pods have had their turn
            for remedy in self._ways.values():
                self._with_all[remedy.sort] = yield from self._complete_steps(remedy)
        self.complete = True

    def _add_ways_steps(self, cluster: Cluster) -> Steps[None]:
        pod = cluster.pod(self._namespace, self._name)
        for remedy in (yield from remedies_steps(cluster, pod)) if pod else ():
            if len(self._ways) < MOST:
                self._ways.setdefault(remedy.sort, remedy)

    def _enough_alone_steps(self, cluster: Cluster, first: Remedy) -> Steps[TriedRemedy | None]:
        """Returns what is enough on a static cluster, where no other pod is placed; None if nothing is.

        Restores the cluster before it ends.
        """
        parts, made, now = {first.sort: first}, merged_changes((), first.changes), self._scene.taken.now
        for _ in range(ROUNDS):
            meanwhile = Meanwhile(cluster, now, now + self._scene.epoch)
            try:
                yield from meanwhile.make_steps(_read(made.values()))
                yield from cluster.divide_steps()
                pod = cluster.pod(self._namespace, self._name)
                enough = pod is not None and (yield from runs_alone_steps(cluster, pod))
                more = (yield from remedies_steps(cluster, pod)) if pod and not enough else []
            except Problem:
                enough, more = False, []  # a change that cannot be made does not help
            yield from meanwhile.take_back_steps()
            if enough:
                return _remedy(list(parts.values()), list(made.values()), tried=ALONE)
            more = [each for each in more if _can_be_taken_back(cluster, each.changes)]
            if not _go_on(parts, made, _next(first, made, more)):
                return None
        return None

    def _complete_steps(self, first: Remedy) -> Steps[TriedRemedy | None]:
        """Returns what is enough after all others had their turn and all effects have followed; None if nothing is."""
        parts, made = {first.sort: first}, merged_changes((), first.changes)
        for _ in range(ROUNDS):
            try:
                made_now = _read(made.values())
                trial = yield from run_steps(self._scene, made_now)
            except Problem:
                return None  # a change that cannot be made does not help
            if trial.admits(self._namespace, self._name):
                return _remedy(list(parts.values()), list(made.values()), tried=WITH_ALL)
            cluster = trial.cluster
            if cluster.pod(self._namespace, self._name) is None:  # it was placed, and evicted again
                cluster = yield from self._scene.copy_steps()
                changes.apply(cluster, made_now, self._scene.taken.now, trial.simulation.time)
            pod = cluster.pod(self._namespace, self._name)
            more = (yield from remedies_steps(cluster, pod, ahead(cluster, pod))) if pod else []
            if not _go_on(parts, made, _next(first, made, more)):
                return None
        return None

    def _left_alone(self, trial: Trial) -> str:
        pod = trial.cluster.pod(self._namespace, self._name)
        gone = [each.pod.title for each in trial.simulation.evictions if each.for_ and each.for_.title == title_of(pod)]
        evicted = f", when {listed(gone)} {'is' if len(gone) == 1 else 'are'} evicted for it" if gone else ""
        return f"wait, nothing has to be changed: it gets node {pod.node if pod else ''}{evicted}"


def runs_alone_steps(cluster: Cluster, pod: Pod) -> Steps[bool]:
    """Whether a waiting pod would run if it were tried next: nodes have room, or evictions make it."""
    if verdict_on(cluster, pod.namespace, pod.name).outcome != "admissible":
        return False
    if fit.fits(cluster.table, pod).any():
        return True
    if not cluster.is_governed(pod) or cluster.gangs.is_waiting(pod):
        return False
    return isinstance((yield from victims.search_steps(cluster, pod)), Plan)


def _read(made: Iterable[ObjectChange]) -> list[changes.Change]:
    """Converts the changes to those of manifests. Raises Problem (422)."""
    request = what_if_request(made)
    return changes.read(request.apply, request.remove)


def _can_be_taken_back(cluster: Cluster, made: Iterable[ObjectChange]) -> bool:
    """Whether no changed pod holds a grant, which would be lost."""
    pods = (cluster.pod(each.namespace, each.name) for each in made if each.kind == PODS.name)
    return not any(pod is not None and pod.uid in cluster.grants for pod in pods)


def _go_on(parts: dict[str, Remedy], made: Changes, after: Remedy | None) -> bool:
    """Adds the next remedy to the changes so far; returns whether there is one."""
    if after is None:
        return False
    more = merged_changes(made.values(), after.changes)
    made.clear()
    made.update(more)
    before = parts.get(after.sort)
    parts[after.sort] = after if before is None else _both(before, after)
    return True


def _next(first: Remedy, made: Changes, more: list[Remedy]) -> Remedy | None:
    """Returns what to add to changes that are not enough, preferring more of the same sort."""
    more.sort(key=lambda each: each.sort != first.sort)
    return next((each for each in more if merged_changes(made.values(), each.changes) != made), None)


def title_of(pod: Pod | None) -> str:
    """Returns a pod's name for people; empty for no pod."""
    return pod.title if pod else ""


def merged_changes(made: Iterable[ObjectChange], more: Iterable[ObjectChange]) -> Changes:
    """Merges changes with later ones; a later change of the same field replaces the earlier."""
    result = {(each.kind, each.namespace, each.name): each for each in made}
    for change in more:
        key = change.kind, change.namespace, change.name
        known = result.get(key)
        if known is None or change.removed or change.like is not None:
            result[key] = change
        else:
            result[key] = replace(known, fields=tuple((dict(known.fields) | dict(change.fields)).items()))
    return result


def what_if_request(made: Iterable[ObjectChange]) -> WhatIfRequest:
    """Returns the changes as a what-if request, in the form that kubectl takes."""
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


def _remedy(parts: Sequence[Remedy], made: Sequence[ObjectChange], *, tried: str) -> TriedRemedy:
    text, created = listed([part.text for part in parts]), any(part.sort == OPENED for part in parts)
    target = path = value = ""
    if len(made) == 1:
        [change] = made
        kind = next(kind for kind in KINDS if change.kind in (kind.name, kind.label))
        target = f"{kind.name} {change.namespace}/{change.name}" if kind.namespaced else f"{kind.name} {change.name}"
        if len(change.fields) == 1:
            [(where, to)] = change.fields
            path, value = ".".join(where), "" if to is None else str(to)
    kubectl = [] if created or tried == UNTRIED else commands(made)
    return TriedRemedy(text, target, path, value, what_if_request(made), kubectl, tried)


def _both(before: Remedy, after: Remedy) -> Remedy:
    """Joins two remedies of one sort in one sentence: a bound that is raised twice, or pods and more pods."""
    both = tuple(merged_changes(before.changes, after.changes).values())
    starts = _FROM.findall(before.text)
    if all(change.removed for change in both):
        names = [f"{change.namespace}/{change.name}" for change in both]
        text = f"wait until {', '.join(names)} have ended, or delete them"
    elif starts and len(starts) == len(_FROM.findall(after.text)):
        text = _FROM.sub(lambda _: starts.pop(0), after.text)
    else:
        text = listed([before.text, after.text])
    return Remedy(after.sort, text, both)
