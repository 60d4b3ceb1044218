"""Plans that have failed: how often for each pod, and when the next is due."""

from dataclasses import dataclass

from app.controllers.reclaim.clocks import Clocks
from app.observability import metrics
from app.settings import ReclaimSettings
from app.store.store import Store
from policy.cluster import in_vain
from policy.objects.pod import Pod
from policy.objects.reservation import RECLAIM, Reservation

GIVE_UP_TWICE = 2
"""Failed plans after which a pod waits for a change that could help it."""


@dataclass(slots=True)
class Backoff:
    """Failed plans for a pod, the time of the next, and the number of changes that could have helped it until then."""

    failures: int = 0
    until: float = 0.0
    helped: int = 0


class FailedPlans:
    """The backoff of each pod whose plans have failed, by UID."""

    def __init__(self, store: Store, settings: ReclaimSettings, clocks: Clocks) -> None:
        self._store = store
        self._settings = settings
        self._clocks = clocks
        self._backoff: dict[str, Backoff] = {}

    def number(self, pod: Pod) -> int:
        """Returns how many plans for a pod have failed."""
        backoff = self._backoff.get(pod.uid)
        return backoff.failures if backoff is not None else 0

    def has_to_wait(self, pod: Pod) -> bool:
        """Whether a plan for the pod failed too recently."""
        backoff = self._backoff.get(pod.uid)
        return backoff is not None and self._clocks.now() < backoff.until

    def waits_for_change(self, pod: Pod) -> bool:
        """Whether plans for the pod failed too often, and nothing that could help it has happened since."""
        backoff = self._backoff.get(pod.uid)
        if backoff is None or backoff.failures < GIVE_UP_TWICE:
            return False
        return backoff.helped == self._store.cluster.hints.count(pod)

    def fail(self, reservation: Reservation, reason: str) -> None:
        """Counts a plan that has failed."""
        backoff = self._backoff.setdefault(reservation.pod.uid, Backoff())
        backoff.failures += 1
        backoff.until = self._clocks.now() + self._pause_after(backoff.failures)
        backoff.helped = self._count_help(reservation.pod.uid)
        metrics.RECLAIM_FAILURES.labels(reason).inc()

    def adopt(self) -> None:
        """Takes over from an earlier leader how often, and when last, plans for a pod have failed.

        Changes since then are not known, so the next one counts.
        """
        for reservation in self._store.cluster.reservations.given_up.values():
            failures, uid = reservation.failures + 1, reservation.pod.uid
            backoff = self._backoff.get(uid)
            if reservation.reason == RECLAIM and (backoff is None or backoff.failures < failures):
                until = self._clocks.on_store(reservation.failed_at) + self._pause_after(failures)
                self._backoff[uid] = Backoff(failures, until, self._count_help(uid))

    def forget_what_is_gone(self) -> None:
        """Forgets pods that wait no more."""
        pods = self._store.cluster.pods
        self._backoff = {uid: each for uid, each in self._backoff.items() if uid in pods and pods[uid].pending}

    def _count_help(self, uid: str) -> int:
        pod = self._store.cluster.pods.get(uid)
        return self._store.cluster.hints.count(pod) if pod is not None else 0

    def _pause_after(self, failures: int) -> float:
        return in_vain.pause(self._settings.backoff, failures)
