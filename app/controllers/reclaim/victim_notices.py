"""Tells victims when they will be evicted, and those that stay after all that they will not (``reclaim.notice``)."""

from app.actuators.events import Event, about_pod
from app.actuators.protocol import Actuator
from app.controllers.reclaim.job_evictions import PODS_OF_A_JOB
from app.controllers.reclaim.notices import Notices
from app.controllers.reclaim.progress import Progress, ProgressOfPlans
from app.settings import ReclaimSettings
from app.store.store import Store
from app.times import rfc3339
from policy.objects.reservation import Reservation
from policy.preemption import plan_text, reclaim


class VictimNotices:
    """Decides whom a plan tells what, and hands it to ``Notices``, which writes it on the pods."""

    def __init__(
        self, store: Store, actuator: Actuator, settings: ReclaimSettings, notices: Notices, progress: ProgressOfPlans
    ) -> None:
        self._store = store
        self._actuator = actuator
        self._settings = settings
        self._notices = notices
        self._progress = progress

    def evict_at(self, reservation: Reservation) -> float:
        """Returns when the victims of a plan are evicted; the next leader finds the same time in the reservation."""
        return reservation.since + self._settings.notice

    def give(self, reservation: Reservation, progress: Progress) -> None:
        """Tells the victims, and pods that go along, when they will be evicted, once. The time holds in any case."""
        cluster, at = self._store.cluster, self.evict_at(reservation)
        if progress.noticed.issuperset(victim.uid for victim in reclaim.staying(cluster, reservation)):
            return
        for victim, along in reclaim.with_jobs(cluster, reservation, PODS_OF_A_JOB):
            why = plan_text.why_evicted(cluster, reservation, victim)
            message = f"it will be evicted at {rfc3339(at)} to make room for {reservation.pod.title}: {why}"
            for pod in (victim, *along):
                if pod.uid not in progress.noticed:
                    progress.noticed.add(pod.uid)
                    self._actuator.report(Event(about_pod(pod), "EvictionNotice", message))
                    self._notices.note(reclaim.name_of(pod), at)

    def lift(self, reservation: Reservation, progress: Progress | None) -> None:
        """Takes back that the victims of a plan that has ended will be evicted, and those who would go along.

        Whom another plan has told so is told its time. ``progress``: that of the plan, if this replica began with it.
        """
        if not self._settings.notice:
            return
        cluster, told = self._store.cluster, set(progress.noticed if progress is not None else ())
        for victim, along in reclaim.with_jobs(cluster, reservation, PODS_OF_A_JOB):
            told.update(pod.uid for pod in (victim, *along))
        others = [
            (self.evict_at(plan), known.noticed)
            for plan in cluster.reservations.plans.values()
            if (known := self._progress.known(plan.name)) is not None
        ]
        for pod in filter(None, map(cluster.pods.get, told)):
            if not (pod.finished or cluster.leaving.has_been_asked(pod.uid)):
                at = min((at for at, noticed in others if pod.uid in noticed), default=None)
                self._notices.note(reclaim.name_of(pod), at)
