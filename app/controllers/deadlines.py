"""Writes one Event on each Job whose deadline runs while its pods wait at gates. For the leader only.

A Job's ``activeDeadlineSeconds`` counts from the start of the Job, not from that of its pods.
"""

from collections.abc import AsyncIterator, Mapping

from app.actuators.events import Event, about_job
from app.actuators.protocol import Actuator
from app.controllers.rounds import at_intervals
from app.ending import ending
from app.pause import Pause
from app.store.store import Store
from policy.objects.batch_job import BatchJob, Key

INTERVAL = 5.0
"""Seconds between looks."""
AT_MOST = 20
"""Events per look; the others are written later."""


class Deadlines:
    """Looks for Jobs that may be ended before their gates open."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._told: set[str] = set()

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals(INTERVAL, self.look)

    async def look(self) -> None:
        """Writes Events on some of the Jobs that have none yet."""
        if self._store.unready():
            return
        pause = Pause()
        ends = {job.key: job async for job in self._that_end(pause)}
        self._told &= {job.uid for job in ends.values()}
        for job in [job async for job in self._at_gates(ends, pause)]:
            self._told.add(job.uid)
            message = f"its pods wait at gates, and meanwhile its time runs: {ending(job)}"
            self._actuator.report(Event(about_job(job, job.namespace), "DeadlineRunsAtGate", message, warning=True))

    async def _that_end(self, pause: Pause) -> AsyncIterator[BatchJob]:
        """Yields the Jobs of gated namespaces whose deadline runs."""
        cluster = self._store.cluster
        for job in list(cluster.batch_jobs):
            if job.ends_at and cluster.gate_admission.is_gated(job.namespace):
                yield job
            await pause.if_due()

    async def _at_gates(self, ends: Mapping[Key, BatchJob], pause: Pause) -> AsyncIterator[BatchJob]:
        """Yields those of the Jobs that have pods at gates and no Event yet: each once, and a bounded number."""
        cluster, found = self._store.cluster, set[str]()
        for uid in cluster.gates.uids() if ends else ():
            pod = cluster.pods.get(uid)
            job = cluster.batch_jobs.of(pod) if pod is not None else None
            if job is not None and job.key in ends and not (job.uid in self._told or job.uid in found):
                found.add(job.uid)
                yield job
                if len(found) >= AT_MOST:
                    return
            await pause.if_due()
