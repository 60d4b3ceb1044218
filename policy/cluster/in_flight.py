"""Pods in flight: an earlier process or another replica may have admitted them, and they may be on their way to nodes.

They count in the worst case only (see PodAdmission.admit), until none of them has arrived for some time.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

SETTLE_TIME = 3.0
"""Seconds without an arrival after which no more are expected."""


class InFlight:
    """The pods of a cluster that are in flight, by UID.

    ``somebody_else_admits``: a pod was seen on a node without having asked here, though some rule applies to it.
    ``asked_at``: when a pod last asked. ``settle_time`` is in seconds.
    """

    def __init__(self, cluster: Cluster, settle_time: float) -> None:
        self.uids: set[str] = set()
        self.somebody_else_admits = False
        self.asked_at = -inf
        self.settle_time = settle_time
        self._settled_at = 0.0
        self._cluster = cluster

    def pods(self) -> Iterator[Pod]:
        """Yields these pods."""
        return (self._cluster.pods[uid] for uid in self.uids)

    def suspect(self, now: float) -> None:
        """Treats each pod without a node as in flight: another process may have admitted it, and it may be binding now.

        That is so after a start, and when the scheduler has turned from another process to this one.
        """
        cluster = self._cluster
        for pod in cluster.pending.values():
            if pod.uid not in cluster.grants and pod.gate < 0:
                cluster.ledger.enter("in_flight", pod)
                self.uids.add(pod.uid)
        self._settled_at = now + self.settle_time

    def has_landed(self, uid: str, now: float) -> None:
        """Notes that one of them was seen on its node: more may follow."""
        self.uids.discard(uid)
        self._settled_at = now + self.settle_time

    def settle(self, now: float) -> None:
        """Lets time pass: pods that have not arrived in the settle time were not admitted, and wait."""
        if self.uids and now >= self._settled_at:
            for uid in list(self.uids):
                self._cluster.states.restore_pending(uid)
