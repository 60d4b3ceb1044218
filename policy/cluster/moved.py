"""Pods that name another queue than the one that has admitted them, and count there until the new one admits them.

A user who may annotate a running pod, its group or its namespace can choose another queue for it. If that took effect
at once, a queue could be filled beyond its capability, at the expense of others in it. So a pod counts in the queue
that it names once that queue admits it (see policy.cluster.queue_changes).
"""

from __future__ import annotations

from collections import deque
from heapq import nsmallest
from typing import TYPE_CHECKING

from policy.objects import signature
from policy.objects.conditions import Condition
from policy.quota.closed_queues import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

MOVED = "Moved"
"""The condition of a queue that is named by pods it has not admitted, or that such pods count in."""
TRIED = 50
"""Pods that are tried again at a time."""
NAMED = 3
"""Pods that are named in a condition."""


class Moving:
    """The pods that count in another queue than the one that they name: by UID, and by both of these queues.

    ``counted`` has the queue in which each counts (empty: in none). ``noted`` has the UIDs of all pods that have such a
    note in the API server, whether it is still true or not.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.counted: dict[str, str] = {}
        self.noted: set[str] = set()
        self._pods: dict[str, tuple[Pod, str]] = {}
        self._by_queue: dict[str, dict[str, None]] = {}
        self._to_try: deque[str] = deque()
        self._tried_at = -1

    def __contains__(self, uid: object) -> bool:
        return uid in self.counted

    def __iter__(self) -> Iterator[Pod]:
        return (pod for pod, _ in self._pods.values())

    def named_by(self, uid: str) -> str:
        """Returns the queue that one of these pods names."""
        return self._pods[uid][1]

    def put(self, pod: Pod, counted: str, named: str) -> bool:
        """Notes that a pod counts in one queue and names another, whatever was noted; returns whether it is new."""
        if self.counted.get(pod.uid) == counted and self._pods[pod.uid][1] == named:
            self._pods[pod.uid] = pod, named
            return False
        self.discard(pod.uid)
        self.counted[pod.uid] = counted
        self._pods[pod.uid] = pod, named
        for queue in {counted, named}:
            self._by_queue.setdefault(queue, {})[pod.uid] = None
        return True

    def discard(self, uid: str) -> None:
        """Counts a pod in the queue that it names. Does nothing for one that counts there already."""
        counted = self.counted.pop(uid, None)
        if counted is not None:
            for queue in {counted, self._pods.pop(uid)[1]}:
                self._cluster.changes.note(queue=queue)
                there = self._by_queue[queue]
                del there[uid]
                if not there:
                    del self._by_queue[queue]

    def forget(self, uid: str) -> None:
        """Forgets a pod that is gone, or holds nothing of a queue any more."""
        self.discard(uid)
        self.noted.discard(uid)

    def to_try(self, changes: int) -> list[str]:
        """Returns UIDs of some pods to check: whether the queues that they name admit them now.

        That may change with ``changes``, which counts the changes that may help. If there are many pods, it returns the
        others at the next calls.
        """
        if changes != self._tried_at and not self._to_try:
            self._tried_at = changes
            self._to_try.extend(self.counted)
        now = [self._to_try.popleft() for _ in range(min(TRIED, len(self._to_try)))]
        return [uid for uid in now if uid in self.counted]

    def sentence_of(self, uid: str) -> str:
        """Returns for people where one of these pods counts; empty for other pods."""
        if uid not in self.counted:
            return ""
        where = f"queue {self.counted[uid]}" if self.counted[uid] else "no queue"
        other = shortened(self._pods[uid][1])
        return f"; it counts in {where}, which admitted it, as queue {other} that it names does not"

    def conditions_of(self, queue: str) -> list[Condition]:
        """Returns the conditions of a queue that such pods count in, or name."""
        pods = self._by_queue.get(queue) if queue else None
        if not pods:
            return []
        told = [
            (uids, f"{len(uids)} ({self._names(uids)}) {text}")
            for uids, text in (
                (
                    [uid for uid in pods if self.counted[uid] == queue],
                    "count here, where they were admitted, as the queue that they name now does not admit them",
                ),
                (
                    [uid for uid in pods if self.counted[uid] != queue],
                    "name this queue since they run, are not admitted to it, and count where they were admitted",
                ),
            )
        ]
        return [Condition(MOVED, "NotAdmitted", f"pods: {'; '.join(text for uids, text in told if uids)}")]

    def _names(self, uids: Collection[str]) -> str:
        pods = (self._pods[uid][0] for uid in uids)
        first = nsmallest(NAMED, (f"{pod.namespace}/{pod.name}" for pod in pods))
        return ", ".join(first) + (", …" if len(uids) > NAMED else "")


def once_for_each_kind(asks: Callable[[Pod, str, str], bool]) -> Callable[[Pod, str, str], bool]:
    """Returns a function that asks ``asks`` until a pod is refused, and then refuses all pods that are alike."""
    refused: set[Hashable] = set()

    def may(pod: Pod, queue: str, counted: str) -> bool:
        kind = signature.by_rules(pod, queue), counted
        if kind in refused:
            return False
        if asks(pod, queue, counted):
            return True
        refused.add(kind)
        return False

    return may
