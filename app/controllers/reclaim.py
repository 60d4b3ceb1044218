"""Reclaims lent resources: evicts pods for entitled pods, and keeps the room until these are bound.

Every plan is recorded as a Reservation before any eviction, so that the next leader can continue it.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf

import structlog

from app.actuators.events import Event, about_job, about_pod
from app.actuators.protocol import ActionFailed, Actuator, AlreadyThere, Blocked
from app.controllers.broken_gangs import BrokenGangs
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.notices import Notices
from app.observability import evictions, metrics
from app.observability.evictions import JOB_TAKEN_BACK, Evicted
from app.pause import at_leisure
from app.settings import ReclaimSettings
from app.store.store import Store
from app.times import rfc3339
from policy.cluster import in_vain
from policy.cluster.cluster import Cluster
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod
from policy.objects.reservation import RECLAIM, PodName, Reservation
from policy.preemption import joint_plans, out_of_turn, plan_text, preemptors, reclaim, victims
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.preemptors import Shape

log = structlog.get_logger(__name__)

INTERVAL = 0.25
"""Seconds between looks."""
AGAIN = (0.5, 5.0)
"""Seconds until a question is asked again for which no victims were found: at first, and at most (doubling)."""
BLOCKED_AGAIN = 2.0
"""Seconds between attempts at a pod that a disruption budget protects."""
LONGEST_REASON = 300
"""Maximum number of characters of an API server's reason in an Event: webhooks write some of them."""
SOON = 1.0
"""Seconds for which a pod may be bound by itself, before anything more is written for it."""
LINGERING = 10
"""Multiple of ``reclaim.bindTimeout`` that victims may take to end if their deadline is not known."""
NOTED = 100
"""Maximum number of pods of a Job whose end is noted, or that are told of it, when the Job is taken back."""
GIVE_UP_TWICE = 2
"""Failed plans after which a pod waits for a change that could help it."""


@dataclass(slots=True)
class Progress:
    """Progress of a reservation, on the store's clock. The reservation itself stores what the next leader must know.

    ``valid_as_of`` is the generation of plans in which it was last found to be valid, while a notice runs.
    ``failing_jobs`` are the Jobs that failed by its evictions, ``noticed`` the pods that were told beforehand.
    ``announcement``: the Event on its victims, not written yet. ``kind``: the kind of pods that a failure counts for;
    None if the pod was gone when this replica started with it.
    """

    started_at: float
    kind: in_vain.FailureKey | None = None
    freed_at: float | None = None
    failing_since: float | None = None
    next_attempt: float = 0.0
    nominated: bool = False
    noted: bool = False
    valid_as_of: int | None = None
    failing_jobs: set[str] = field(default_factory=set)
    noticed: set[str] = field(default_factory=set)
    announcement: Event | None = None


@dataclass(slots=True)
class Backoff:
    """Failed plans for a pod, the time of the next, and the number of changes that could have helped it until then."""

    failures: int = 0
    until: float = 0.0
    helped: int = 0


@dataclass(slots=True)
class Question:
    """A shape of pods for which nobody could be evicted: the time of the next question, and the wait after it.

    ``moment`` is the last time for which it was asked early, as somebody was protected until then.
    """

    again_at: float = 0.0
    wait: float = field(default=AGAIN[0])
    moment: float = -inf

    def ask_early(self, moment: float) -> None:
        """Asks at a moment before its time, unless that was done lately: pods of a tenant may start all the time."""
        if moment < self.again_at and moment >= self.moment + AGAIN[1]:
            self.again_at = self.moment = moment


