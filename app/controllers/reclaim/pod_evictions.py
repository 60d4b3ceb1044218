"""Evicts single pods for a plan, as the disruption budgets allow, and past those that never allow it."""

import structlog

from app.actuators.events import Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.reclaim.budget_patience import BudgetPatience
from app.controllers.reclaim.progress import Progress
from app.observability import evictions, metrics
from app.settings import ReclaimSettings
from app.store.store import Store
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import plan_text, reclaim

log = structlog.get_logger(__name__)


class PodEvictions:
    """Evicts victims that are not taken back with their Job, and writes an Event on each."""

    def __init__(self, store: Store, actuator: Actuator, settings: ReclaimSettings, patience: BudgetPatience) -> None:
        self._store = store
        self._actuator = actuator
        self._settings = settings
        self._patience = patience

    async def evict(self, victim: Pod, reservation: Reservation, progress: Progress) -> None:
        """Evicts a victim, and tells it why. Raises Blocked, ActionFailed."""
        cluster = self._store.cluster
        why = plan_text.why_evicted(cluster, reservation, victim)  # while it is there
        job = reclaim.lost_by(cluster, reservation).failing.get(victim.uid, "")
        gone = evictions.eviction_of(cluster, victim, "reclaim", why, reservation.pod.title)
        cluster.leaving.ask_to_go(victim.uid)
        try:
            await self._evict_or_delete(victim, reservation)
        except BaseException:
            cluster.leaving.may_stay(victim.uid)
            raise
        self._store.evictions.note(gone)
        metrics.EVICTIONS.labels("reclaim", "evicted").inc()
        message = f"evicted to make room for {reservation.pod.title}: {why}{_price(job, progress)}"
        self._actuator.report(Event(about_pod(victim), "Reclaimed", message, evicted=(gone,)))

    async def _evict_or_delete(self, victim: Pod, reservation: Reservation) -> None:
        """Evicts a victim, or deletes it if a budget that never allows evictions has blocked for ``budgetPatience``."""
        name = reclaim.name_of(victim)
        grace = self._settings.max_grace
        grace = grace if grace is not None and victim.grace > grace else None
        try:
            await self._actuator.evict(name, grace)
        except ActionFailed:
            if not self._patience.is_over_with(victim, reservation):
                raise
            await self._actuator.delete(name, grace)
            budgets = ", ".join(sorted(each.name for each in self._store.cluster.budgets.keeping_for_good(victim)))
            log.info("deleted past a budget that never allows an eviction", victim=victim.title, budgets=budgets)


def _price(job: str, progress: Progress) -> str:
    """Says that a Job fails by an eviction; counts the Job once."""
    if job and job not in progress.failing_jobs:
        progress.failing_jobs.add(job)
        metrics.JOBS_FAILED.inc()
    return f"; evicting it fails Job {job}" if job else ""
