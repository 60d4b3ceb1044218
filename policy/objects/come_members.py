"""Which members have come of a Job that waits as a whole, where nodes are reserved for these.

It is counted as pods come and go, so that a Job may have any number of pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.objects.queued_job import number_of_member

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from policy.objects.pod import Pod
    from policy.objects.queued_job import QueuedJob
    from policy.objects.reservation import Reservation
    from policy.objects.resources import Resources


class ComeMembers:
    """Which members of one Job have come: of those reserved on a node, as many as pods of the Job stand there."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._on: dict[str, dict[str, Reservation]] = {}
        self._standing: dict[str, int] = {}
        self._come: dict[str, frozenset[str]] = {}
        self._pods = 0
        self._waits = False
        self._at_gate = False
        self._asks: tuple[Resources, int] | None = None

    def reserve(self, reservation: Reservation) -> None:
        """Notes that a node is reserved for a member."""
        self._on.setdefault(reservation.node, {})[reservation.name] = reservation
        self._come.pop(reservation.node, None)

    def lift(self, reservation: Reservation) -> None:
        """Notes that it is reserved no more."""
        self._on.get(reservation.node, {}).pop(reservation.name, None)
        self._come.pop(reservation.node, None)
        if not self._on.get(reservation.node):
            self._on.pop(reservation.node, None)

    def see_job(self, job: QueuedJob) -> AbstractSet[str]:
        """Sees the Job as it is now. Returns the nodes for which that may matter."""
        before, self._asks = self._asks, (job.pod_sets[0].pod.request, job.least)
        return self._on.keys() if self._asks != before else frozenset()

    def see_stand_in(self, *, there: bool) -> AbstractSet[str]:
        """Sees whether the stand-in is there. Returns the nodes for which that may matter."""
        before, self._waits = self._waits, there
        return self._on.keys() if there != before else frozenset()

    def see_gate(self, *, waits: bool) -> AbstractSet[str]:
        """Sees whether the stand-in waits at its gate. Returns the nodes for which that may matter."""
        before, self._at_gate = self._at_gate, waits
        return self._on.keys() & self._standing.keys() if waits != before else frozenset()

    def see(self, pod: Pod | None, before: Pod | None = None) -> AbstractSet[str]:
        """Sees a pod of the Job; None if it is gone. Returns the nodes for which that may matter."""
        was_there = self._waits or self._pods
        self._pods += (pod is not None) - (before is not None)
        old, new = _place(before), _place(pod)
        if old != new:
            for node, change in ((old, -1), (new, 1)):
                self._standing[node] = self._standing.get(node, 0) + change
                self._come.pop(node, None)
                if not self._standing[node]:
                    del self._standing[node]
        if bool(was_there) != bool(self._waits or self._pods):
            return self._on.keys()
        return {old, new} & self._on.keys() if old != new else frozenset()

    def has_come(self, reservation: Reservation) -> bool:
        """Whether a pod of the Job stands on the node in the place of this member."""
        node = reservation.node
        if not (number := self._standing.get(node)):
            return False
        if node not in self._come:
            members = sorted(self._on.get(node, {}).values(), key=lambda each: number_of_member(each.pod.uid))
            self._come[node] = frozenset(each.name for each in members[:number])
        return reservation.name in self._come[node]


def _place(pod: Pod | None) -> str:
    """Returns the node where a pod stands; empty if it stands on none, or does not stay there."""
    return pod.node if pod is not None and pod.assigned and not pod.terminating else ""
