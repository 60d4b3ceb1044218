"""The priorities of the pods that are on nodes, by namespace: whether a pod has less important ones there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policy.objects.pod import Pod


class Priorities:
    """Counts the pods of each priority in each namespace. Pods that are going are not counted."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {}
        self._of: dict[str, tuple[str, int]] = {}

    def see(self, pod: Pod) -> None:
        """Sees a pod as it is now."""
        if not pod.assigned or pod.terminating:
            self.forget(pod.uid)
        elif self._of.get(pod.uid) != (key := (pod.namespace, pod.priority)):
            self.forget(pod.uid)
            self._of[pod.uid] = key
            counts = self._counts.setdefault(pod.namespace, {})
            counts[pod.priority] = counts.get(pod.priority, 0) + 1

    def forget(self, uid: str) -> None:
        """Forgets a pod. Does nothing for an unknown one."""
        if (known := self._of.pop(uid, None)) is None:
            return
        namespace, priority = known
        counts = self._counts[namespace]
        counts[priority] -= 1
        if not counts[priority]:
            del counts[priority]
        if not counts:
            del self._counts[namespace]

    def has_lower(self, namespace: str, priority: int) -> bool:
        """Whether a namespace has a pod on a node with a lower priority than this."""
        return any(each < priority for each in self._counts.get(namespace, ()))
