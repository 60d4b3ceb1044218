"""Promises a start to jobs for which nodes are reserved, and keeps it. Part of the controller that reserves.

The promise stands in the status of the Reservations, so that the next leader keeps it. Pods that would be late for it
are evicted in time. ``policy.reserve.promises`` decides.
"""

import asyncio
from collections.abc import Callable, Collection
from itertools import islice

import structlog

from app.actuators.events import Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.evicting import evict
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.write_seats import WriteSeats
from app.observability import metrics
from app.observability.evictions import eviction_of
from app.pause import at_leisure
from app.store.store import Store
from app.times import rfc3339
from policy.objects.job import Job
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.reserve import promises
from policy.reserve.promises import PATIENCE, PromiseDecision

log = structlog.get_logger(__name__)

Key = tuple[str, str]
"""Namespace and name of a job."""

REASON, LABEL = "PromisedStart", "promised-start"
"""Why a pod is evicted: in its Event, and in the metric of evictions."""
AT_ONCE = 20
"""Writes of promises under way at a time, and likewise evictions."""
FRESH = 2.0
"""Seconds for which pods are evicted after a decision; then the next look decides anew who is late."""
AGAIN = (2.0, 10.0)
"""Seconds until a pod is tried again whose eviction was blocked or failed: at first, and at most (doubling)."""


class Promises:
    """``promised`` are the starts that were promised, by job, as this leader knows them."""

    def __init__(self, store: Store, actuator: Actuator, epoch: Callable[[], float]) -> None:
        self._store = store
        self._actuator = actuator
        self._epoch = epoch
        self._promised: dict[Key, float] = {}
        self._failed: KeyedBackoff[str] = KeyedBackoff(*AGAIN)
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._seats = WriteSeats(AT_ONCE, store.clock)

    async def look(self, group: asyncio.TaskGroup, job: Job, *, started: bool, may_move: bool = True) -> bool:
        """Gives a job its promise, keeps it, or moves it if that may be; returns whether that is done.

        Pods that would be late are evicted in the group, so that no eviction that hangs delays other promises.
        """
        key, cluster = (job.namespace, job.name), self._store.cluster
        if started:
            self._end(key)
            return True
        own = [each for each in cluster.reservations.reserved.of_job(*key) if cluster.reservations.is_reserved(each)]
        if not own:
            if may_move and self._promised.pop(key, 0.0):
                metrics.PROMISES.labels("lost").inc()
            return may_move
        before = self._promised.get(key) or max(each.promised_start for each in own)
        now = self._epoch()
        decision = await at_leisure(promises.decide_steps(cluster, own, before, now))
        may_be_noted = may_move or not decision.moved
        if self._store.unready() or not may_be_noted or not await self._note(own, decision):
            return False
        after = self._promised[key] = decision.promise.at
        if decision.moved:
            metrics.PROMISES.labels("moved").inc()
            then = f"its reserved nodes have room by {rfc3339(after)} now" if after else "no start is promised now"
            self._tell(job, "PromiseMoved", f"{then}: {decision.moved}", warning=True)
        elif after and not before:
            self._tell(job, "StartPromised", f"its reserved nodes have room by {rfc3339(after)} at the latest")
        for pod in decision.late:
            if self._is_due(pod, after) and not self._seats.are_kept_from(pod.namespace):
                self._tasks.begin(group, pod.uid, self._evict_if_still_late(key, pod, now))
        return True

    def keep_only(self, jobs: Collection[Key]) -> None:
        """Forgets the promises to all other jobs: they are gone, or no node is reserved for them any more."""
        for key in [key for key in self._promised if key not in jobs]:
            promised = self._promised.pop(key)
            if promised and self._store.cluster.job_members.find(*key) is not None:
                metrics.PROMISES.labels("lost").inc()

    async def _note(self, own: list[Reservation], decision: PromiseDecision) -> bool:
        """Records a promise on all reservations of a job; it counts once it is recorded. Returns whether it is."""
        cluster, now, limit = self._store.cluster, self._epoch(), asyncio.Semaphore(AT_ONCE)

        async def record(before: Reservation, after: Reservation) -> str:
            async with limit:
                try:
                    await self._actuator.note_progress(after)
                except ActionFailed as failure:
                    return str(failure)
            if cluster.reservations.reserved.get(before.name) is before:
                cluster.upsert_reservation(after)
            return ""

        pairs = [(each, promises.noted(each, decision, now)) for each in own]
        failures = await asyncio.gather(*(record(before, after) for before, after in pairs if before != after))
        if failed := [text for text in failures if text]:
            log.warning("promise not recorded", job=own[0].job, error=failed[0])
        return not failed

    def _is_due(self, pod: Pod, promised: float) -> bool:
        """Whether the last moment has come at which a pod that would be late still ends in time."""
        asked, now = pod.terminating or self._store.cluster.leaving.has_been_asked(pod.uid), self._epoch()
        return not asked and now >= promises.goes_at(pod, promised) and not self._failed.holds(pod.uid, now)

    async def _evict_if_still_late(self, key: Key, pod: Pod, decided_at: float) -> None:
        """Evicts a pod that was late for a promise, if it still is once there is a seat."""
        if not await self._seats.take_for(pod.namespace):
            return
        cluster, now, promised = self._store.cluster, self._epoch(), self._promised.get(key, 0.0)
        reserved, is_reserved = cluster.reservations.reserved, cluster.reservations.is_reserved
        own = [each for each in reserved.of_job(*key) if each.node == pod.node and is_reserved(each)]
        late = None
        try:
            if own and promised and now - decided_at <= FRESH:
                decision = await at_leisure(promises.decide_steps(cluster, own, promised, now))
                late = next((each for each in decision.late if each.uid == pod.uid), None)
        finally:
            if late is None or self._store.unready() or not self._is_due(late, promised):
                self._seats.give_back()
                late = None
        if late is not None:
            await self._evict(late, own[0], promised)

    async def _evict(self, pod: Pod, reservation: Reservation, promised: float) -> None:
        cluster, whom = self._store.cluster, f"{reservation.pod.namespace}/{reservation.pod.name}"
        job = f"promised its start by {rfc3339(promised)}"
        because = "this pod was there because it would have ended before"
        gone = eviction_of(cluster, pod, LABEL, f"a job is {job} on this node, and {because}", whom)
        event = Event(about_pod(pod), REASON, f"evicted from node {pod.node}, where a job is {job}: {because}")
        cluster.leaving.ask_to_go(pod.uid)
        evicted = False
        try:
            writing = self._seats.writing_in(pod.namespace)
            evicted = await evict(self._store, self._actuator, pod, gone, event, writing)
        finally:
            if not evicted:  # also if it was cancelled
                cluster.leaving.may_stay(pod.uid)
        if evicted:
            self._failed.clear(pod.uid)
        else:
            self._failed.put(pod.uid, self._epoch())

    def _end(self, key: Key) -> None:
        """Counts how good the promise of a job was that has started."""
        promised = self._promised.pop(key, 0.0)
        if promised:
            late = max(0.0, self._epoch() - promised)
            metrics.PROMISE_LATE.observe(late)
            metrics.PROMISES.labels("kept" if late <= PATIENCE else "lost").inc()

    def _tell(self, job: Job, reason: str, message: str, *, warning: bool = False) -> None:
        for pod in islice(self._store.cluster.job_members.subjects(job), 1):
            self._actuator.report(Event(about_pod(pod), reason, message, warning=warning))
