"""Starts of Jobs whose answers were lost: the API server may have made them all the same. A part of the gates.

Room stays kept for such a Job until it is seen as it is then, or the API server answers when it is asked again: else
others would start in that room, and an elastic Job would grow once more.
"""

from dataclasses import dataclass

from app.store.store import Store
from policy.objects.pod import Pod


@dataclass(slots=True)
class _Start:
    """The stand-in as it was granted, since when its Job waits, and how long room is kept without any answer."""

    pod: Pod
    waits_since: float
    until: float
    is_asked: bool = False


class UnansweredStarts:
    """The starts of which nobody knows whether they were made. ``patience``: seconds after which one was not."""

    def __init__(self, store: Store, patience: float) -> None:
        self._store = store
        self._patience = patience
        self._starts: dict[str, _Start] = {}

    def keep(self, pod: Pod, waits_since: float) -> None:
        """Notes that no answer has come."""
        until = self._store.clock() + self._patience
        self._starts.setdefault(pod.uid, _Start(pod, waits_since, until)).is_asked = False

    def end(self, uid: str) -> None:
        """Notes that an answer has come."""
        self._starts.pop(uid, None)

    def seen(self) -> list[tuple[Pod, float]]:
        """Returns the stand-ins of Jobs that are seen started, and since when these waited; knows them no longer.

        Nor those that are gone, or stand in line again.
        """
        settled = [start for start in self._starts.values() if not (start.is_asked or self._is_awaited(start.pod))]
        for start in settled:
            del self._starts[start.pod.uid]
        return [(start.pod, start.waits_since) for start in settled if self._is_made(start.pod)]

    def given_up(self) -> list[Pod]:
        """Returns the stand-ins of Jobs of which nothing was seen or said for too long; knows them no longer."""
        now = self._store.clock()
        over = [start.pod for start in self._starts.values() if not start.is_asked and now >= start.until]
        for pod in over:
            del self._starts[pod.uid]
        return over

    def due(self) -> list[Pod]:
        """Returns the stand-ins of Jobs to ask for again."""
        return [start.pod for start in self._starts.values() if not start.is_asked]

    def ask_again(self, pod: Pod) -> bool:
        """Notes that it is asked for again; returns false if it is settled meanwhile."""
        start = self._starts.get(pod.uid)
        if start is None or not self._is_awaited(pod):
            return False
        start.is_asked = True
        return True

    def _is_awaited(self, pod: Pod) -> bool:
        """Whether room is kept for a Job that is not seen started."""
        cluster = self._store.cluster
        known = cluster.pods.get(pod.uid)
        return known is not None and known.at_gate and pod.uid in cluster.gates.ungated

    def _is_made(self, pod: Pod) -> bool:
        """Whether a Job is seen to run with what was granted."""
        known, of = self._store.cluster.batch_jobs.of_stand_in(pod), pod.stands_for
        return known is not None and of is not None and known.runs > (of.parallelism if of.grows else 0)
