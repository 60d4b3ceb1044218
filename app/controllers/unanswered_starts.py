"""Starts of Jobs whose answers were lost: the API server may have made them all the same. A part of the gates.

Room stays kept for such a Job until the Job is seen started, or the API server answers when it is asked again.
Otherwise others would start in that room, and an elastic Job would grow once more.
"""

from dataclasses import dataclass

from app.store.store import Store
from policy.objects.pod import Pod


@dataclass(slots=True)
class _Start:
    """A start whose answer was lost; ``pod`` is the stand-in as it was granted.

    ``waits_since``: since when its Job has waited, in seconds since the epoch, or 0 if that is not known. ``until``:
    when room is no longer kept if no answer comes, in seconds by the clock of the store. ``is_asked``: the API server
    is being asked again.
    """

    pod: Pod
    waits_since: float
    until: float
    is_asked: bool = False


class UnansweredStarts:
    """The starts of which it is not known whether they were made.

    ``patience``: seconds without an answer after which one is taken not to have been made.
    """

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
        """Returns the stand-ins of Jobs that are seen started, each with since when its Job waited, and forgets them.

        It also forgets those that are gone, or wait in their line again.
        """
        settled = [start for start in self._starts.values() if not (start.is_asked or self._is_awaited(start.pod))]
        for start in settled:
            del self._starts[start.pod.uid]
        return [(start.pod, start.waits_since) for start in settled if self._is_made(start.pod)]

    def given_up(self) -> list[Pod]:
        """Returns the stand-ins of Jobs whose starts were neither seen nor answered for too long, and forgets them."""
        now = self._store.clock()
        over = [start.pod for start in self._starts.values() if not start.is_asked and now >= start.until]
        for pod in over:
            del self._starts[pod.uid]
        return over

    def due(self) -> list[Pod]:
        """Returns the stand-ins of the Jobs about which the API server is to be asked again."""
        return [start.pod for start in self._starts.values() if not start.is_asked]

    def ask_again(self, pod: Pod) -> bool:
        """Notes that the API server is being asked again; returns false if that has become needless."""
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
