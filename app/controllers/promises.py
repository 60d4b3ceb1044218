"""Promises a start to jobs for which nodes are reserved, and keeps it. Part of the controller that reserves.

The promise stands in the status of the Reservations, so that the next leader keeps it. Pods that would be late for it
are evicted in time. ``policy.reserve.promises`` decides.
"""

from collections.abc import Callable, Collection, Iterable

import structlog

from app.actuators.events import Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator, Blocked
from app.observability import metrics
from app.pause import at_leisure
from app.store.store import Store
from app.times import rfc3339
from policy.objects.job import Job
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption.reclaim import name_of
from policy.reserve import promises
from policy.reserve.promises import PATIENCE, PromiseDecision

log = structlog.get_logger(__name__)

Key = tuple[str, str]
"""Namespace and name of a job."""

REASON, LABEL = "PromisedStart", "promised-start"
"""Why a pod is evicted: in its Event, and in the metric of evictions."""


class Promises:
    """``promised`` are the starts that were promised, by job, as this leader knows them."""

    def __init__(self, store: Store, actuator: Actuator, epoch: Callable[[], float]) -> None:
        self._store = store
        self._actuator = actuator
        self._epoch = epoch
        self._promised: dict[Key, float] = {}

    async def look(self, job: Job, *, started: bool) -> None:
        """Gives a job its promise, keeps it, or moves it."""
        key, cluster = (job.namespace, job.name), self._store.cluster
        if started:
            self._end(key)
            return
        own = [each for each in cluster.reservations.reserved.of_job(*key) if cluster.reservations.is_reserved(each)]
        if not own:
            if self._promised.pop(key, 0.0):
                metrics.PROMISES.labels("lost").inc()
            return
        before = self._promised.get(key) or max(each.promised_start for each in own)
        decision = await at_leisure(promises.decide_steps(cluster, own, before, self._epoch()))
        if self._store.unready() or not await self._note(own, decision):
            return
        after = self._promised[key] = decision.promise.at
        if decision.moved:
            metrics.PROMISES.labels("moved").inc()
            then = f"its reserved nodes have room by {rfc3339(after)} now" if after else "no start is promised now"
            self._tell(job, "PromiseMoved", f"{then}: {decision.moved}", warning=True)
        elif after and not before:
            self._tell(job, "StartPromised", f"its reserved nodes have room by {rfc3339(after)} at the latest")
        await self._evict(decision.late, after)

    def keep_only(self, jobs: Collection[Key]) -> None:
        """Forgets the promises to all other jobs: they are gone, or no node is reserved for them any more."""
        for key in [key for key in self._promised if key not in jobs]:
            promised = self._promised.pop(key)
            if promised and self._store.cluster.groups.job(*key) is not None:
                metrics.PROMISES.labels("lost").inc()

    async def _note(self, own: list[Reservation], decision: PromiseDecision) -> bool:
        """Records a promise on all reservations of a job; it counts once it is recorded. Returns whether it is."""
        for each in own:
            noted = promises.noted(each, decision, self._epoch())
            if noted == each:
                continue
            try:
                await self._actuator.note_progress(noted)
            except ActionFailed as failure:
                log.warning("promise not recorded", job=each.job, error=str(failure))
                return False
            if self._store.cluster.reservations.reserved.get(each.name) is each:
                self._store.cluster.upsert_reservation(noted)
        return True

    async def _evict(self, late: Iterable[Pod], promised: float) -> None:
        """Evicts who would be late for a promise, at the last moment at which it still ends in time."""
        cluster = self._store.cluster
        for pod in late:
            asked = pod.terminating or cluster.leaving.has_been_asked(pod.uid)
            if asked or self._epoch() < promises.goes_at(pod, promised):
                continue
            cluster.leaving.ask_to_go(pod.uid)
            try:
                await self._actuator.evict(name_of(pod))
            except ActionFailed as failure:
                cluster.leaving.may_stay(pod.uid)
                metrics.EVICTIONS.labels(LABEL, "blocked" if isinstance(failure, Blocked) else "failed").inc()
                log.warning("not evicted", pod=f"{pod.namespace}/{pod.name}", error=str(failure))
                continue
            metrics.EVICTIONS.labels(LABEL, "evicted").inc()
            self._actuator.report(Event(about_pod(pod), REASON, self._why(pod, promised)))

    def _why(self, pod: Pod, promised: float) -> str:
        return (
            f"evicted from node {pod.node}, where a job is promised its start by {rfc3339(promised)}: "
            "this pod was there because it would have ended before"
        )

    def _end(self, key: Key) -> None:
        """Counts how good the promise of a job was that has started."""
        promised = self._promised.pop(key, 0.0)
        if promised:
            late = max(0.0, self._epoch() - promised)
            metrics.PROMISE_LATE.observe(late)
            metrics.PROMISES.labels("kept" if late <= PATIENCE else "lost").inc()

    def _tell(self, job: Job, reason: str, message: str, *, warning: bool = False) -> None:
        for pod in job.waiting[:1]:
            self._actuator.report(Event(about_pod(pod), reason, message, warning=warning))
