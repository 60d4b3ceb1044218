"""Pods that ran too short a time to be evicted for other quotas or queues (``quotaward.dev/min-run-time``).

Borrowers keep what they have for at least that long. The quota of a pod, its queue and each queue above it may protect
it; the longest time counts. A pod may ask for less, never for more. Times are in seconds since the epoch, on the
caller's clock.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from policy.objects.run_time import UNREADABLE

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

Key = tuple[str, str]
"""Namespace and name of an elastic quota; an empty namespace and the name of a queue."""


class Protection:
    """``now`` is the last time passed in. ``least`` are the times, in seconds, of quotas and queues that have one."""

    def __init__(self, cluster: Cluster) -> None:
        self.now = 0.0
        self.least: dict[Key, int] = {}
        self._cluster = cluster
        self._jobs: dict[str, tuple[str, ...]] = {}
        self._starts: dict[str, dict[str, float]] = {}

    def pass_time(self, now: float) -> None:
        """Lets time pass."""
        self.now = now

    def note(self, key: Key, seconds: int) -> None:
        """Notes the time of a quota or queue. If it cannot be read, the last one that could be stays in force."""
        if seconds > 0:
            self.least[key] = seconds
        elif seconds != UNREADABLE:
            self.least.pop(key, None)

    def forget(self, key: Key) -> None:
        """Forgets a quota or queue that is gone."""
        self.least.pop(key, None)

    def see(self, pod: Pod) -> None:
        """Notes when a pod started whose job may be taken back as a whole, or that it no longer runs."""
        self.gone(pod.uid)
        if not pod.assigned or pod.terminating or not (pod.job is not None or pod.controller):
            return
        owner = self._cluster.batch_jobs.owner_of(pod) if self._cluster.batch_jobs.others else None
        direct = pod.job.uid if pod.job is not None else pod.controller
        jobs = self._jobs[pod.uid] = (direct,) if owner is None or owner.uid == direct else (direct, owner.uid)
        for job in jobs:
            self._starts.setdefault(job, {})[pod.uid] = pod.started or inf

    def gone(self, uid: str) -> None:
        """Notes that a pod is gone."""
        for job in self._jobs.pop(uid, ()):
            starts = self._starts[job]
            del starts[uid]
            if not starts:
                del self._starts[job]

    def until(self, pod: Pod) -> float:
        """Returns when a pod on a node may be evicted for other quotas and queues; 0 if at any time.

        Of a job that is taken back as a whole all pods go, so the one that started last decides. A pod that its node
        has not taken up yet counts as one that starts now.
        """
        least = self._least_for(pod) if self.least else 0
        if not least:
            return 0.0
        start = pod.started or inf
        whole = self._cluster.batch_jobs.whole(pod)
        if whole is not None:
            start = max(start, max(self._starts.get(whole.uid, {}).values(), default=start))
        return min(start, self.now) + least

    def _least_for(self, pod: Pod) -> int:
        ledger = self._cluster.ledger
        account, entry = ledger.accounts.get(pod.namespace), ledger.entries.get(pod.uid)
        quota = account.quota if account is not None else None
        least = self.least.get((quota.namespace, quota.name), 0) if quota is not None else 0
        name = ledger.queue_of(pod) if entry is None else entry.queue
        queue = ledger.queues.accounts.get(name) if name else None
        if queue is not None:
            above = (each.queue.name for each in queue.above if each.queue is not None)
            least = max(least, *(self.least.get(("", each), 0) for each in (name, *above)))
        return min(least, pod.min_run_time) if pod.min_run_time > 0 else least
