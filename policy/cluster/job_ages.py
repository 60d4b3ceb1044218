"""Jobs that wait as a whole, by how long they have waited: old ones are found without a look at the others."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policy.objects.queued_job import Key, QueuedJob


class JobAges:
    """Keys of Jobs in the order of the times since which they wait. Of a Job without such a time it knows nothing."""

    def __init__(self) -> None:
        self._since: dict[Key, float] = {}
        self._in_order: list[tuple[float, Key]] = []

    def note(self, job: QueuedJob) -> None:
        """Sees a Job as it is now."""
        since = waits_since(job)
        if self._since.get(job.key) == since:
            return
        self.forget(job.key)
        if since > 0:
            self._since[job.key] = since
            insort(self._in_order, (since, job.key))

    def forget(self, key: Key) -> None:
        """Forgets a Job. Does nothing for an unknown one."""
        since = self._since.pop(key, None)
        if since is not None:
            del self._in_order[bisect_left(self._in_order, (since, key))]

    def older_than(self, seconds: float, now: float) -> list[Key]:
        """Returns the Jobs that have waited for longer than so many seconds, the oldest first."""
        end = bisect_left(self._in_order, 1, key=lambda each: int(now - each[0] <= seconds))
        return [key for _, key in self._in_order[:end]]


def waits_since(job: QueuedJob) -> float:
    """Returns since when a Job is suspended without a break, in seconds since the epoch; 0 if that is not known."""
    return max(job.created, job.since)
