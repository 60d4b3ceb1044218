"""Notices: writes on pods when they will be evicted, or that they will not, so that no plan waits for these writes."""

import asyncio

import structlog

from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.write_seats import WriteSeats
from app.store.store import Store
from policy.objects.reservation import PodName

log = structlog.get_logger(__name__)

AT_ONCE = 8
"""Writes under way at a time, not counting slow ones."""


class Notices:
    """Notices that are still to be written: for each pod only the last one. A failure is only logged."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._due: dict[str, tuple[PodName, float | None]] = {}
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._seats = WriteSeats(AT_ONCE, store.clock)

    def note(self, pod: PodName, at: float | None) -> None:
        """Notes when a pod will be evicted, in seconds since the epoch; None: not any more."""
        self._due[pod.uid] = pod, at

    def write(self, group: asyncio.TaskGroup) -> None:
        """Writes, in the group, what is due and may be written now."""
        for uid, (pod, _) in list(self._due.items()):
            if uid not in self._store.cluster.pods:
                del self._due[uid]
            elif uid not in self._tasks and not self._seats.are_kept_from(pod.namespace):
                self._tasks.begin(group, uid, self._write(pod))

    async def _write(self, pod: PodName) -> None:
        if not await self._seats.take_for(pod.namespace):
            return
        due = self._due.pop(pod.uid, None)  # what was due before the wait may be outdated
        if due is None:
            self._seats.give_back()
            return
        try:
            with self._seats.writing_in(pod.namespace):
                await self._actuator.give_notice(*due)
        except ActionFailed as failure:
            log.warning("notice not written", victim=pod.title, error=str(failure))
