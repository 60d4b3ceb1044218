"""Tells of Jobs that were started as a whole and have not made all of their pods in time. A part of the gates.

A gang that lacks members would only occupy room, so its Job is suspended again. Each time it then waits for longer:
other Jobs would never have the room that it cannot use.
"""

import asyncio

import structlog

from app.actuators.events import Event, about_job
from app.actuators.protocol import ActionFailed, Actuator, Rejected
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.write_seats import WriteSeats
from app.store.store import Store
from policy.objects.queued_job import QueuedJob, uid_of_stand_in

log = structlog.get_logger(__name__)

AGAIN = (60.0, 3600.0)
"""Seconds until the Job of a gang that was started in part stands in line again: at first, and at most."""


class StartedInPart:
    """The Jobs that have been started in part, and those of them that are suspended again."""

    def __init__(self, store: Store, actuator: Actuator, seats: WriteSeats) -> None:
        self._store = store
        self._actuator = actuator
        self._seats = seats
        self._useless: dict[str, QueuedJob] = {}
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._failed: KeyedBackoff[str] = KeyedBackoff()
        self._again: KeyedBackoff[str] = KeyedBackoff(*AGAIN)
        self._out_of_line: set[str] = set()

    def look(self, group: asyncio.TaskGroup) -> None:
        """Tells of Jobs that are late, and suspends gangs among them, in the group."""
        cluster, now = self._store.cluster, self._store.clock()
        being_suspended = set(map(uid_of_stand_in, self._useless))
        for uid in [uid for uid in self._out_of_line - being_suspended if not self._again.holds(uid, now)]:
            self._out_of_line.discard(uid)
            cluster.gate_admission.regate(uid, now)
        while cluster.queued_jobs.late:
            job, missing, pods = cluster.queued_jobs.late.pop()
            message = f"{missing} of {pods} pods were not created in time: no room is kept for them any more"
            if self._is_useless(job):
                self._useless[job.uid] = job
                message += "; the others are of no use without them, so it is suspended, and waits again"
            self._actuator.report(Event(about_job(job, job.namespace), "StartedInPart", message, warning=True))
        for uid, job in list(self._useless.items()):
            if not self._is_useless(job):
                del self._useless[uid]
            elif not self._failed.holds(uid, now):
                self._tasks.begin(group, uid, self._suspend(job))

    def _is_useless(self, job: QueuedJob) -> bool:
        """Whether pods of a Job are of a gang that has fewer members than it takes to start.

        Never one of a namespace whose Jobs are not queued any more: nobody might start it again.
        """
        cluster = self._store.cluster
        if not cluster.queued_jobs.are_queued(job.namespace):
            return False
        gangs = (cluster.gangs.gang_of(each.pod) for each in job.pod_sets)
        return any(
            sum(not pod.terminating for pod in cluster.groups.members(gang.key)) < gang.minimum
            for gang in gangs
            if gang is not None
        )

    async def _suspend(self, job: QueuedJob) -> None:
        cluster, clock = self._store.cluster, self._store.clock
        known = cluster.batch_jobs.get(job.key) or cluster.batch_jobs.others.get(job.uid)
        if known is None or known.uid != job.uid or known.ended:
            self._useless.pop(job.uid, None)
            return
        if not await self._seats.take_for(job.namespace):
            return
        stand_in = uid_of_stand_in(job.uid)
        cluster.gates.begin_ungating(stand_in)  # it may be seen suspended before the answer comes
        self._out_of_line.add(stand_in)
        try:
            with self._seats.writing_in(job.namespace):
                await self._actuator.suspend_job(known)
        except ActionFailed as failure:
            log.warning("job not suspended", namespace=job.namespace, job=job.name, error=str(failure))
            if isinstance(failure, Rejected):
                self._useless.pop(job.uid, None)  # it is not as it was seen
            else:
                self._failed.put(job.uid, clock())
        else:
            self._useless.pop(job.uid, None)
            self._again.put(stand_in, clock())
            log.info("job suspended: it is a gang that lacks pods", namespace=job.namespace, job=job.name)
