"""Waiting pods and their claims: a pod that can never be placed must not keep room from others.

A pod that no place was found for, whoever says so, keeps its claim for a while (``patience``). Then it loses the claim
until something happens that could help it: room on a node that could take it, or a higher quota or queue of its own.
Pods with the same request and constraints that start with as many others are helped by the same events, and handled
together. A pod at our gate cannot be tried: it keeps its claim until a pod like it was tried in vain for too long.

An event takes effect at once, as the next pod to ask may be a borrower. Its cost does not grow with the number of
waiting pods: it looks at a limited number of kinds, and helps a limited number of each. The next look, soon after, is
for all.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from math import inf

from policy.objects.constraints import Constraints
from policy.objects.pod import Pod

PATIENCE = 30.0
KINDS_AT_ONCE = 20
"""The number of kinds of pods that are looked at when something happens; the others follow the next time."""
NAMESPACES_AT_ONCE, PODS_AT_ONCE = 10, 10
"""Namespaces, and pods of a kind in each, that get their claim back at once: enough for the room of one pod."""

Kind = tuple[frozenset[tuple[str, int]], Constraints, int]
"""The request of pods, their constraints, and how many it takes for them to start."""


@dataclass(slots=True)
class _Alike:
    """Pods that the same events help: one of them, when they were last helped, and which have lost their claim.

    ``gated`` are those that cannot be tried, as they wait at gates. ``hopeless`` has those that lost it, by
    namespace. ``fresh``: they were helped since the last look.
    """

    kind: Kind
    one: Pod
    uids: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    hopeless: dict[str, dict[str, None]] = field(default_factory=dict)
    helped_at: float = -inf
    fresh: bool = False


@dataclass(slots=True)
class _Doubt:
    """A pod that no place was found for: its kind, its namespace, since when, and when it is judged next."""

    group: _Alike
    namespace: str
    since: float
    judged_at: float
    lost: bool = False


class Chances:
    """Pods that the scheduler could not place, and those that have run out of patience. ``patience`` is in seconds."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._groups: dict[Kind, _Alike] = {}
        self._doubts: dict[str, _Doubt] = {}
        self._deadlines: list[tuple[float, str]] = []
        self._gated: dict[str, _Alike] = {}
        self._hopeless: dict[int, _Alike] = {}
        self._judged_at = -inf
        self._regained: set[str] = set()

    def has(self, uid: str) -> bool:
        """Whether the pod, if it waits, can still be placed."""
        doubt = self._doubts.get(uid)
        if doubt is not None:
            return not doubt.lost
        group = self._gated.get(uid)
        return group is None or not group.hopeless

    def doubt(self, pod: Pod, minimum: int, since: float) -> None:
        """Notes that no place was found for the pod since then. Does nothing if that is known.

        ``minimum``: of its gang; 1 for a pod in none.
        """
        kind = kind_of(pod, minimum)
        known = self._doubts.get(pod.uid)
        if known is not None and known.group.kind == kind:
            return
        self.trust(pod.uid)
        doubt = self._doubts[pod.uid] = _Doubt(self._group(kind, pod), pod.namespace, since, -inf)
        doubt.group.uids.add(pod.uid)
        self._judge_at(since + self.patience, pod.uid, doubt)

    def regroup(self, pod: Pod, minimum: int) -> None:
        """Notes that the pod's gang has another minimum from now on."""
        known = self._doubts.get(pod.uid)
        if known is not None:
            self.doubt(pod, minimum, max(known.since, self._judged_at))
        if pod.uid in self._gated:
            self.gate(pod, minimum)

    def trust(self, uid: str) -> None:
        """Notes that the scheduler may be able to place the pod. Does nothing if that was not in doubt."""
        doubt = self._doubts.get(uid)
        if doubt is None:
            return
        group = doubt.group
        if doubt.lost:
            self._have_hope(uid)
            self._regained |= group.gated if not group.hopeless else set()
        del self._doubts[uid]
        group.uids.discard(uid)
        self._drop_if_empty(group)

    def gate(self, pod: Pod, minimum: int) -> None:
        """Notes that the pod waits at a gate. Does nothing if that is known.

        Leaves out a pod with volumes of its own, as no other pod is like it.
        """
        if pod.constraints.undecidable:
            self.ungate(pod.uid)
            return
        kind = kind_of(pod, minimum)
        known = self._gated.get(pod.uid)
        if known is None or known.kind != kind:
            self.ungate(pod.uid)
            group = self._gated[pod.uid] = self._group(kind, pod)
            group.gated.add(pod.uid)

    def ungate(self, uid: str) -> None:
        """Notes that the pod no longer waits at a gate. Does nothing for one that did not."""
        group = self._gated.pop(uid, None)
        if group is not None:
            group.gated.discard(uid)
            self._drop_if_empty(group)

    def help(self, helps: Callable[[Pod], bool]) -> list[str]:
        """Handles an event that could help the pods for which ``helps`` is true; returns UIDs with their claim again.

        Gives only a limited number of pods their claim back; the others get it when they are judged.
        """
        regained: list[str] = []
        for at, group in list(islice(self._hopeless.items(), KINDS_AT_ONCE)):
            if len(self._hopeless) > KINDS_AT_ONCE:
                self._hopeless[at] = self._hopeless.pop(at)  # others are looked at the next time
            if helps(group.one):
                group.fresh = True
                namespaces = list(islice(group.hopeless.values(), NAMESPACES_AT_ONCE))
                some = [uid for pods in namespaces for uid in islice(pods, PODS_AT_ONCE)]
                for uid in some:
                    self._have_hope(uid)
                regained += some
                regained += [] if group.hopeless else islice(group.gated, PODS_AT_ONCE)
        return regained

    def help_pods(self, uids: Iterable[str]) -> list[str]:
        """Handles an event that could help these pods alone; returns UIDs of those that have their claim again."""
        regained = []
        for uid in uids:
            doubt = self._doubts.get(uid)
            if doubt is not None:
                doubt.since = max(doubt.since, self._judged_at)
                if doubt.lost:
                    self._have_hope(uid)
                    regained.append(uid)
        return regained

    def judge(self, now: float, helps: Callable[[Pod], bool] | None) -> list[str]:
        """Lets time pass; returns the UIDs of the pods that have lost their claim, or got it back.

        ``helps`` tells whether events since the last time could help a pod; None: there were none.
        """
        self._judged_at = now
        changed = list(self._regained)
        self._regained = set()
        if helps is not None:
            for group in self._groups.values():
                if group.fresh or helps(group.one):
                    changed += self._help_all(group, now)
        return changed + self._lose(now)

    def _help_all(self, group: _Alike, now: float) -> list[str]:
        """Gives pods that are alike their claim back; returns the UIDs of those that have it again."""
        group.fresh, group.helped_at = False, now
        lost = [uid for pods in group.hopeless.values() for uid in pods]
        for uid in lost:
            self._have_hope(uid)
        return [*lost, *group.gated]

    def _lose(self, now: float) -> list[str]:
        """Takes the claim from pods whose patience has run out; returns the UIDs of those without one now."""
        changed: list[str] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            at, uid = heappop(self._deadlines)
            doubt = self._doubts.get(uid)
            if doubt is None or doubt.judged_at != at:
                continue  # it is no longer in doubt, or is judged at another time
            group = doubt.group
            deadline = max(doubt.since, group.helped_at) + self.patience
            if deadline > now:
                self._judge_at(deadline, uid, doubt)
                continue
            changed += [uid, *(() if group.hopeless else group.gated)]
            group.hopeless.setdefault(doubt.namespace, {})[uid] = None
            self._hopeless[id(group)] = group
            doubt.lost = True
        return changed

    def _have_hope(self, uid: str) -> None:
        """Gives a pod its claim back; it is judged anew."""
        doubt = self._doubts[uid]
        group = doubt.group
        pods = group.hopeless[doubt.namespace]
        del pods[uid]
        if not pods:
            del group.hopeless[doubt.namespace]
        if not group.hopeless:
            del self._hopeless[id(group)]
        doubt.lost = False
        self._judge_at(-inf, uid, doubt)

    def _judge_at(self, at: float, uid: str, doubt: _Doubt) -> None:
        doubt.judged_at = at
        heappush(self._deadlines, (at, uid))

    def _group(self, kind: Kind, pod: Pod) -> _Alike:
        return self._groups.setdefault(kind, _Alike(kind, pod))

    def _drop_if_empty(self, group: _Alike) -> None:
        if not (group.uids or group.gated):
            del self._groups[group.kind]


def kind_of(pod: Pod, minimum: int) -> Kind:
    """Returns the key that is equal for pods that the same events help."""
    return frozenset(pod.request.items()), pod.constraints, minimum
