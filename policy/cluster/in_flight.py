"""Pods in flight: an earlier process or another replica may have admitted them, and they may be on their way to nodes.

They count in the worst case only (see Cluster.admit), until for some time none of them has arrived.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

SETTLE_TIME = 3.0
"""Seconds after which none arrives any more, if none has arrived in between."""


class InFlight:
    """The pods of a cluster that are in flight, by UID.

    ``somebody_else_admits``: a pod was seen on a node that has not asked here, though some rule is concerned.
    ``asked_at``: when one asked last. ``settle_time`` in seconds.
    """

    def __init__(self, cluster: Cluster, settle_time: float) -> None:
        self.uids: set[str] = set()
        self.somebody_else_admits = False
        self.asked_at = -inf
        self.settle_time = settle_time
        self._settled_at = 0.0
        self._cluster = cluster

    def pods(self) -> Iterator[Pod]:
        """These pods."""
        return (self._cluster.pods[uid] for uid in self.uids)

    def suspect(self, now: float) -> None:
        """Takes every pod without a node for one that somebody else may have admitted, and may be binding now.

        That is so after a start, and when the scheduler turns to this process after it had turned to another.
        """
        cluster = self._cluster
        for pod in cluster.pending.values():
            if pod.uid not in cluster.grants and pod.gate < 0:
                cluster.ledger.enter("in_flight", pod)
                self.uids.add(pod.uid)
        self._settled_at = now + self.settle_time

    def has_landed(self, uid: str, now: float) -> None:
        """One of them was seen on its node: where it came from there may be more."""
        self.uids.discard(uid)
        self._settled_at = now + self.settle_time

    def settle(self, now: float) -> None:
        """Lets time pass: what has not arrived for long was not admitted, and waits."""
        if self.uids and now >= self._settled_at:
            for uid in list(self.uids):
                self._cluster.states.restore_pending(uid)
