"""Reserves nodes for jobs that starve, or are the first in line, and releases them. For the leader only.

Reservation objects hold what is reserved, so that the next leader keeps it. This controller makes the objects match
the decisions of ``policy.reserve.node_reservation``.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from itertools import islice

import structlog

from app.actuators.events import Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator, AlreadyThere
from app.controllers.promises import Promises
from app.controllers.rounds import at_intervals_with_group
from app.observability import metrics
from app.pause import Pause, at_leisure
from app.store.store import Store
from app.times import rfc3339
from policy.objects.job import Job
from policy.objects.reservation import STARVING, Reservation
from policy.reserve import node_reservation, starving
from policy.reserve.first_of_lines import FirstOfLines
from policy.reserve.node_reservation import ReserveDecision
from policy.reserve.place_search import Place
from policy.reserve.starving import Terms

log = structlog.get_logger(__name__)

INTERVAL = 0.5
"""Seconds between looks."""
AGAIN = (1.0, 30.0)
"""Seconds until a job without a reservation is looked at again: at first, and at most (doubling)."""
AT_MOST = 0.05
"""Seconds of work in one look; the other jobs wait for the next look."""
GRACE = 10.0
"""Seconds for which a reserved job may lack members: its controller may be replacing one."""
AT_ONCE = 20
"""Writes under way at a time."""
APART = 1.0
"""Seconds between reservations of one node for two jobs: the API server tells in whole seconds which was first."""
TOLD = 10
"""Maximum number of members of a job that get an Event."""

Key = tuple[str, str]
"""Namespace and name of a job."""


@dataclass(slots=True)
class Question:
    """A job for which nothing could be reserved: when to try again, the wait after that, and the last message."""

    again_at: float = 0.0
    wait: float = AGAIN[0]
    told: str = ""


class Reserve:
    """Handles such jobs and their reservations."""

    def __init__(self, store: Store, actuator: Actuator, terms: Terms, epoch: Callable[[], float] = time.time) -> None:
        """``epoch`` returns the seconds since the epoch, in which the age of jobs is measured."""
        self._store = store
        self._actuator = actuator
        self._terms = terms
        self._epoch = epoch
        self._questions: dict[Key, Question] = {}
        self._incomplete: dict[Key, float] = {}
        self._made_at: dict[str, float] = {}
        """By name: when a reservation was made, within the last second."""
        self._first = FirstOfLines()
        self._promises = Promises(store, actuator, epoch)

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals_with_group(INTERVAL, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Does one round. Pods that would be late for a promise are evicted in the group."""
        cluster = self._store.cluster
        reserved = cluster.reservations.reserved
        if self._store.unready() or cluster.unsettled:
            return
        now = self._epoch()
        later = {key for key in self._questions if not self._is_due(key)}
        jobs = await at_leisure(starving.in_turn_steps(cluster, self._terms, now, self._first, later))
        there = {(job.namespace, job.name) for job in jobs}
        missed = {(each.pod.namespace, each.job) for each in reserved} - there
        find, is_there = cluster.job_members.find, cluster.job_members.wait_as_a_whole
        gone = {key for key in missed if find(*key) is None}  # otherwise it was reserved during a pause
        await self._lift([each for key in gone for each in reserved.of_job(*key)], "the job is gone, or waits anew")
        self._promises.keep_only(there)
        await self._forget(now)
        self._forget_what_was_made_before()
        self._questions = {key: each for key, each in self._questions.items() if key in there or is_there(*key)}
        self._incomplete = {key: each for key, each in self._incomplete.items() if key in there}
        keys = [(job.namespace, job.name) for job in jobs]
        kept = await self._keep_promises(keys, group)
        await self._decide_about(keys, kept, now, group)

    async def _keep_promises(self, keys: Iterable[Key], group: asyncio.TaskGroup) -> set[Key]:
        """Keeps promises of these jobs before all decisions, which take longer; returns whose are kept.

        A promise that is to be moved waits for the decision: the job may get another node.
        """
        cluster, kept = self._store.cluster, set[Key]()
        for key in keys:
            if self._store.unready() or cluster.unsettled:
                break
            job = cluster.job_members.find(*key) if cluster.reservations.reserved.of_job(*key) else None
            if job is not None and await self._promises.look(group, job, started=job.has_started, may_move=False):
                kept.add(key)
            await asyncio.sleep(0)
        return kept

    async def _decide_about(
        self, keys: Iterable[Key], kept: Collection[Key], now: float, group: asyncio.TaskGroup
    ) -> None:
        """Decides what is reserved for these jobs, and does it. Then looks at promises that are not kept, or change."""
        cluster, reserved, worked = self._store.cluster, self._store.cluster.reservations.reserved, 0.0
        for key in keys:
            before = reserved.of_job(*key)
            if before or (worked < AT_MOST and self._is_due(key)):
                decision, took = await self._decide(key, now)
                worked += took
                if self._store.unready() or cluster.unsettled:
                    return
                if decision is not None and _is_as_it_was(cluster.job_members.find(*key), decision.job):
                    await self._carry_out(key, decision)
                    after = cluster.job_members.find(*key)  # it may have started during a write
                    if decision.reason == node_reservation.READY or (after is not None and after.has_started):
                        await self._promises.look(group, decision.job, started=True)
                    elif after is not None and (key not in kept or reserved.of_job(*key) != before):
                        await self._promises.look(group, after, started=False)
            await asyncio.sleep(0)

    async def _decide(self, key: Key, now: float) -> tuple[ReserveDecision | None, float]:
        """Decides what to reserve for a job, if it is still there; also returns the seconds of work, without pauses."""
        pause, cluster = Pause(), self._store.cluster
        job = cluster.job_members.find(*key)  # its current state: writes may have changed it
        if job is None:
            return None, pause.worked()
        decision = await at_leisure(node_reservation.decide_steps(cluster, job, self._terms, now), pause=pause)
        return decision, pause.worked()

    def _is_due(self, key: Key) -> bool:
        question = self._questions.get(key)
        return question is None or self._store.clock() >= question.again_at

    async def _carry_out(self, key: Key, decision: ReserveDecision) -> None:
        """Makes the reservations of a job match the decision."""
        own = self._store.cluster.reservations.reserved.of_job(*key)
        if own and self._may_be_replaced(key, decision):
            return
        there = {(each.pod.uid, each.node) for each in own}
        surplus = node_reservation.surplus(self._store.cluster, own, decision.places)
        new = [place for place in decision.places if (place.pod.uid, place.node) not in there]
        if surplus and decision.reason == node_reservation.EXPIRED:
            await self._give_up(surplus)
            surplus = []
        if self._have_others_just_now(key, {place.node for place in new}):
            return
        moved = {place.pod.uid for place in new}
        moving = [each for each in surplus if each.pod.uid in moved]
        if not await self._lift(moving, "the member gets another node"):
            return
        if new and not node_reservation.are_open(self._store.cluster, decision.job, new):
            return  # the state changed during a pause: the next look decides again
        if new:
            await self._reserve(decision.job, new)
        # Last, as a node may pass from one member to another, and no other pod may take it in between.
        await self._lift([each for each in surplus if each not in moving], decision.text or "the job has changed")
        if decision.places:
            self._questions.pop(key, None)
        elif decision.reason != node_reservation.READY:
            self._say_why_not(key, decision)

    def _may_be_replaced(self, key: Key, decision: ReserveDecision) -> bool:
        """Whether a job lacks members that may still come."""
        if decision.reason != node_reservation.INCOMPLETE or not (decision.job.waiting or decision.job.granted):
            self._incomplete.pop(key, None)
            return False
        now = self._store.clock()
        return now - self._incomplete.setdefault(key, now) < GRACE

    def _have_others_just_now(self, key: Key, nodes: Collection[str]) -> bool:
        """Whether one of these nodes was reserved for another job within the last second."""
        self._forget_what_was_made_before()
        made = filter(None, map(self._store.cluster.reservations.reserved.get, self._made_at))
        return any(each.node in nodes and (each.pod.namespace, each.job) != key for each in made)

    def _forget_what_was_made_before(self) -> None:
        now = self._store.clock()
        self._made_at = {name: at for name, at in self._made_at.items() if now - at <= APART}

    async def _reserve(self, job: Job, places: list[Place]) -> None:
        """Records all of these places. If one cannot be recorded, nothing is reserved for the job.

        They count at once, before they are recorded: otherwise another pod might be promised the same room.
        """
        cluster, chosen = self._store.cluster, {place.node for place in places}
        # whatever our clock says: they come after those that are there
        there = (each.since + APART for each in cluster.reservations.reserved if each.node in chosen)
        now = max([self._epoch(), *there])
        made = [node_reservation.reservation_of(job, place, now) for place in places]
        unrecorded = {reservation.name: reservation for reservation in made}
        for reservation in made:
            cluster.upsert_reservation(reservation)
        limit = asyncio.Semaphore(AT_ONCE)

        async def record(reservation: Reservation) -> str:
            async with limit:
                try:
                    await self._actuator.reserve(reservation)
                except AlreadyThere:
                    return ""  # the watch has not shown it yet; a later look corrects any difference
                except ActionFailed as failure:
                    return str(failure)
                del unrecorded[reservation.name]
                return ""

        try:
            failures = [text for text in await asyncio.gather(*map(record, made)) if text]
        finally:  # also if the lead is lost meanwhile
            for name, reservation in unrecorded.items():
                if cluster.reservations.reserved.get(name) is reservation:
                    cluster.delete_reservation(name)
        self._made_at |= dict.fromkeys((each.name for each in made), self._store.clock())
        if failures:
            log.warning("nodes not reserved", job=job.title, error=failures[0])
            await self._lift(cluster.reservations.reserved.of_job(job.namespace, job.name), "it could not be recorded")
            return
        nodes = ", ".join(sorted({place.node for place in places}))
        log.info("nodes reserved", job=job.title, nodes=nodes)
        since = rfc3339(starving.since(job))
        self._tell(job, "NodesReserved", f"reserved for {job.title}, which waits since {since}: {nodes}")

    async def _lift(self, reservations: list[Reservation], why: str) -> bool:
        """Deletes reservations; returns whether all are deleted."""
        done = True
        for reservation in reservations:
            try:
                await self._actuator.unreserve(reservation.name)
            except ActionFailed as failure:
                log.warning("reservation not lifted", node=reservation.node, error=str(failure))
                done = False
            else:
                self._store.cluster.delete_reservation(reservation.name)
                log.info("reservation lifted", node=reservation.node, job=reservation.job, why=why)
        return done

    async def _give_up(self, reservations: list[Reservation]) -> None:
        """Gives up reservations, and remembers it: the job has to wait anew."""
        for reservation in reservations:
            given_up = replace(reservation, failed_at=self._epoch())
            try:
                await self._actuator.note_progress(given_up)
            except ActionFailed as failure:
                log.warning("reservation not given up", node=reservation.node, error=str(failure))
            else:
                self._store.cluster.upsert_reservation(given_up)

    async def _forget(self, now: float) -> None:
        """Removes reservations that were given up, once the job may have nodes again or is gone."""
        reservations = self._store.cluster.reservations
        for reservation in list(reservations.given_up.values()):
            over = now - reservation.failed_at > self._terms.starving_after
            if reservation.reason == STARVING and (over or not reservations.is_in_force(reservation)):
                await self._lift([reservation], "it is over")

    def _say_why_not(self, key: Key, decision: ReserveDecision) -> None:
        question = self._questions.setdefault(key, Question())
        question.again_at = self._store.clock() + question.wait
        question.wait = min(2 * question.wait, AGAIN[1])
        if starving.is_early(decision.job, self._terms, self._epoch()):
            return  # it is not in trouble yet
        if question.told != decision.text:
            question.told = decision.text
            metrics.NOTHING_RESERVED.labels(decision.reason).inc()
            self._tell(decision.job, decision.reason, f"no node is reserved for {decision.job.title}: {decision.text}")

    def _tell(self, job: Job, reason: str, message: str) -> None:
        for pod in islice(self._store.cluster.job_members.subjects(job), TOLD):
            self._actuator.report(Event(about_pod(pod), reason, message, warning=reason == node_reservation.TOO_LARGE))


def _is_as_it_was(job: Job | None, before: Job) -> bool:
    """Whether a job has the same members in the same states as when its decision began."""
    return job is not None and _standing(job) == _standing(before)


def _standing(job: Job) -> tuple[int, list[list[str]]]:
    return job.minimum, [[pod.uid for pod in pods] for pods in (job.standing, job.granted, job.waiting)]
