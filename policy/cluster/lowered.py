"""Jobs whose parallelism is lowered to take pods back, until as many pods have gone.

The controller of Jobs chooses which of its pods go, and nobody can steer that. So those that were asked for count as
going, as long as as many pods of the Job have still to go. Each one that goes unasked takes the place of one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policy.objects.queued_job import uid_of_stand_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policy.cluster.cluster import Cluster
    from policy.objects.batch_job import BatchJob
    from policy.objects.pod import Pod

PATIENCE = 30.0
"""Seconds after which nobody waits any more for pods of a lowered Job to be deleted."""
REST = 30.0
"""Seconds for which a lowered Job does not grow: it might be lowered at once again, and lose other pods each time."""


@dataclass(slots=True)
class _Lowering:
    """How many pods of a Job have still to go, UIDs of those that were asked for, and how long they are waited for."""

    remaining: int
    asked: set[str]
    until: float


class Lowered:
    """The Jobs that have just been lowered, or are being lowered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lowerings: dict[str, _Lowering] = {}
        self._rests: dict[str, float] = {}
        self._held_up: set[str] = set()

    def begin(self, job: BatchJob, to: int, victims: Iterable[Pod], now: float) -> None:
        """Notes that a Job is to run no more pods than ``to``, so that as many pods go as these victims are."""
        known = self._lowerings.setdefault(job.uid, _Lowering(0, set(), now))
        known.remaining += job.runs - to
        known.until = now + PATIENCE
        self._rests[job.uid] = now + REST
        for victim in victims:
            self._cluster.leaving.ask_to_go(victim.uid)
            known.asked.add(victim.uid)
        self._cluster.batch_jobs.upsert(replace(job, runs=to, parallelism=to))

    def undo(self, job: BatchJob) -> None:
        """Notes that a Job could not be lowered, which is known as it was before. Its pods may stay."""
        self._end(job.uid)
        known = self._cluster.batch_jobs.get(job.key)
        if known is not None and known.uid == job.uid:
            self._cluster.batch_jobs.upsert(replace(known, runs=job.runs, parallelism=job.parallelism))

    def is_taken_from(self, job: BatchJob) -> bool:
        """Whether pods of a Job have still to go, or a plan takes some, so that it is not to grow meanwhile."""
        return job.uid in self._lowerings or any(self._cluster.batch_jobs.is_of(pod, job) for pod in self._victims())

    def rests(self, job: BatchJob) -> bool:
        """Whether a Job was lowered so recently that it is not to grow."""
        return job.uid in self._rests

    def is_held_up(self, stand_in: Pod) -> bool:
        """Whether the Job of a stand-in was not to grow at the latest look, as pods of it are taken, or it rests."""
        return stand_in.stands_for is not None and stand_in.stands_for.uid in self._held_up

    def look(self) -> None:
        """Looks which Jobs are not to grow now. They stand apart in line: else none that are alike would grow."""
        jobs = (self._cluster.batch_jobs.of(pod) for pod in self._victims())
        before, self._held_up = self._held_up, {*self._rests, *self._lowerings, *(job.uid for job in jobs if job)}
        for uid in before ^ self._held_up:
            self._cluster.gate_admission.stand_again(uid_of_stand_in(uid))

    def suspended(self, uid: str) -> None:
        """Sees that a Job is suspended: when it is started again, it may grow at once."""
        self._rests.pop(uid, None)

    def see(self, pod: Pod, before: Pod | None) -> None:
        """Sees a pod: it may have begun to go."""
        if self._lowerings and _goes(pod) and not (before is not None and _goes(before)):
            self._one_goes(pod)

    def forget(self, pod: Pod) -> None:
        """Sees that a pod is gone."""
        if self._lowerings and not _goes(pod):
            self._one_goes(pod)

    def tick(self, now: float) -> None:
        """Lets time pass: pods that have not gone for long may stay."""
        for uid in [uid for uid, lowering in self._lowerings.items() if lowering.until <= now]:
            self._end(uid)
        self._rests = {uid: until for uid, until in self._rests.items() if until > now}

    def _victims(self) -> Iterator[Pod]:
        """Yields the pods that are taken by plans in force."""
        cluster = self._cluster
        for plan in cluster.reservations.plans.values():
            if cluster.reservations.is_in_force(plan):
                yield from (cluster.pods[victim.uid] for victim in plan.victims if victim.uid in cluster.pods)

    def _one_goes(self, pod: Pod) -> None:
        lowering = self._lowerings.get(pod.job.uid) if pod.job is not None else None
        if lowering is None or pod.job is None:
            return
        lowering.remaining -= 1
        lowering.asked.discard(pod.uid)
        while len(lowering.asked) > max(0, lowering.remaining):
            uid = min(lowering.asked)
            lowering.asked.discard(uid)
            self._cluster.leaving.may_stay(uid)
        if not lowering.asked:
            del self._lowerings[pod.job.uid]

    def _end(self, uid: str) -> None:
        lowering = self._lowerings.pop(uid, None)
        for each in lowering.asked if lowering is not None else ():
            self._cluster.leaving.may_stay(each)


def _goes(pod: Pod) -> bool:
    return pod.terminating or pod.finished
