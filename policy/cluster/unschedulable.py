"""Which waiting pods have a chance: what can never be placed must not keep what it claims from others.

A pod that no place was found for, whoever says so, keeps its claim for a while (``patience``). Then it has lost it,
until something happens that could help it: room on a node that could take it, or its quota or its queue raised. Pods
that ask the same with the same demands, and start with as many others, are helped by the same, and looked at together.
A pod that waits at our gate cannot be tried: it has a chance as long as none like it was tried in vain for too long.

What happens is heeded at once, as the next who asks may be a borrower. That takes no time that grows with what waits:
only so many kinds are looked at, and so many of each have their chance again. The next look, soon after, is for all.
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
"""How many kinds of pods are looked at when something happens; others have their turn the next time."""
NAMESPACES_AT_ONCE, PODS_AT_ONCE = 10, 10
"""Of how many namespaces so many pods of a kind have their chance again at once: enough for what one pod leaves."""

Kind = tuple[frozenset[tuple[str, int]], Constraints, int]
"""What pods ask, with which demands, and how many it takes for them to start."""


@dataclass(slots=True)
class _Alike:
    """Pods that are helped by the same: one of them, when they were last helped, and which have lost their chance.

    ``gated`` are those that cannot be tried, as they wait at gates. ``hopeless`` are by namespace. ``fresh``: they were
    helped since the last look.
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
    """Of a pod that no place was found for: what it is like, its namespace, since when, and when it is judged next."""

    group: _Alike
    namespace: str
    since: float
    judged_at: float
    lost: bool = False


class Chances:
    """Pods of which it is in doubt, and those of them that have none now. ``patience`` is in seconds."""

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
        """Whether the pod, if it waits, has a chance."""
        doubt = self._doubts.get(uid)
        if doubt is not None:
            return not doubt.lost
        group = self._gated.get(uid)
        return group is None or not group.hopeless

    def doubt(self, pod: Pod, minimum: int, since: float) -> None:
        """No place was found for the pod, since then; said again, it is no news. ``minimum``: of its gang, 1 alone."""
        kind = kind_of(pod, minimum)
        known = self._doubts.get(pod.uid)
        if known is not None and known.group.kind == kind:
            return
        self.trust(pod.uid)
        doubt = self._doubts[pod.uid] = _Doubt(self._group(kind, pod), pod.namespace, since, -inf)
        doubt.group.uids.add(pod.uid)
        self._judge_at(since + self.patience, pod.uid, doubt)

    def regroup(self, pod: Pod, minimum: int) -> None:
        """The pod takes so many to start from now on."""
        known = self._doubts.get(pod.uid)
        if known is not None:
            self.doubt(pod, minimum, max(known.since, self._judged_at))
        if pod.uid in self._gated:
            self.gate(pod, minimum)

    def trust(self, uid: str) -> None:
        """There is no reason, or none any more, to doubt that the pod can be placed."""
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
        """The pod waits at a gate; said again, it is no news. One with volumes of its own is like no other."""
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
        """The pod waits at no gate any more; for one that does not it is no error."""
        group = self._gated.pop(uid, None)
        if group is not None:
            group.gated.discard(uid)
            self._drop_if_empty(group)

    def help(self, helps: Callable[[Pod], bool]) -> list[str]:
        """Something has happened that could help those of whom ``helps`` says so; UIDs of who has its chance again.

        Of those that have lost it only so many: the others when they are judged.
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
        """Something has happened that could help these pods alone; UIDs of who has its chance again."""
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
        """Lets time pass; the UIDs of the pods that have lost their chance, or got it back.

        ``helps`` says of a pod whether what has happened since the last time could help it; None: nothing has.
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
        """Pods that are alike could be helped; the UIDs of who has its chance again."""
        group.fresh, group.helped_at = False, now
        lost = [uid for pods in group.hopeless.values() for uid in pods]
        for uid in lost:
            self._have_hope(uid)
        return [*lost, *group.gated]

    def _lose(self, now: float) -> list[str]:
        """Takes their chance from those whose time is over; the UIDs of who has none now."""
        changed: list[str] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            at, uid = heappop(self._deadlines)
            doubt = self._doubts.get(uid)
            if doubt is None or doubt.judged_at != at:
                continue  # it is in doubt no more, or for another reason
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
        """One that has lost its chance has it again, and is judged anew."""
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
    """What tells whether the same helps two pods."""
    return frozenset(pod.request.items()), pod.constraints, minimum
