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

from policy.cluster.priorities import PriorityCounts
from policy.objects.constraints import Constraints
from policy.objects.pod import Pod

PATIENCE = 30.0
KINDS_AT_ONCE = 20
"""The number of kinds of pods that are looked at when something happens; the others follow the next time."""
NAMESPACES_AT_ONCE, PODS_AT_ONCE = 10, 10
"""Namespaces, and pods of a kind in each, that get their claim back at once: enough for the room of one pod."""

HintKey = tuple[frozenset[tuple[str, int]], Constraints, int]
"""The request of pods, their constraints, and how many it takes for them to start."""


@dataclass(slots=True)
class _Alike:
    """Pods that the same events help: one of them, when they were last helped, and which have lost their claim.

    ``gated`` are those that cannot be tried, as they wait at gates. ``without_claim`` has those that lost it, by
    namespace. ``fresh``: they were helped since the last look.
    """

    kind: HintKey
    one: Pod
    uids: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    without_claim: dict[str, dict[str, None]] = field(default_factory=dict)
    helped_at: float = -inf
    fresh: bool = False


@dataclass(slots=True)
class _Unplaced:
    """A pod that no place was found for: its kind, namespace and priority, since when, and when it is judged next."""

    group: _Alike
    namespace: str
    priority: int
    since: float
    judged_at: float
    lost: bool = False


