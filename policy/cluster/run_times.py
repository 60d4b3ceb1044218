"""How long each pod of a cluster runs, and when it ends, by all that its objects say (policy.objects.run_time).

Enforced are the deadlines of the pod (the kubelet ends it) and of its Job (kube-controller-manager does, unless another
controller may run the Job). An annotation of the pod, its PodGroup or its Job is only said. Where none of these says
anything, the default of its Queue or its ElasticQuota counts. Where pods are evicted that outlive what is said or
allowed (``runTime.evict``), that is enforced too, as far as nothing may keep the pod from being evicted.
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING

from policy.objects.job import short
from policy.objects.run_time import NOT_SAID, RUN_TIME, UNREADABLE, RunTime
from policy.quota import exempt
from policy.quota.exempt_from_eviction import SYSTEM_OWNERS
from policy.quota.run_time_limit import Limit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policy.cluster.cluster import Cluster
    from policy.objects.batch_job import BatchJob
    from policy.objects.pod import Pod

ANNOTATION = f"annotation {RUN_TIME}"
LOOK = 5.0
"""Seconds between looks for pods that have outlived their run times."""
OWN = "its run time"
"""The time that a pod, its group or its Job says, for people."""


class RunTimes:
    """Answers for pods that wait, that run, and for stand-ins of Jobs. It keeps nothing of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def ends_at(self, pod: Pod, now: float, *, enforced: bool = False) -> float | None:
        """Returns when a pod ends at the latest, its grace period not included; None if nobody says.

        A pod that does not run yet is taken to start ``now``. Times are in seconds since the epoch. ``enforced``:
        only what it cannot exceed counts. An annotation may say an end that is over, while the pod still runs.
        """
        start, times = pod.started or now, self._enforced(pod) if enforced else self._all(pod)
        return min(((each.since or start) + each.seconds for each in times), default=None)

    def surely_ends_at(self, pod: Pod, now: float) -> float | None:
        """Returns when a pod surely ends, its grace period not included; None if it may run for ever.

        Users may raise the deadline of a Job and what annotations say, and never the deadline of a pod. So all else
        counts only for a pod that may be evicted then. The rest is as with ``ends_at``.
        """
        if self._cluster.rules.run_time_grace == inf and not (pod.deadline > 0 or pod.job or pod.stands_for):
            return None  # soon said of most pods, for which the scheduler waits
        if pod.preemptible:
            return self.ends_at(pod, now, enforced=True)
        return (pod.started or now) + pod.deadline if pod.deadline > 0 else None

    def declared(self, pod: Pod) -> int | None:
        """Returns how many seconds a pod runs at most by all that is said of it; None if nobody says."""
        return min((each.seconds for each in self._all(pod)), default=None)

    def is_over_at(self, pod: Pod) -> float | None:
        """Returns when a running pod has run for as long as is said of it, or as its quota and queues allow.

        None if nobody says and no limit holds, or its node has not started it. Deadlines do not count: others enforce
        them. In seconds since the epoch.
        """
        times = [seconds for seconds, _ in self._shortest_first(pod)]
        return pod.started + times[0] if times and pod.started else None

    def whose_is_over(self, pod: Pod) -> str:
        """Returns what a pod has outlived, for people, as ``is_over_at`` counts; without numbers."""
        return next((whose for _, whose in self._shortest_first(pod)), OWN)

    def unreadable(self, pod: Pod) -> str:
        """Returns whose annotation cannot be read, for people; empty if all can."""
        return next((who for seconds, who in self._said(pod) if seconds == UNREADABLE), "")

    def _shortest_first(self, pod: Pod) -> list[tuple[int, str]]:
        """Returns what is said of a pod but for deadlines, and the limit, with whose each is. The shortest is first."""
        found = list[tuple[int, str]]()
        if not self.unreadable(pod):
            found = [(seconds, OWN) for seconds, _ in self._said(pod)]
            found = found or [(each.seconds, f"{each.title} says (run-time)") for each in self._defaults(pod)]
        ledger = self._cluster.ledger
        limit = ledger.run_time_limits.limit(ledger, pod.namespace, self._cluster.queue_of(pod))
        if limit is not None:
            found.append((limit.seconds, f"{limit.title} allows (max-run-time)"))
        return sorted(found, key=lambda each: each[0])

    def _all(self, pod: Pod) -> list[RunTime]:
        """Returns all that counts of what is said of a pod. Defaults count where nothing else is said."""
        deadlines = list(self._deadlines(pod))
        if self.unreadable(pod):
            return deadlines
        said = [RunTime(seconds) for seconds, _ in self._said(pod)]
        return deadlines + said or [RunTime(each.seconds) for each in self._defaults(pod)]

    def _enforced(self, pod: Pod) -> Iterator[RunTime]:
        """Yields deadlines, and when the pod is evicted as it has outlived the shortest of what is said or allowed."""
        yield from self._deadlines(pod)
        grace = self._cluster.rules.run_time_grace
        if grace < inf and self._may_be_evicted(pod) and (times := self._shortest_first(pod)):
            yield RunTime(times[0][0] + ceil(grace + LOOK))

    def _may_be_evicted(self, pod: Pod) -> bool:
        """Whether nothing keeps a pod from being evicted once its time is over. A disruption budget might."""
        cluster = self._cluster
        stays = not pod.preemptible or pod.owner in SYSTEM_OWNERS or exempt.is_critical(pod)
        return not stays and cluster.is_governed(pod) and not cluster.budgets.protect(pod)

    def _deadlines(self, pod: Pod) -> Iterator[RunTime]:
        if pod.deadline > 0:
            yield RunTime(pod.deadline)
        job = self._job(pod)
        if job is not None and job.deadline and job.ours:
            yield RunTime(job.deadline, since=job.started)

    def _said(self, pod: Pod) -> Iterator[tuple[int, str]]:
        """Yields what annotations say, and whose they are."""
        if pod.run_time:
            yield pod.run_time, f"{ANNOTATION} of the pod"
        group = self._cluster.membership.groups.get((pod.namespace, pod.group)) if pod.group else None
        if group is not None and group.run_time:
            yield group.run_time, f"{ANNOTATION} of its PodGroup {short(group.name)}"
        job = self._job(pod)
        if job is not None and job.run_time:
            yield job.run_time, f"{ANNOTATION} of its Job {job.name}"

    def _defaults(self, pod: Pod) -> Iterator[Limit]:
        queue = self._cluster.queues.get(self._cluster.queue_of(pod))
        if queue is not None and queue.run_time > NOT_SAID:
            yield Limit(queue.run_time, "", queue.name)
        account = self._cluster.ledger.accounts.get(pod.namespace)
        quota = account.quota if account is not None else None
        if quota is not None and quota.run_time > NOT_SAID:
            yield Limit(quota.run_time, pod.namespace, quota.name)

    def _job(self, pod: Pod) -> BatchJob | None:
        jobs = self._cluster.batch_jobs
        return jobs.of_stand_in(pod) if pod.stands_for is not None else jobs.of(pod)
