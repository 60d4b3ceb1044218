"""The priorities of pods by namespace: of those on nodes, it is asked whether some are less important than another."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.objects.pod import Pod


class PriorityCounts:
    """How many pods of each priority there are in each namespace."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[int]] = {}

    def add(self, namespace: str, priority: int, number: int) -> None:
        """Adds so many pods, or takes them away if that is negative."""
        counts = self._counts.setdefault(namespace, Counter())
        counts[priority] += number
        if not counts[priority]:
            del counts[priority]
        if not counts:
            del self._counts[namespace]

    def of(self, namespace: str) -> Iterable[int]:
        """Returns the priorities of the pods in a namespace, each once."""
        return self._counts.get(namespace, ())


class Priorities:
    """Counts the pods of each priority in each namespace. Pods that are going are not counted."""

    def __init__(self) -> None:
        self._counts = PriorityCounts()
        self._of: dict[str, tuple[str, int]] = {}

    def see(self, pod: Pod) -> None:
        """Sees a pod as it is now."""
        if not pod.assigned or pod.terminating:
            self.forget(pod.uid)
        elif self._of.get(pod.uid) != (key := (pod.namespace, pod.priority)):
            self.forget(pod.uid)
            self._of[pod.uid] = key
            self._counts.add(*key, 1)

    def forget(self, uid: str) -> None:
        """Forgets a pod. Does nothing for an unknown one."""
        if (known := self._of.pop(uid, None)) is not None:
            self._counts.add(*known, -1)

    def has_lower(self, namespace: str, priority: int) -> bool:
        """Whether a namespace has a pod on a node with a lower priority than this."""
        return any(each < priority for each in self._counts.of(namespace))
