"""Notes on a pod the queue that it counts in, if this is not the queue that it names. For the leader only.

This is a part of the controller ``status``. The note survives a restart, and all replicas obey it: see
policy.cluster.moved.
"""

import asyncio
from collections import defaultdict

from app.actuators.events import Event, about_pod
from app.actuators.protocol import Actuator
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.rounds import at_intervals_with_group
from app.controllers.write_seats import WriteSeats
from app.controllers.writes import Writes
from app.observability import metrics
from app.store.store import Store
from policy.cluster.moved import MOVED
from policy.objects.pod import Pod

INTERVAL = 1.0
"""Seconds between looks."""
AT_ONCE = 20
"""Writes under way at a time."""
SLICE = 100
REPEAT = 300.0
"""Seconds between two Events about pods of a namespace that name a queue that does not admit them."""
EVENTS_AT_MOST = 20
"""Events per look; the others are written later."""

Story = tuple[str, str, str]
"""The namespace of pods, the queue that they count in, and the queue that they name."""


class Moves:
    """Keeps the notes on pods equal to the queues that they count in."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._written: dict[str, tuple[str | None, int]] = {}
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._writes: Writes[str] = Writes(
            WriteSeats(AT_ONCE, store.clock),
            KeyedBackoff(),
            store.clock,
            metrics.STATUS_WRITES,
            "not noted where a pod counts",
        )
        self._news: defaultdict[Story, list[str]] = defaultdict(list)
        self._told: dict[Story, float] = {}

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals_with_group(INTERVAL, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Writes, in the group, the notes that have changed. A slow write delays no other."""
        if self._store.unready():
            return
        moving = self._store.cluster.queue_changes.moving
        uids = [*moving.counted, *(moving.noted - moving.counted.keys())]
        self._written = {uid: self._written[uid] for uid in uids if uid in self._written}
        for index, uid in enumerate(uids):
            pod = self._store.cluster.pods.get(uid)
            if pod is not None and self._is_due(pod) and await self._writes.seats.take_for(pod.namespace):
                self._tasks.begin(group, uid, self._write(pod))
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        self._tell()

    def _is_due(self, pod: Pod) -> bool:
        """Whether the note on a pod is wrong, and no write of it is running, waiting after a failure, or yet unseen."""
        queue = self._store.cluster.queue_changes.moving.counted.get(pod.uid)
        if pod.counts_in == queue or not (pod.assigned or queue is None):
            return False
        held_back = pod.uid in self._tasks or self._writes.failed.holds(pod.uid, self._store.clock())
        return self._written.get(pod.uid) != (queue, pod.version) and not held_back

    async def _write(self, pod: Pod) -> None:
        """Writes the note with the seat that was taken."""
        moving = self._store.cluster.queue_changes.moving
        queue = moving.counted.get(pod.uid)
        story = pod.namespace, queue or "", moving.named_by(pod.uid) if queue is not None else ""
        write = self._actuator.count_in(pod, queue)
        if await self._writes.succeeds(pod.namespace, pod.uid, write, namespace=pod.namespace, pod=pod.name):
            self._written[pod.uid] = queue, pod.version
            if queue is not None:
                self._news[story].append(pod.uid)

    def _tell(self) -> None:
        """Writes Events about pods that name another queue, for each story at most once every ``REPEAT`` seconds."""
        now = self._store.clock()
        self._told = {story: at for story, at in self._told.items() if now - at < REPEAT}
        due = [story for story in self._news if story not in self._told][:EVENTS_AT_MOST]
        for story in due:
            pods = [pod for uid in self._news[story] if (pod := self._store.cluster.pods.get(uid)) is not None]
            if pods:
                self._told[story] = now
                first = min(pods, key=lambda pod: pod.name)
                self._actuator.report(Event(about_pod(first), MOVED, _message(story, first, len(pods)), warning=True))
        for story in {*due, *self._told}:
            self._news.pop(story, None)


def _message(story: Story, first: Pod, number: int) -> str:
    _, counted, named = story
    who = f"{first.namespace}/{first.name}" + (f" and {number - 1} more pods of its namespace" if number > 1 else "")
    where = f"queue {counted}, which admitted it" if counted else "no queue, as when it started"
    return f"{who}: queue {named} is named since the pod runs, and does not admit it; it counts in {where}"
