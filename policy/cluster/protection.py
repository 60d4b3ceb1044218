"""Pods that ran too short a time to be evicted for other quotas or queues (``quotaward.dev/min-run-time``).

Borrowers keep what they have for at least that long. The quota of a pod, its queue and each queue above it may protect
it; the longest time counts. A pod may ask for less, never for more. Times are in seconds since the epoch, on the
caller's clock.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from policy.objects.job_kind import JOB
from policy.objects.other_jobs import LONGEST_CHAIN
from policy.objects.run_time import UNREADABLE, keep_last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.cluster.cluster import Cluster
    from policy.objects.batch_job import BatchJob
    from policy.objects.pod import Pod
    from policy.objects.run_time import Key


class Protection:
    """``now`` is the last time passed in. ``least`` are the times, in seconds, of quotas and queues that have one.

    A time that cannot be read is endless if none could be before, as after a restart: an eviction cannot be undone.
    ``since`` has by UID the first start of a pod of each job of another kind, as such a job says none itself. It stays
    when that pod is gone: else a job that replaces all of its pods in time would be protected for ever.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.now = 0.0
        self.least: dict[Key, float] = {}
        self.since: dict[str, float] = {}
        self._cluster = cluster
        self._bound: dict[str, float] = {}
        self._jobs: dict[str, tuple[str, str]] = {}
        self._starts: dict[tuple[str, str], dict[str, float]] = {}

    def pass_time(self, now: float) -> None:
        """Lets time pass. Pods that were seen before any time was known count as seen now."""
        if not self.now:
            for starts in (self._bound, *self._starts.values()):
                starts.update({uid: now for uid, at in starts.items() if at == inf})
        self.now = now

    def note(self, key: Key, seconds: int) -> None:
        """Notes the time of a quota or queue. If it cannot be read, the last one that could be stays in force."""
        if seconds == UNREADABLE:
            self.least.setdefault(key, inf)
        else:
            keep_last(self.least, key, seconds)

    def forget(self, key: Key) -> None:
        """Forgets a quota or queue that is gone."""
        self.least.pop(key, None)

    def see(self, pod: Pod) -> None:
        """Notes when a pod was first seen on a node, and when it started if its job may be taken back as a whole."""
        bound = self._bound.get(pod.uid, self.now or inf)
        self.gone(pod.uid)
        if not pod.assigned or pod.terminating:
            return
        if not pod.started:
            self._bound[pod.uid] = bound
        if pod.job is None and not pod.controller:
            return
        job = self._jobs[pod.uid] = pod.namespace, pod.job.uid if pod.job is not None else pod.controller
        self._starts.setdefault(job, {})[pod.uid] = start = pod.started or bound
        jobs = self._cluster.batch_jobs
        owner = jobs.owner_of(pod) if jobs.others and pod.uid not in jobs.stayed else None
        if owner is not None and owner.can_be_suspended and start < self.since.get(owner.uid, inf):
            self.since[owner.uid] = start

    def see_job(self, job: BatchJob) -> None:
        """Sees a job of another kind. One that is suspended counts anew from when it is resumed."""
        if job.ended or not job.can_be_suspended:
            self.forget_job(job.uid)

    def see_new_job(self, job: BatchJob) -> None:
        """Sees a job of any kind for the first time: pods of it, or of jobs that it owns, may have been seen before."""
        jobs = self._cluster.batch_jobs
        top = jobs.others.deciding(job)
        if top.kind is JOB or top.ended or not top.can_be_suspended:
            return
        own = (uid for uid in jobs.may_own(job) if uid in self._jobs and uid not in jobs.stayed)
        start = min((self._starts[self._jobs[uid]][uid] for uid in own), default=inf)
        if start < self.since.get(top.uid, inf):
            self.since[top.uid] = start

    def forget_job(self, uid: str) -> None:
        """Forgets a job of another kind that is gone."""
        self.since.pop(uid, None)

    def gone(self, uid: str) -> None:
        """Notes that a pod is gone."""
        self._bound.pop(uid, None)
        job = self._jobs.pop(uid, None)
        if job is not None:
            starts = self._starts[job]
            del starts[uid]
            if not starts:
                del self._starts[job]

    def until(self, pod: Pod, known: dict[str, float]) -> float:
        """Returns when a pod on a node may be evicted for other quotas and queues; 0 if at any time, endless if never.

        A pod that its node has not started yet counts from when it was seen there first: a node that is lost starts
        nobody, and its pods must not be protected for ever. ``known`` keeps the starts of jobs for the next pods of
        these, as long as nothing changes.
        """
        return self.until_together((pod,), known)

    def until_together(self, pods: Iterable[Pod], known: dict[str, float]) -> float:
        """Like ``until``, for pods that go together: the first start counts, and the longest time.

        A pod that comes later does not prolong it: new ones might come for ever.
        """
        together = list(pods) if self.least else []
        least = max(map(self._least_for, together), default=0)
        return min(self.now, *(self._start_of(pod, known) for pod in together)) + least if least else 0.0

    def _start_of(self, pod: Pod, known: dict[str, float]) -> float:
        """Returns when a pod started, or the job that it is taken back with."""
        whole = self._cluster.batch_jobs.whole(pod)
        if whole is None:
            return pod.started or self._bound.get(pod.uid, inf)
        if whole.uid not in known:
            known[whole.uid] = self._start_of_job(whole)
        return known[whole.uid]

    def _start_of_job(self, job: BatchJob) -> float:
        """Returns when a job started: by what it says, else by what the jobs that it owns say, or by its first pod.

        Pods may be seen before the jobs that own them, so those are looked for only now. Jobs that have ended do not
        count: they may have run before this one was suspended for the last time.
        """
        jobs, start = [job], self.since.get(job.uid, inf)
        for _ in range(LONGEST_CHAIN + 2):
            for each in jobs:
                start = min(start, each.started or self._first_start(each))
            jobs = [owned for each in jobs if not each.started for owned in self._cluster.batch_jobs.owned_by(each)]
        return start

    def _first_start(self, job: BatchJob) -> float:
        starts, stayed = self._starts.get((job.namespace, job.uid), {}), self._cluster.batch_jobs.stayed
        return min((start for uid, start in starts.items() if uid not in stayed), default=inf)

    def _least_for(self, pod: Pod) -> float:
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
