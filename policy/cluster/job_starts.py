"""Jobs that are being started or grow: what was granted to each, and which of its pods have come."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policy.objects.queued_job import set_of, uid_of_stand_in, waiting

if TYPE_CHECKING:
    from policy.objects.pod import Pod
    from policy.objects.queued_job import QueuedJob


@dataclass(frozen=True, slots=True)
class Part:
    """How many pods of an elastic Job are granted, and whether it was suspended and its parallelism before that."""

    pods: int
    suspended: bool
    parallelism: int

    def is_seen_by(self, job: QueuedJob) -> bool:
        """Whether a Job is seen to have been changed since: usually by our patch."""
        return (job.suspended, job.parallelism) != (self.suspended, self.parallelism)


class JobStarts:
    """The starts, by UID of the stand-in. ``until``: how long room is kept for pods of a start that was seen."""

    def __init__(self) -> None:
        self.until: dict[str, float] = {}
        self._came: dict[str, Counter[int]] = {}
        self._pods: dict[str, set[str]] = {}
        self._parts: dict[str, Part] = {}
        self._granted: dict[str, QueuedJob] = {}

    def part(self, uid: str) -> Part | None:
        """Returns the part that is granted to an elastic Job."""
        return self._parts.get(uid)

    def grant(self, uid: str, part: Part) -> None:
        """Notes the part that is granted to an elastic Job."""
        self._parts[uid] = part

    def take_back(self, uid: str) -> bool:
        """Forgets what was granted; returns whether something was known of that."""
        known = self._parts.pop(uid, None), self._granted.pop(uid, None)
        return known != (None, None)

    def note(self, job: QueuedJob) -> None:
        """Remembers a Job as it was granted, unless that is known."""
        self._granted.setdefault(uid_of_stand_in(job.uid), job)

    def keep(self, job: QueuedJob) -> None:
        """Remembers a Job as it is granted now."""
        self._granted[uid_of_stand_in(job.uid)] = job

    def has_come(self, job: QueuedJob, pod: Pod) -> None:
        """Counts a pod of a Job that has come."""
        uid, at = uid_of_stand_in(job.uid), set_of(job, pod, self.missing(job))
        self._came.setdefault(uid, Counter())[at] += 1
        self._pods.setdefault(uid, set()).add(pod.uid)

    def knows(self, job: QueuedJob, pod: Pod) -> bool:
        """Whether a pod of a Job is counted."""
        return pod.uid in self._pods.get(uid_of_stand_in(job.uid), ())

    def begins(self, job: QueuedJob) -> bool:
        """Whether a Job is suspended, or was when it was granted, and none of its pods has come."""
        uid = uid_of_stand_in(job.uid)
        part = self._parts.get(uid)
        return (job.suspended if part is None else part.suspended) and uid not in self._came

    def missing(self, job: QueuedJob) -> list[int]:
        """Returns how many pods of each pod set have not come: of a part that was granted, or of all it waits for."""
        uid = uid_of_stand_in(job.uid)
        part, came = self._parts.get(uid), self._came.get(uid, Counter())
        counts = waiting(job) if part is None else [part.pods]
        return [max(0, count - came[at]) for at, count in enumerate(counts)]

    def as_granted(self, job: QueuedJob) -> QueuedJob:
        """Returns a Job with no more pods, and with no others, than were granted.

        Tenants may change a Job that starts, and no rule is asked about that.
        """
        uid = uid_of_stand_in(job.uid)
        granted = self._granted.get(uid)
        if granted is None or granted is job:
            return job
        sets = granted.pod_sets
        if uid in self._parts:  # which says how many
            return replace(job, pod_sets=(replace(sets[0], count=job.pods),))
        if len(sets) == len(job.pod_sets):
            pairs = zip(sets, job.pod_sets, strict=True)
            sets = tuple([replace(was, count=min(was.count, now.count)) for was, now in pairs])
        return replace(job, pod_sets=sets, parallelism=granted.parallelism, least=0)

    def is_seen(self, job: QueuedJob) -> bool:
        """Whether a Job is seen as it is after it was started, or has grown."""
        part = self._parts.get(uid_of_stand_in(job.uid))
        return not job.suspended and (part is None or part.is_seen_by(job))

    def forget(self, uid: str) -> None:
        """Forgets a start."""
        self.until.pop(uid, None)
        self._came.pop(uid, None)
        self._pods.pop(uid, None)
        self._parts.pop(uid, None)
        self._granted.pop(uid, None)