class UnschedulablePods:
    """Pods that no place was found for, and those of them that have lost their claim. ``patience`` is in seconds."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._groups: dict[HintKey, _Alike] = {}
        self._unplaced: dict[str, _Unplaced] = {}
        self._with_claim = PriorityCounts()
        self._deadlines: list[tuple[float, str]] = []
        self._gated: dict[str, _Alike] = {}
        self._groups_without_claim: dict[int, _Alike] = {}
        self._with_pods: dict[int, _Alike] = {}
        """Kinds of which some pod is unplaced: what happens is looked at for these alone."""
        self._judged_at = self._helped_at = -inf
        self._unlocked: dict[int, _Alike] = {}
        """Kinds whose pods at gates have had their claims again since the last look."""

    def keeps_claim(self, uid: str) -> bool:
        """Whether the pod, if it waits, can still be placed."""
        unplaced = self._unplaced.get(uid)
        if unplaced is not None:
            return not unplaced.lost
        group = self._gated.get(uid)
        return group is None or not group.without_claim

    def some_wait(self, namespace: str, least: int) -> bool:
        """Whether a pod of a namespace, of this priority or a higher one, has no place and keeps its claim."""
        return any(priority >= least for priority in self._with_claim.of(namespace))

    def add(self, pod: Pod, minimum: int, since: float) -> None:
        """Notes that no place was found for the pod since then. Does nothing if that is known.

        ``minimum``: of its gang; 1 for a pod in none.
        """
        kind = hint_key(pod, minimum)
        known = self._unplaced.get(pod.uid)
        if known is not None and known.group.kind == kind:
            self._see_priority(known, pod.priority)
            return
        self.remove(pod.uid)
        unplaced = self._unplaced[pod.uid] = _Unplaced(self._group(kind, pod), pod.namespace, pod.priority, since, -inf)
        self._count(unplaced, 1)
        if not unplaced.group.uids and unplaced.group.gated:
            unplaced.group.helped_at = self._helped_at  # nobody has looked whether it was helped
        unplaced.group.uids.add(pod.uid)
        self._with_pods[id(unplaced.group)] = unplaced.group
        self._judge_at(since + self.patience, pod.uid, unplaced)

    def regroup(self, pod: Pod, minimum: int) -> None:
        """Notes that the pod's gang has another minimum from now on."""
        known = self._unplaced.get(pod.uid)
        if known is not None:
            self.add(pod, minimum, max(known.since, self._judged_at))
        if pod.uid in self._gated:
            self.add_gated(pod, minimum)

    def remove(self, uid: str) -> None:
        """Notes that the scheduler may be able to place the pod. Does nothing if it could before."""
        unplaced = self._unplaced.get(uid)
        if unplaced is None:
            return
        group = unplaced.group
        if unplaced.lost:
            self._give_back_claim(uid)
        self._count(unplaced, -1)
        del self._unplaced[uid]
        group.uids.discard(uid)
        if not group.uids:
            del self._with_pods[id(group)]
        self._drop_if_empty(group)

    def add_gated(self, pod: Pod, minimum: int) -> None:
        """Notes that the pod waits at a gate. Does nothing if that is known.

        Leaves out a pod with volumes of its own, as no other pod is like it.
        """
        if pod.constraints.undecidable:
            self.remove_gated(pod.uid)
            return
        kind = hint_key(pod, minimum)
        known = self._gated.get(pod.uid)
        if known is None or known.kind != kind:
            self.remove_gated(pod.uid)
            group = self._gated[pod.uid] = self._group(kind, pod)
            group.gated.add(pod.uid)

    def remove_gated(self, uid: str) -> None:
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
        for at, group in list(islice(self._groups_without_claim.items(), KINDS_AT_ONCE)):
            if len(self._groups_without_claim) > KINDS_AT_ONCE:
                self._groups_without_claim[at] = self._groups_without_claim.pop(
                    at
                )  # others are looked at the next time
            if helps(group.one):
                group.fresh = True
                namespaces = list(islice(group.without_claim.values(), NAMESPACES_AT_ONCE))
                some = [uid for pods in namespaces for uid in islice(pods, PODS_AT_ONCE)]
                for uid in some:
                    self._give_back_claim(uid)
                regained += some
                regained += [] if group.without_claim else islice(group.gated, PODS_AT_ONCE)
        return regained

    def help_pods(self, uids: Iterable[str]) -> list[str]:
        """Handles an event that could help these pods alone; returns UIDs of those that have their claim again."""
        regained = []
        for uid in uids:
            unplaced = self._unplaced.get(uid)
            if unplaced is not None:
                unplaced.since = max(unplaced.since, self._judged_at)
                if unplaced.lost:
                    self._give_back_claim(uid)
                    regained.append(uid)
        return regained

    def judge(self, now: float, helps: Callable[[Pod], bool] | None) -> list[str]:
        """Lets time pass; returns the UIDs of the pods that have lost their claim, or got it back.

        ``helps`` tells whether events since the last time could help a pod; None: there were none.
        """
        self._judged_at = now
        changed = [uid for group in self._unlocked.values() for uid in group.gated]
        self._unlocked = {}
        if helps is not None:
            self._helped_at = now
            for group in self._with_pods.values():
                if group.fresh or helps(group.one):
                    changed += self._help_all(group, now)
        return changed + self._lose(now)

    def _help_all(self, group: _Alike, now: float) -> list[str]:
        """Gives pods that are alike their claim back; returns the UIDs of those that have it again."""
        group.fresh, group.helped_at = False, now
        lost = [uid for pods in group.without_claim.values() for uid in pods]
        for uid in lost:
            self._give_back_claim(uid)
        return [*lost, *group.gated] if lost else lost

    def _lose(self, now: float) -> list[str]:
        """Takes the claim from pods whose patience has run out; returns the UIDs of those without one now."""
        changed: list[str] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            at, uid = heappop(self._deadlines)
            unplaced = self._unplaced.get(uid)
            if unplaced is None or unplaced.lost or unplaced.judged_at != at:
                continue  # a place may be found for it, or it is judged at another time
            group = unplaced.group
            deadline = max(unplaced.since, group.helped_at) + self.patience
            if deadline > now:
                self._judge_at(deadline, uid, unplaced)
                continue
            changed += [uid, *(() if group.without_claim else group.gated)]
            group.without_claim.setdefault(unplaced.namespace, {})[uid] = None
            self._groups_without_claim[id(group)] = group
            unplaced.lost = True
            self._count(unplaced, -1)
        return changed

    def _give_back_claim(self, uid: str) -> None:
        """Gives a pod its claim back; it is judged anew."""
        unplaced = self._unplaced[uid]
        group = unplaced.group
        pods = group.without_claim[unplaced.namespace]
        del pods[uid]
        if not pods:
            del group.without_claim[unplaced.namespace]
        if not group.without_claim:
            del self._groups_without_claim[id(group)]
            self._unlocked[id(group)] = group
        unplaced.lost = False
        self._count(unplaced, 1)
        self._judge_at(-inf, uid, unplaced)

    def _see_priority(self, unplaced: _Unplaced, priority: int) -> None:
        if unplaced.priority != priority:
            there = 0 if unplaced.lost else 1
            self._count(unplaced, -there)
            unplaced.priority = priority
            self._count(unplaced, there)

    def _count(self, unplaced: _Unplaced, number: int) -> None:
        """Counts a pod among those that keep their claims, or no longer."""
        self._with_claim.add(unplaced.namespace, unplaced.priority, number)

    def _judge_at(self, at: float, uid: str, unplaced: _Unplaced) -> None:
        unplaced.judged_at = at
        heappush(self._deadlines, (at, uid))

    def _group(self, kind: HintKey, pod: Pod) -> _Alike:
        return self._groups.setdefault(kind, _Alike(kind, pod))

    def _drop_if_empty(self, group: _Alike) -> None:
        if not (group.uids or group.gated):
            del self._groups[group.kind]


def hint_key(pod: Pod, minimum: int) -> HintKey:
    """Returns the key that is equal for pods that the same events help."""
    return frozenset(pod.request.items()), pod.constraints, minimum
