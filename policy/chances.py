"""Which waiting pods have a chance: what can never be placed must not keep a queue's room from others.

A pod that the scheduler found no place for, for reasons that are not ours, keeps its claim for a while (``patience``).
Then it has lost it, until something happens that could help: a node, a quota or a queue changed, or a pod has left a
node that could take this one. Pods that ask the same with the same demands are looked at together. A pod that waits at
our gate cannot be tried: it has a chance as long as none like it has been tried in vain for too long.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from policy.constraints import Constraints
from policy.pod import Pod

PATIENCE = 30.0

_Kind = tuple[frozenset[tuple[str, int]], Constraints]


@dataclass(slots=True)
class _Alike:
    """Pods that are helped by the same: one of them, when they were last helped, and which have lost their chance.

    ``gated`` are those that cannot be tried, as they wait at gates.
    """

    one: Pod
    uids: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    helped_at: float = -inf
    hopeless: set[str] = field(default_factory=set)


class Chances:
    """Pods of which it is in doubt, and those of them that have none now. ``patience`` is in seconds."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._groups: dict[_Kind, _Alike] = {}
        self._kinds: dict[str, _Kind] = {}
        self._since: dict[str, float] = {}
        self._deadlines: list[tuple[float, str]] = []
        self._gated: dict[str, _Kind] = {}
        self._regained: set[str] = set()

    def has(self, uid: str) -> bool:
        """Whether the pod, if it waits, has a chance."""
        kind = self._kinds.get(uid)
        if kind is not None:
            return uid not in self._groups[kind].hopeless
        kind = self._gated.get(uid)
        return kind is None or not self._groups[kind].hopeless

    def doubt(self, pod: Pod, now: float) -> None:
        """The scheduler has found no place for the pod; said again, it is no news."""
        kind = frozenset(pod.request.items()), pod.constraints
        if self._kinds.get(pod.uid) == kind:
            return
        self.trust(pod.uid)
        self._kinds[pod.uid] = kind
        self._groups.setdefault(kind, _Alike(pod)).uids.add(pod.uid)
        self._since[pod.uid] = now
        heappush(self._deadlines, (now + self._patience, pod.uid))

    def trust(self, uid: str) -> None:
        """There is no reason, or none any more, to doubt that the pod can be placed."""
        kind = self._kinds.pop(uid, None)
        if kind is None:
            return
        group = self._groups[kind]
        group.uids.discard(uid)
        if uid in group.hopeless:
            group.hopeless.discard(uid)
            self._regained |= group.gated if not group.hopeless else set()
        del self._since[uid]
        self._drop_if_empty(kind)

    def gate(self, pod: Pod) -> None:
        """The pod waits at a gate; said again, it is no news. One with volumes of its own is like no other."""
        if pod.constraints.undecidable:
            self.ungate(pod.uid)
            return
        kind = frozenset(pod.request.items()), pod.constraints
        if self._gated.get(pod.uid) != kind:
            self.ungate(pod.uid)
            self._gated[pod.uid] = kind
            self._groups.setdefault(kind, _Alike(pod)).gated.add(pod.uid)

    def ungate(self, uid: str) -> None:
        """The pod waits at no gate any more; for one that does not it is no error."""
        kind = self._gated.pop(uid, None)
        if kind is not None:
            self._groups[kind].gated.discard(uid)
            self._drop_if_empty(kind)

    def judge(self, now: float, helps: Callable[[Pod], bool] | None) -> list[str]:
        """Lets time pass; the UIDs of the pods that have lost their chance, or got it back.

        ``helps`` says of a pod whether what has happened since the last time could help it; None: nothing has.
        """
        changed: list[str] = list(self._regained)
        self._regained = set()
        if helps is not None:
            for group in self._groups.values():
                if group.uids and helps(group.one):
                    group.helped_at = now
                    changed += [*group.hopeless, *(group.gated if group.hopeless else ())]
                    for uid in group.hopeless:
                        heappush(self._deadlines, (now + self._patience, uid))
                    group.hopeless = set()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, uid = heappop(self._deadlines)
            kind = self._kinds.get(uid)
            if kind is None or uid in self._groups[kind].hopeless:
                continue
            group = self._groups[kind]
            deadline = max(self._since[uid], group.helped_at) + self._patience
            if deadline > now:
                heappush(self._deadlines, (deadline, uid))
            else:
                changed += [uid, *(() if group.hopeless else group.gated)]
                group.hopeless.add(uid)
        return changed

    def _drop_if_empty(self, kind: _Kind) -> None:
        if not self._groups[kind].uids and not self._groups[kind].gated:
            del self._groups[kind]