class Reclaim:
    """Handles waiting pods and their reservations. For the leader only."""

    def __init__(
        self,
        store: Store,
        actuator: Actuator,
        settings: ReclaimSettings,
        epoch: Callable[[], float] = time.time,
    ) -> None:
        """``epoch`` returns the seconds since the epoch, in which reservations are written."""
        self._epoch = epoch
        self._store = store
        self._actuator = actuator
        self._settings = settings
        self._progress: dict[str, Progress] = {}
        self._backoff: dict[str, Backoff] = {}
        self._questions: dict[tuple[Shape, int], Question] = {}
        self._kept_since: dict[str, float] = {}
        self._unrecorded: set[str] = set()
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._broken = BrokenGangs(store, actuator, settings)
        self._notices = Notices(store, actuator)

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(INTERVAL)
                await self.look(group)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Does one round. Slow work runs in the group, so that a slow plan delays no other."""
        if self._store.unready() or self._store.cluster.unsettled:
            return
        self._broken.clean_up(group)
        self._notices.write(group)
        self._remember_failures()
        for reservation in list(self._store.cluster.reservations.plans.values()):
            self._tasks.begin(group, reservation.name, self._follow(reservation))
        for reservation in reclaim.obsolete(self._store.cluster):
            self._tasks.begin(group, reservation.name, self._forget(reservation))
        looked_at: set[str] = set()
        waiting = preemptors.waiting(self._store.cluster, self._store.clock(), self._settings.delay)
        for pod in waiting:
            if pod.uid not in looked_at:
                members = preemptors.together_with(self._store.cluster, pod, waiting)
                looked_at.update(member.uid for member in members)
                plans = await self._plans(members)
                if self._store.unready() or self._store.cluster.unsettled:
                    return
                self._begin(group, plans)
                await asyncio.sleep(0)
        self._forget_what_is_gone()

    def _begin(self, group: asyncio.TaskGroup, plans: list[Plan]) -> None:
        """Starts plans that are of use only together, unless they have to wait for earlier ones."""
        if not plans or out_of_turn.must_wait(self._store.cluster, plans):
            return
        begun = []
        for plan in plans:
            backoff = self._backoff.get(plan.pod.uid)
            begun.append((plan, reclaim.reservation_of(plan, self._epoch(), backoff.failures if backoff else 0)))
        if any(reservation.name in self._tasks for _, reservation in begun):
            return
        for _, reservation in begun:
            self._store.cluster.upsert_reservation(reservation)
            self._unrecorded.add(reservation.name)
        # Plans for several pods are made one after the other, so the first may be outdated.
        as_of = self._store.cluster.generations.plans if len(begun) == 1 else None
        for plan, reservation in begun:
            self._tasks.begin(group, reservation.name, self._start(plan, reservation, as_of))

    async def _plans(self, members: list[Pod]) -> list[Plan]:
        """Returns a plan for each of these pods, if a search is due and all of them can be planned for."""
        cluster, now = self._store.cluster, self._store.clock()
        current = [cluster.pods.get(member.uid) for member in members]
        pods = [pod for pod in current if pod is not None and self._may_be_planned_for(pod)]
        if not pods or len(pods) < len(members):
            return []
        shape = preemptors.shape_of(pods[0], cluster), len(pods)
        question = self._questions.get(shape)
        if question is not None and now < question.again_at:
            return []
        result = await self._look_for_plans(pods)
        if isinstance(result, list):
            self._questions.pop(shape, None)
            now_there = [cluster.pods.get(pod.uid) for pod in pods]  # the search took time
            return result if all(pod is not None and self._may_be_planned_for(pod) for pod in now_there) else []
        question = self._questions.setdefault(shape, Question())
        question.again_at = now + question.wait
        if result.moments:  # when somebody may go whom min-run-time protects now
            question.ask_early(max(now + AGAIN[0], result.moments[0] - cluster.epoch))
        question.wait = min(question.wait * 2, AGAIN[1])
        metrics.RECLAIM_WITHOUT_PLAN.labels(result.reason).inc()
        if not result.node and result.reason != "room":  # so room held for other members of its gang is held in vain
            await self._end_all(reclaim.mates_of(cluster, pods[0]), "not-needed")
        return []

    async def _look_for_plans(self, pods: list[Pod]) -> list[Plan] | NoPlan:
        cluster = self._store.cluster
        if len(pods) == 1:
            result = await at_leisure(victims.search_steps(cluster, pods[0]))
            return [result] if isinstance(result, Plan) else result
        return await at_leisure(joint_plans.plans_for_all_steps(cluster, pods))

    def _may_be_planned_for(self, pod: Pod) -> bool:
        """Whether the pod still waits, and has not failed too often or too recently."""
        cluster, backoff = self._store.cluster, self._backoff.get(pod.uid)
        if not pod.pending or cluster.is_expected(pod.uid) or self._store.clock() < cluster.in_vain.waits_until(pod):
            return False
        if backoff is None:
            return True
        given_up = backoff.failures >= GIVE_UP_TWICE and backoff.helped == cluster.hints.count(pod)
        return (not given_up or self._is_patience_over(pod)) and self._store.clock() >= backoff.until

    def _is_patience_over(self, pod: Pod) -> bool:
        """Whether budgets that never allow an eviction have blocked this pod for ``reclaim.budgetPatience``."""
        since, patience = self._kept_since.get(pod.uid), self._settings.budget_patience
        return since is not None and patience is not None and self._store.clock() >= since + patience

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
            log.warning("reservation not made", pod=_text(reservation.pod), error=str(failure))
            if not isinstance(failure, AlreadyThere):
                self._fail(reservation, "not-recorded")
                await self._end_all(mates, "not-needed")
            return
        finally:
            self._unrecorded.discard(reservation.name)
        names = ", ".join(_text(victim) for victim in reservation.victims)
        grounds = "; ".join(sorted({plan_text.why_evicted(cluster, reservation, victim) for victim in plan.victims}))
        price = plan.lost.text
        costs = {"price": price} if price else {}
        log.info("reclaim", pod=_text(reservation.pod), node=reservation.node, victims=names, **costs)
        staying = reclaim.staying(cluster, reservation)
        progress = self._progress_of(reservation)
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
            await self._finish(reservation, pod)
            return
        if reclaim.is_lost(cluster, reservation):
            await self._end(reservation, "node-lost")
            return
        if reclaim.stuck_victims(cluster, reservation):
            await self._give_up(reservation, "victim-stuck")
            return
        progress, staying = self._progress_of(reservation), reclaim.staying(cluster, reservation)
        there = [cluster.pods[victim.uid] for victim in reservation.victims if victim.uid in cluster.pods]
        if staying and now >= progress.next_attempt:
            if not await self._is_still_planned(reservation, progress, staying):
                await self._end(reservation, "not-needed")
                return
            if self._store.unready() or reservation.name not in cluster.reservations.plans:
                return
            await self._evict(reservation, progress)
        elif not any(victim.assigned for victim in there) and not reclaim.waits_for_others(cluster, reservation):
            await self._wait_for_binding(reservation, pod, progress)
        elif not staying and all(victim.deletion_time for victim in there):
            return  # their deadline is known
        elif now - progress.started_at > self._settings.bind_timeout * LINGERING + self._settings.notice:
            await self._give_up(reservation, "lingering")

    async def _is_still_planned(self, reservation: Reservation, progress: Progress, staying: list[Pod]) -> bool:
        """Whether a plan still holds. It is checked before each eviction; while its notice runs, only after changes."""
        cluster = self._store.cluster
        notice_runs = self._settings.notice > 0 and self._epoch() < self._evict_at(reservation)
        if notice_runs and progress.valid_as_of == cluster.generations.plans:
            return True
        holds = await at_leisure(reclaim.still_planned_steps(cluster, reservation, staying))
        progress.valid_as_of = cluster.generations.plans if holds else None
        return holds

    async def _finish(self, reservation: Reservation, pod: Pod | None) -> None:
        """Ends a reservation for a pod that no longer waits; None for a pod that is gone."""
        is_bound, progress = pod is not None and pod.assigned, self._progress_of(reservation)
        if not await self._end(reservation, "bound" if is_bound else "gone"):
            return
        if pod is not None and is_bound:
            self._store.cluster.in_vain.succeed(pod)
        else:
            self._count_in_vain(reservation, progress, is_its_own_fault=True)

    def _is_as_planned(self, reservation: Reservation, staying: list[Pod]) -> bool:
        """Whether a new plan needs no second check: all victims are there, and the pod has no room without it."""
        cluster = self._store.cluster
        return (
            len(staying) == len(reservation.victims)
            and cluster.reservations.is_in_force(reservation)
            and not preemptors.has_room(cluster, cluster.pods[reservation.pod.uid])
        )

    async def _evict(self, reservation: Reservation, progress: Progress) -> None:
        """Evicts the victims, or tells them when that will be, as long as their notice runs."""
        left = self._evict_at(reservation) - self._epoch() if self._settings.notice else 0.0
        if left > 0:
            progress.next_attempt = self._store.clock() + min(BLOCKED_AGAIN, left)
            self._give_notice(reservation, progress)
        else:
            await self._evict_now(reservation, progress)

    async def _evict_now(self, reservation: Reservation, progress: Progress) -> None:
        """Evicts the victims that were not evicted yet, and writes an Event on each.

        Evicts none while another victim of the plan, or of a plan for its gang, is known to be blocked.
        """
        cluster, now, failed = self._store.cluster, self._store.clock(), False
        evicted, taken_back = list[Pod](), set[str]()
        if any(mate.name in self._unrecorded for mate in reclaim.mates(cluster, reservation)):
            return
        progress.next_attempt = now + BLOCKED_AGAIN
        if progress.announcement is not None:  # before any eviction
            self._actuator.report(progress.announcement)
            progress.announcement = None
        held_back = reclaim.held_back(cluster, reservation)
        if held_back:
            failed = True
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
            if not await self._ask_to_go(victim, reservation, progress):
                failed = True
                break
            evicted.append(victim)
            taken_back |= {whole.uid} if whole is not None else set()  # which of its pods go is seen later
        self._broken.note(evicted)
        if not self._store.unready():  # otherwise some were not asked
            await self._mind_failures(reservation, progress, now, failed=failed)

    def _evict_at(self, reservation: Reservation) -> float:
        """Returns when the victims of a plan are evicted; the next leader finds the same time in the reservation."""
        return reservation.since + self._settings.notice

    def _give_notice(self, reservation: Reservation, progress: Progress) -> None:
        """Tells the victims, and pods that go along, when they will be evicted, once. The time holds in any case."""
        cluster, at = self._store.cluster, self._evict_at(reservation)
        if progress.noticed.issuperset(victim.uid for victim in reclaim.staying(cluster, reservation)):
            return
        for victim, along in reclaim.with_jobs(cluster, reservation, NOTED):
            why = plan_text.why_evicted(cluster, reservation, victim)
            message = f"it will be evicted at {rfc3339(at)} to make room for {_text(reservation.pod)}: {why}"
            for pod in (victim, *along):
                if pod.uid not in progress.noticed:
                    progress.noticed.add(pod.uid)
                    self._actuator.report(Event(about_pod(pod), "EvictionNotice", message))
                    self._notices.note(reclaim.name_of(pod), at)

    def _lift_notice(self, reservation: Reservation, progress: Progress | None) -> None:
        """Takes back that the victims of a plan that has ended will be evicted, and those who would go along.

        Whom another plan has told so is told its time.
        """
        if not self._settings.notice:
            return
        cluster, told = self._store.cluster, set(progress.noticed if progress is not None else ())
        for victim, along in reclaim.with_jobs(cluster, reservation, NOTED):
            told.update(pod.uid for pod in (victim, *along))
        others = [
            (self._evict_at(plan), self._progress[plan.name].noticed)
            for plan in cluster.reservations.plans.values()
            if plan.name in self._progress
        ]
        for pod in filter(None, map(cluster.pods.get, told)):
            if not (pod.finished or cluster.leaving.has_been_asked(pod.uid)):
                at = min((at for at, noticed in others if pod.uid in noticed), default=None)
                self._notices.note(reclaim.name_of(pod), at)

    async def _ask_to_go(self, victim: Pod, reservation: Reservation, progress: Progress) -> bool:
        """Evicts one victim, and writes an Event on it; returns whether the eviction was granted."""
        cluster = self._store.cluster
        why = plan_text.why_evicted(cluster, reservation, victim)  # while it is there
        job = reclaim.lost_by(cluster, reservation).failing.get(victim.uid, "")
        whole = cluster.batch_jobs.whole(victim)
        if whole is not None and (lowered := reclaim.lowering(cluster, reservation, whole)) is not None:
            return await self._lower(whole, *lowered, reservation, progress)
        going = reclaim.running_pods(cluster, whole) if whole is not None else [victim]
        gone = _noted(cluster, going if whole is not None else [], reservation, f"its Job was suspended: {why}")
        gone = gone or [evictions.eviction_of(cluster, victim, "reclaim", why, _text(reservation.pod))]
        for pod in going:
            cluster.leaving.ask_to_go(pod.uid)
        try:
            if whole is not None:
                await self._suspend(whole, victim, reservation)
            else:
                await self._evict_or_delete(victim, reservation)
        except BaseException as failure:
            for pod in going:
                cluster.leaving.may_stay(pod.uid)
            if not isinstance(failure, ActionFailed):
                raise
            self._note_refusal(victim, failure, reservation, progress)
            return False
        for each in gone:
            self._store.evictions.note(each)
        if whole is not None:
            for pod in going:
                cluster.leaving.goes_with_job(pod.uid, self._store.clock())
            metrics.JOBS_TAKEN_BACK.labels("suspended").inc()
            message = f"suspended to make room for {_text(reservation.pod)}: {why}; it waits until there is room again"
            self._actuator.report(Event(about_job(whole, whole.namespace), "TakenBack", message))
            return True
        metrics.EVICTIONS.labels("reclaim", "evicted").inc()
        message = f"evicted to make room for {_text(reservation.pod)}: {why}{self._price(job, progress)}"
        self._actuator.report(Event(about_pod(victim), "Reclaimed", message))
        return True

    def _note_refusal(self, victim: Pod, failure: ActionFailed, reservation: Reservation, progress: Progress) -> None:
        """Counts and tells that a victim stays for now."""
        outcome = "blocked" if isinstance(failure, Blocked) else "failed"
        metrics.EVICTIONS.labels("reclaim", outcome).inc()
        log.info("not evicted", victim=_text(victim), outcome=outcome, error=str(failure))
        if progress.failing_since is None:
            reason = "" if outcome == "blocked" else str(failure)
            self._say_who_stays(reservation, victim, reason)

    async def _lower(
        self, job: BatchJob, victims: list[Pod], to: int, reservation: Reservation, progress: Progress
    ) -> bool:
        """Lowers the parallelism of a Job for its victims; returns whether that succeeded. Others of it may go."""
        cluster, why = self._store.cluster, plan_text.why_evicted(self._store.cluster, reservation, victims[0])
        gone = _noted(cluster, victims, reservation, f"the parallelism of its Job was lowered: {why}")
        cluster.lowered.begin(job, to, victims, self._store.clock())
        try:
            self._ask_budgets(victims, reservation)
            await self._actuator.lower_job(job, to)
        except BaseException as failure:
            cluster.lowered.undo(job)
            if not isinstance(failure, ActionFailed):
                raise
            self._note_refusal(victims[0], failure, reservation, progress)
            return False
        for each in gone:
            self._store.evictions.note(each)
        metrics.JOBS_TAKEN_BACK.labels("lowered").inc()
        change = f"parallelism lowered from {job.parallelism} to {to} to make room for {_text(reservation.pod)}"
        message = f"{change}: {why}; it grows again as there is room"
        self._actuator.report(Event(about_job(job, job.namespace), "TakenBack", message))
        return True

    def _ask_budgets(self, victims: list[Pod], reservation: Reservation) -> None:
        """Raises Blocked if disruption budgets do not let all of these victims of one Job go."""
        held = self._store.cluster.budgets.violating(victims)
        if any(victim.uid in held and not self._is_kept_too_long(victim, reservation) for victim in victims):
            raise Blocked("a disruption budget does not let a pod of its Job go now")

    async def _suspend(self, job: BatchJob, victim: Pod, reservation: Reservation) -> None:
        """Suspends a Job, if disruption budgets let its victim go. Raises Blocked, ActionFailed.

        Its controller asks no budget when it deletes the other pods. With a budget that never lets all of them go at
        once, a Job would keep for ever what it borrows.
        """
        self._ask_budgets([victim], reservation)
        await self._actuator.suspend_job(job)

    async def _evict_or_delete(self, victim: Pod, reservation: Reservation) -> None:
        """Evicts a victim, or deletes it if a budget that never allows evictions has blocked for ``budgetPatience``."""
        name = reclaim.name_of(victim)
        grace = self._settings.max_grace
        grace = grace if grace is not None and victim.grace > grace else None
        try:
            await self._actuator.evict(name, grace)
        except ActionFailed:
            if not self._is_kept_too_long(victim, reservation):
                raise
            await self._actuator.delete(name, grace)
            budgets = ", ".join(sorted(each.name for each in self._store.cluster.budgets.keeping_for_good(victim)))
            log.info("deleted past a budget that never allows an eviction", victim=_text(victim), budgets=budgets)

    def _is_kept_too_long(self, victim: Pod, reservation: Reservation) -> bool:
        """Whether a budget that never allows evictions has kept a victim for ``budgetPatience``."""
        patience, now = self._settings.budget_patience, self._store.clock()
        keeping = self._store.cluster.budgets.keeping_for_good(victim)
        if patience is None or not keeping or victim.namespace == reservation.pod.namespace:
            return False
        return now >= self._kept_since.setdefault(reservation.pod.uid, now) + patience

    @staticmethod
    def _price(job: str, progress: Progress) -> str:
        """Says that a Job fails by an eviction; counts the Job once."""
        if job and job not in progress.failing_jobs:
            progress.failing_jobs.add(job)
            metrics.JOBS_FAILED.inc()
        return f"; evicting it fails Job {job}" if job else ""

    async def _mind_failures(self, reservation: Reservation, progress: Progress, now: float, *, failed: bool) -> None:
        """Notes failures, and gives up a reservation that has failed for too long."""
        if not failed:
            if progress.failing_since is not None:
                progress.failing_since = None
                await self._note(replace(reservation, blocked_since=0.0))
        elif progress.failing_since is None:
            progress.failing_since = now
            await self._note(replace(reservation, blocked_since=self._epoch()))
        elif now - progress.failing_since > self._settings.bind_timeout:
            await self._give_up(reservation, "blocked")

    def _say_who_stays(self, reservation: Reservation, victim: Pod, failure: str = "") -> None:
        """Tells whose eviction a disruption budget does not allow, or what the API server has against it."""
        pod = self._store.cluster.pods.get(reservation.pod.uid)
        if pod is not None:
            why = (
                f"failed, and is tried again: {failure[:LONGEST_REASON]}"
                if failure
                else "waits for its disruption budget"
            )
            message = f"eviction of {_text(victim)} {why}"
            self._actuator.report(Event(about_pod(pod), "ReclaimBlocked", message))

    async def _wait_for_binding(self, reservation: Reservation, pod: Pod, progress: Progress) -> None:
        now = self._store.clock()
        if progress.freed_at is None:
            progress.freed_at = now
        if now - progress.freed_at < SOON:  # most pods are bound meanwhile
            return
        if not progress.noted and not reservation.freed_at:
            progress.noted = await self._note(replace(reservation, freed_at=self._epoch() - (now - progress.freed_at)))
        if not progress.nominated and pod.nominated_node != reservation.node:
            progress.nominated = True  # once: each write would wake the pod
            try:
                await self._actuator.nominate(pod, reservation.node)
            except ActionFailed as failure:
                log.debug("not nominated", pod=_text(reservation.pod), error=str(failure))
        if reclaim.is_room_taken(self._store.cluster, reservation):
            await self._give_up(reservation, "room-taken")
        elif now - progress.freed_at > self._settings.bind_timeout:
            await self._give_up(reservation, "not-bound")

    async def _note(self, reservation: Reservation) -> bool:
        """Writes the progress of a reservation for other replicas; returns whether that succeeded."""
        try:
            await self._actuator.note_progress(reservation)
        except ActionFailed as failure:
            log.warning("reservation not changed", pod=_text(reservation.pod), error=str(failure))
            return False
        return True

    async def _give_up(self, reservation: Reservation, reason: str) -> None:
        """Releases the room, and remembers that the evictions were in vain."""
        given_up, mates = replace(reservation, failed_at=self._epoch()), reclaim.mates(self._store.cluster, reservation)
        if await self._note(given_up):
            self._count_in_vain(reservation, self._progress_of(reservation), is_its_own_fault=reason == "not-bound")
            for mate in mates:
                self._count_in_vain(mate, self._progress_of(mate), is_its_own_fault=False)
            progress = self._progress.pop(reservation.name, None)
            self._store.cluster.upsert_reservation(given_up)
            metrics.RECLAIMS.labels(reason).inc()
            log.warning("reclaim given up", pod=_text(reservation.pod), node=reservation.node, reason=reason)
            self._fail(reservation, reason)
            await self._end_all(mates, "not-needed")
            self._lift_notice(reservation, progress)

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

    async def _forget(self, reservation: Reservation) -> None:
        """Removes a reservation that was given up and is of no further use."""
        try:
            await self._actuator.unreserve(reservation.name)
        except ActionFailed as failure:
            log.warning("reservation not removed", pod=_text(reservation.pod), error=str(failure))
        else:
            self._store.cluster.delete_reservation(reservation.name)

    def _progress_of(self, reservation: Reservation) -> Progress:
        """Returns the progress of a reservation, at first as the reservation itself records it."""
        progress = self._progress.get(reservation.name)
        if progress is None:
            pod = self._store.cluster.pods.get(reservation.pod.uid)
            progress = self._progress[reservation.name] = Progress(
                self._on_clock(reservation.since) if reservation.since else self._store.clock(),
                in_vain.failure_key(pod) if pod is not None else None,
                self._on_clock(reservation.freed_at) if reservation.freed_at else None,
                self._on_clock(reservation.blocked_since) if reservation.blocked_since else None,
            )
        return progress

    def _on_clock(self, at: float) -> float:
        """Converts a time since the epoch to the store's clock; never later than now."""
        return self._store.clock() - max(0.0, self._epoch() - at)

    def _remember_failures(self) -> None:
        """Takes over from an earlier leader how often, and when last, plans for a pod have failed.

        Changes since then are not known, so the next one counts.
        """
        for reservation in self._store.cluster.reservations.given_up.values():
            if reservation.reason != RECLAIM:
                continue
            failures, uid = reservation.failures + 1, reservation.pod.uid
            if reservation.blocked_since:
                self._kept_since.setdefault(uid, self._on_clock(reservation.blocked_since))
            known = self._backoff.get(uid)
            if known is None or known.failures < failures:
                until = self._on_clock(reservation.failed_at) + self._pause_after(failures)
                self._backoff[uid] = Backoff(failures, until, self._count_help(uid))

    def _count_help(self, uid: str) -> int:
        pod = self._store.cluster.pods.get(uid)
        return self._store.cluster.hints.count(pod) if pod is not None else 0

    def _pause_after(self, failures: int) -> float:
        return in_vain.pause(self._settings.backoff, failures)

    def _fail(self, reservation: Reservation, reason: str) -> None:
        backoff = self._backoff.setdefault(reservation.pod.uid, Backoff())
        backoff.failures += 1
        backoff.until = self._store.clock() + self._pause_after(backoff.failures)
        backoff.helped = self._count_help(reservation.pod.uid)
        metrics.RECLAIM_FAILURES.labels(reason).inc()

    async def _end(self, reservation: Reservation, outcome: str) -> bool:
        """Ends a reservation and releases the room; returns whether that succeeded."""
        try:
            await self._actuator.unreserve(reservation.name)
        except ActionFailed as failure:
            log.warning("reservation not lifted", pod=_text(reservation.pod), error=str(failure))
            return False
        progress = self._progress.pop(reservation.name, None)
        self._store.cluster.delete_reservation(reservation.name)
        metrics.RECLAIMS.labels(outcome).inc()
        log.info("reclaim ended", pod=_text(reservation.pod), outcome=outcome)
        self._lift_notice(reservation, progress)
        return True

    async def _end_all(self, reservations: list[Reservation], outcome: str) -> None:
        for reservation in reservations:
            if reservation.name in self._store.cluster.reservations.plans:
                await self._end(reservation, outcome)

    def _forget_what_is_gone(self) -> None:
        cluster = self._store.cluster
        pods = cluster.pods
        self._backoff = {uid: each for uid, each in self._backoff.items() if uid in pods and pods[uid].pending}
        self._kept_since = {uid: at for uid, at in self._kept_since.items() if uid in pods and pods[uid].pending}
        there = cluster.reservations.plans
        self._progress = {name: each for name, each in self._progress.items() if name in there}
        horizon = self._store.clock() - 60
        self._questions = {shape: each for shape, each in self._questions.items() if each.again_at > horizon}


def _noted(cluster: Cluster, pods: list[Pod], reservation: Reservation, why: str) -> list[Evicted]:
    """Describes that pods go with their Job; of a large Job, only the first."""
    whom = _text(reservation.pod)
    return [evictions.eviction_of(cluster, pod, JOB_TAKEN_BACK, why, whom) for pod in pods[:NOTED]]


def _text(pod: PodName | Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
