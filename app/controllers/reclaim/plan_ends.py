"""How plans end: their room is released, and what they have cost in vain is counted."""

from dataclasses import replace

import structlog

from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.reclaim.clocks import Clocks
from app.controllers.reclaim.failed_plans import FailedPlans
from app.controllers.reclaim.progress import Progress, ProgressOfPlans
from app.controllers.reclaim.victim_notices import VictimNotices
from app.observability import metrics
from app.store.store import Store
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import reclaim

log = structlog.get_logger(__name__)


class PlanEnds:
    """Ends plans, each with its notices, and notes their progress in their reservations.

    A reservation that was given up stays for a while, so that the next leader waits as long as this one.
    """

    def __init__(
        self,
        store: Store,
        actuator: Actuator,
        clocks: Clocks,
        progress: ProgressOfPlans,
        failures: FailedPlans,
        notices: VictimNotices,
    ) -> None:
        self._store = store
        self._actuator = actuator
        self._clocks = clocks
        self._progress = progress
        self._failures = failures
        self._notices = notices

    async def end(self, reservation: Reservation, outcome: str) -> bool:
        """Ends a reservation and releases the room; returns whether that succeeded."""
        try:
            await self._actuator.unreserve(reservation.name)
        except ActionFailed as failure:
            log.warning("reservation not lifted", pod=reservation.pod.title, error=str(failure))
            return False
        progress = self._progress.end(reservation)
        self._store.cluster.delete_reservation(reservation.name)
        self._store.cluster.failed_evictions.forget(reservation.pod.uid)
        metrics.RECLAIMS.labels(outcome).inc()
        log.info("reclaim ended", pod=reservation.pod.title, outcome=outcome)
        self._notices.lift(reservation, progress)
        return True

    async def end_unneeded(self, reservations: list[Reservation]) -> None:
        """Ends those of some reservations that hold room still, as it is of no use alone."""
        for reservation in reservations:
            if reservation.name in self._store.cluster.reservations.plans:
                await self.end(reservation, "not-needed")

    async def end_for(self, pod: Pod | None, reservation: Reservation) -> None:
        """Ends a reservation for a pod that no longer waits; None for a pod that is gone."""
        is_bound, progress = pod is not None and pod.assigned, self._progress.of(reservation)
        if not await self.end(reservation, "bound" if is_bound else "gone"):
            return
        if pod is not None and is_bound:
            self._store.cluster.in_vain.succeed(pod)
        else:
            self._count_in_vain(reservation, progress, is_its_own_fault=True)

    async def give_up(self, reservation: Reservation, reason: str) -> None:
        """Releases the room, and remembers that the evictions were in vain."""
        mates = reclaim.mates(self._store.cluster, reservation)
        given_up = replace(reservation, failed_at=self._clocks.epoch())
        if await self.note(given_up):
            self._count_in_vain(reservation, self._progress.of(reservation), is_its_own_fault=reason == "not-bound")
            for mate in mates:
                self._count_in_vain(mate, self._progress.of(mate), is_its_own_fault=False)
            progress = self._progress.end(reservation)
            self._store.cluster.upsert_reservation(given_up)
            metrics.RECLAIMS.labels(reason).inc()
            log.warning("reclaim given up", pod=reservation.pod.title, node=reservation.node, reason=reason)
            self._failures.fail(reservation, reason)
            await self.end_unneeded(mates)
            self._notices.lift(reservation, progress)

    async def note(self, reservation: Reservation) -> bool:
        """Writes the progress of a reservation for other replicas; returns whether that succeeded."""
        try:
            await self._actuator.note_progress(reservation)
        except ActionFailed as failure:
            log.warning("reservation not changed", pod=reservation.pod.title, error=str(failure))
            return False
        return True

    async def forget(self, reservation: Reservation) -> None:
        """Removes a reservation that was given up and is of no further use."""
        try:
            await self._actuator.unreserve(reservation.name)
        except ActionFailed as failure:
            log.warning("reservation not removed", pod=reservation.pod.title, error=str(failure))
        else:
            self._store.cluster.delete_reservation(reservation.name)

    def _count_in_vain(self, reservation: Reservation, progress: Progress, *, is_its_own_fault: bool) -> None:
        """Counts victims that ended for a pod that does not run. If that is the pod's own fault, similar pods wait."""
        cluster, pod, now = self._store.cluster, reservation.pod, self._store.clock()
        gone = {victim.uid for victim in reservation.victims} - {
            victim.uid for victim in reclaim.staying(cluster, reservation)
        }
        if gone:
            metrics.IN_VAIN.labels(pod.namespace).inc(cluster.in_vain.count(gone, now))
        if gone and is_its_own_fault:
            cluster.in_vain.fail(pod.namespace, progress.kind, progress.started_at, now)
