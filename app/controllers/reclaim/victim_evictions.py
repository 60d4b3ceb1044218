"""Evicts the victims of a plan one after the other, and tells why one stays."""

import structlog

from app.actuators.events import IS_TRIED_AGAIN, Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator, Blocked
from app.controllers.reclaim.broken_gangs import BrokenGangs
from app.controllers.reclaim.job_evictions import JobEvictions
from app.controllers.reclaim.pod_evictions import PodEvictions
from app.controllers.reclaim.progress import Progress
from app.observability import metrics
from app.store.store import Store
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import reclaim

log = structlog.get_logger(__name__)

BLOCKED_AGAIN = 2.0
"""Seconds between attempts at a pod that a disruption budget protects."""
LONGEST_REASON = 300
"""Maximum number of characters of an API server's reason in an Event: webhooks write some of them."""


class VictimEvictions:
    """Each victim goes alone or with its Job. Gangs that lose members are noted in ``broken``."""

    def __init__(
        self, store: Store, actuator: Actuator, pods: PodEvictions, jobs: JobEvictions, broken: BrokenGangs
    ) -> None:
        self._store = store
        self._actuator = actuator
        self._pods = pods
        self._jobs = jobs
        self._broken = broken

    async def evict_all(self, reservation: Reservation, progress: Progress) -> bool:
        """Evicts the victims that were not evicted yet, and writes an Event on each; returns whether none was refused.

        Evicts none while another victim of the plan, or of a plan for its gang, is known to be blocked.
        """
        cluster, granted = self._store.cluster, True
        evicted, taken_back = list[Pod](), set[str]()
        progress.next_attempt = self._store.clock() + BLOCKED_AGAIN
        if progress.announcement is not None:  # before any eviction
            self._actuator.report(progress.announcement)
            progress.announcement = None
        held_back = reclaim.held_back(cluster, reservation)
        if held_back:
            granted = False
            metrics.EVICTIONS.labels("reclaim", "blocked").inc()
            if progress.failing_since is None:
                self._say_who_stays(reservation, held_back[0])
        for victim in () if held_back else reclaim.in_order_of_eviction(cluster, reservation):
            if self._store.unready() or (reservation.name not in cluster.reservations.plans and not evicted):
                break  # an eviction may take long
            whole = cluster.batch_jobs.whole(victim)
            asked = cluster.leaving.has_been_asked(victim.uid) or (whole is not None and whole.uid in taken_back)
            if asked or not reclaim.still_has_to_go(cluster, reservation, victim, evicted):
                continue
            if not await self._evict(victim, reservation, progress):
                granted = False
                break
            evicted.append(victim)
            taken_back |= {whole.uid} if whole is not None else set()  # which of its pods go is seen later
        self._broken.note(evicted)
        return granted

    async def _evict(self, victim: Pod, reservation: Reservation, progress: Progress) -> bool:
        """Evicts one victim, or takes its Job back; returns whether that was granted."""
        cluster = self._store.cluster
        whole = cluster.batch_jobs.whole(victim)
        lowering = reclaim.lowering(cluster, reservation, whole) if whole is not None else None
        try:
            if whole is None:
                await self._pods.evict(victim, reservation, progress)
            elif lowering is None:
                await self._jobs.suspend(whole, victim, reservation)
            else:
                await self._jobs.lower(whole, *lowering, reservation)
        except ActionFailed as failure:
            self._note_refusal(victim if lowering is None else lowering[0][0], failure, reservation, progress)
            return False
        cluster.failed_evictions.forget(reservation.pod.uid)
        return True

    def _note_refusal(self, victim: Pod, failure: ActionFailed, reservation: Reservation, progress: Progress) -> None:
        """Counts and tells that a victim stays for now."""
        outcome = "blocked" if isinstance(failure, Blocked) else "failed"
        metrics.EVICTIONS.labels("reclaim", outcome).inc()
        log.info("not evicted", victim=victim.title, outcome=outcome, error=str(failure))
        reason = "" if outcome == "blocked" else str(failure)
        if reason and reservation.pod.uid in self._store.cluster.pods:
            self._store.cluster.failed_evictions.note(reservation.pod.uid, reason)
        else:
            self._store.cluster.failed_evictions.forget(reservation.pod.uid)
        if progress.failing_since is None:
            self._say_who_stays(reservation, victim, reason)

    def _say_who_stays(self, reservation: Reservation, victim: Pod, failure: str = "") -> None:
        """Tells whose eviction a disruption budget does not allow, or what the API server has against it."""
        pod = self._store.cluster.pods.get(reservation.pod.uid)
        if pod is not None:
            failed = f"{IS_TRIED_AGAIN}{failure[:LONGEST_REASON]}"
            why = failed if failure else " waits for its disruption budget"
            message = f"eviction of {victim.title}{why}"
            self._actuator.report(Event(about_pod(pod), "ReclaimBlocked", message, warning=bool(failure)))
