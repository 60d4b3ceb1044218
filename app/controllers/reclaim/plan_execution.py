"""Carries plans out: records each, makes its room, and keeps that until the pod is bound."""

import asyncio
from dataclasses import replace

import structlog

from app.actuators.events import Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator, AlreadyThere
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.reclaim.clocks import Clocks
from app.controllers.reclaim.failed_plans import FailedPlans
from app.controllers.reclaim.plan_ends import PlanEnds
from app.controllers.reclaim.progress import Progress, ProgressOfPlans
from app.controllers.reclaim.victim_evictions import BLOCKED_AGAIN, VictimEvictions
from app.controllers.reclaim.victim_notices import VictimNotices
from app.pause import at_leisure
from app.settings import ReclaimSettings
from app.store.store import Store
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import out_of_turn, plan_text, preemptors, reclaim
from policy.preemption.plans import Plan

log = structlog.get_logger(__name__)

SOON = 1.0
"""Seconds for which a pod may be bound by itself, before anything more is written for it."""
LINGERING = 10
"""Multiple of ``reclaim.bindTimeout`` that victims may take to end if their deadline is not known."""


class PlanExecution:
    """The plans that are under way, and which of them are not recorded yet.

    Each is recorded as a Reservation before any eviction, so that the next leader can continue it.
    """

    def __init__(
        self,
        store: Store,
        actuator: Actuator,
        settings: ReclaimSettings,
        clocks: Clocks,
        progress: ProgressOfPlans,
        failures: FailedPlans,
        notices: VictimNotices,
        evictions: VictimEvictions,
        ends: PlanEnds,
    ) -> None:
        self._store = store
        self._actuator = actuator
        self._settings = settings
        self._clocks = clocks
        self._progress = progress
        self._failures = failures
        self._notices = notices
        self._evictions = evictions
        self._ends = ends
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._unrecorded: set[str] = set()

    def go_on(self, group: asyncio.TaskGroup) -> None:
        """Continues all plans in the group, and forgets those that were given up and are of no further use."""
        cluster = self._store.cluster
        for reservation in list(cluster.reservations.plans.values()):
            self._tasks.begin(group, reservation.name, self._follow(reservation))
        for reservation in reclaim.obsolete(cluster):
            self._tasks.begin(group, reservation.name, self._ends.forget(reservation))

    def begin(self, group: asyncio.TaskGroup, plans: list[Plan]) -> None:
        """Starts plans that are of use only together, unless they have to wait for earlier ones."""
        cluster = self._store.cluster
        if not plans or out_of_turn.must_wait(cluster, plans):
            return
        since = self._clocks.epoch
        begun = [(plan, reclaim.reservation_of(plan, since(), self._failures.number(plan.pod))) for plan in plans]
        if any(reservation.name in self._tasks for _, reservation in begun):
            return
        for _, reservation in begun:
            cluster.upsert_reservation(reservation)
            self._unrecorded.add(reservation.name)
        # Plans for several pods are made one after the other, so the first may be outdated.
        as_of = cluster.generations.plans if len(begun) == 1 else None
        for plan, reservation in begun:
            self._tasks.begin(group, reservation.name, self._start(plan, reservation, as_of))

    async def _start(self, plan: Plan, reservation: Reservation, as_of: int | None) -> None:
        """Records a plan, and evicts for it. If it cannot be recorded, or another is, nobody is evicted.

        ``as_of``: the generation of plans for which the plan is known to be valid.
        """
        cluster = self._store.cluster
        try:
            await self._actuator.reserve(reservation)
        except BaseException as failure:  # also if the lead was lost: the watch shows what was recorded all the same
            mates = reclaim.mates(cluster, reservation)
            if cluster.reservations.plans.get(reservation.name) is reservation:
                cluster.delete_reservation(reservation.name)
            if not isinstance(failure, ActionFailed):
                raise
            log.warning("reservation not made", pod=reservation.pod.title, error=str(failure))
            if not isinstance(failure, AlreadyThere):
                if reservation.pod.uid in cluster.pods:
                    cluster.failed_evictions.note(reservation.pod.uid, str(failure))
                self._failures.fail(reservation, "not-recorded")
                await self._ends.end_unneeded(mates)
            return
        finally:
            self._unrecorded.discard(reservation.name)
        names = ", ".join(victim.title for victim in reservation.victims)
        grounds = "; ".join(sorted({plan_text.why_evicted(cluster, reservation, victim) for victim in plan.victims}))
        price = plan.lost.text
        costs = {"price": price} if price else {}
        log.info("reclaim", pod=reservation.pod.title, node=reservation.node, victims=names, **costs)
        staying = reclaim.staying(cluster, reservation)
        progress = self._progress.of(reservation)
        if plan.victims:
            why = "; ".join(filter(None, (grounds, price)))
            message = f"to make room on node {plan.node} these go: {names} ({why})"
            progress.announcement = Event(about_pod(plan.pod), "ReclaimStarted", message)
        if cluster.generations.plans == as_of and self._is_as_planned(reservation, staying):
            await self._evict(reservation, progress)
        else:
            await self._follow(reservation)

    async def _follow(self, reservation: Reservation) -> None:
        """Continues a reservation, or ends it."""
        cluster, now = self._store.cluster, self._store.clock()
        pod = cluster.pods.get(reservation.pod.uid)
        if pod is None or not cluster.reservations.is_in_force(reservation):
            await self._ends.end_for(pod, reservation)
            return
        if reclaim.is_lost(cluster, reservation):
            await self._ends.end(reservation, "node-lost")
            return
        if reclaim.stuck_victims(cluster, reservation):
            await self._ends.give_up(reservation, "victim-stuck")
            return
        progress, staying = self._progress.of(reservation), reclaim.staying(cluster, reservation)
        there = [cluster.pods[victim.uid] for victim in reservation.victims if victim.uid in cluster.pods]
        if staying and now >= progress.next_attempt:
            if not await self._is_still_planned(reservation, progress, staying):
                await self._ends.end(reservation, "not-needed")
                return
            if self._store.unready() or reservation.name not in cluster.reservations.plans:
                return
            await self._evict(reservation, progress)
        elif not any(victim.assigned for victim in there) and not reclaim.waits_for_others(cluster, reservation):
            await self._wait_for_binding(reservation, pod, progress)
        elif not staying and all(victim.deletion_time for victim in there):
            return  # their deadline is known
        elif now - progress.started_at > self._settings.bind_timeout * LINGERING + self._settings.notice:
            await self._ends.give_up(reservation, "lingering")

    async def _is_still_planned(self, reservation: Reservation, progress: Progress, staying: list[Pod]) -> bool:
        """Whether a plan still holds. It is checked before each eviction; while its notice runs, only after changes."""
        cluster = self._store.cluster
        notice_runs = self._settings.notice > 0 and self._clocks.epoch() < self._notices.evict_at(reservation)
        if notice_runs and progress.valid_as_of == cluster.generations.plans:
            return True
        holds = await at_leisure(reclaim.still_planned_steps(cluster, reservation, staying))
        progress.valid_as_of = cluster.generations.plans if holds else None
        return holds

    def _is_as_planned(self, reservation: Reservation, staying: list[Pod]) -> bool:
        """Whether a new plan needs no second check: all victims are there, and the pod has no room without it."""
        cluster = self._store.cluster
        return (
            len(staying) == len(reservation.victims)
            and cluster.reservations.is_in_force(reservation)
            and not preemptors.has_room(cluster, cluster.pods[reservation.pod.uid])
        )

    async def _evict(self, reservation: Reservation, progress: Progress) -> None:
        """Evicts the victims, or tells them when that will be, as long as their notice runs.

        Evicts nobody until the plans for all of its gang are recorded.
        """
        now = self._store.clock()
        left = self._notices.evict_at(reservation) - self._clocks.epoch() if self._settings.notice else 0.0
        if left > 0:
            progress.next_attempt = now + min(BLOCKED_AGAIN, left)
            self._store.cluster.failed_evictions.forget(reservation.pod.uid)
            self._notices.give(reservation, progress)
        elif all(mate.name not in self._unrecorded for mate in reclaim.mates(self._store.cluster, reservation)):
            granted = await self._evictions.evict_all(reservation, progress)
            if not self._store.unready():  # otherwise some were not asked
                await self._mind_failures(reservation, progress, now, failed=not granted)

    async def _mind_failures(self, reservation: Reservation, progress: Progress, now: float, *, failed: bool) -> None:
        """Notes failures, and gives up a reservation that has failed for too long."""
        if not failed:
            if progress.failing_since is not None:
                progress.failing_since = None
                await self._ends.note(replace(reservation, blocked_since=0.0))
        elif progress.failing_since is None:
            progress.failing_since = now
            await self._ends.note(replace(reservation, blocked_since=self._clocks.epoch()))
        elif now - progress.failing_since > self._settings.bind_timeout:
            await self._ends.give_up(reservation, "blocked")

    async def _wait_for_binding(self, reservation: Reservation, pod: Pod, progress: Progress) -> None:
        now = self._store.clock()
        if progress.freed_at is None:
            progress.freed_at = now
        if now - progress.freed_at < SOON:  # most pods are bound meanwhile
            return
        if not progress.noted and not reservation.freed_at:
            freed_at = self._clocks.epoch() - (now - progress.freed_at)
            progress.noted = await self._ends.note(replace(reservation, freed_at=freed_at))
        if not progress.nominated and pod.nominated_node != reservation.node:
            progress.nominated = True  # once: each write would wake the pod
            try:
                await self._actuator.nominate(pod, reservation.node)
            except ActionFailed as failure:
                log.debug("not nominated", pod=reservation.pod.title, error=str(failure))
        if reclaim.is_room_taken(self._store.cluster, reservation):
            await self._ends.give_up(reservation, "room-taken")
        elif now - progress.freed_at > self._settings.bind_timeout:
            await self._ends.give_up(reservation, "not-bound")
