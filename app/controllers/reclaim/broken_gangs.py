"""Cleans up after reclaim: evicts the rest of a gang below its minimum, which would only occupy room."""

import asyncio
from collections.abc import Iterable

from app.actuators.events import Event, about_pod
from app.actuators.protocol import Actuator
from app.controllers.evicting import evict
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.write_seats import WriteSeats
from app.observability.evictions import eviction_of
from app.settings import ReclaimSettings
from app.store.store import Store
from policy.objects.group import Key
from policy.objects.pod import Pod
from policy.preemption.reclaim import without_failing_jobs
from policy.quota.exempt import is_critical

AGAIN = 5.0
"""Seconds between attempts to evict pods that could not be evicted."""
AT_ONCE = 20
"""Evictions under way at a time."""


class BrokenGangs:
    """Gangs that have lost members to reclaim, and the time until which each may become whole again."""

    def __init__(self, store: Store, actuator: Actuator, settings: ReclaimSettings) -> None:
        self._store = store
        self._actuator = actuator
        self._settings = settings
        self._due: dict[Key, float] = {}
        self._tasks: KeyedTasks[Key] = KeyedTasks()
        self._failed: KeyedBackoff[str] = KeyedBackoff()
        self._seats = WriteSeats(AT_ONCE, store.clock)

    def note(self, evicted: Iterable[Pod]) -> None:
        """Notes pods that reclaim evicted: their gangs get a grace period to become whole again."""
        if self._settings.clean_up_broken_gangs:
            due = self._store.clock() + self._settings.broken_gang_grace
            for pod in evicted:
                group = self._store.cluster.gangs.gang_of(pod)
                if group is not None:
                    self._due.setdefault(group.key, due)

    def clean_up(self, group: asyncio.TaskGroup) -> None:
        """Evicts, in the group, the rest of gangs whose grace period is over. Retries what is not allowed now."""
        now = self._store.clock()
        for key, due in list(self._due.items()):
            if not self._left(key):
                del self._due[key]
            elif due <= now:
                self._tasks.begin(group, key, self._evict_all(key))

    def _left(self, key: Key) -> list[Pod]:
        """Returns the placed members of a gang below its minimum; none if it is whole.

        Omits critical pods, and pods whose eviction would fail their Job: nobody waits for their room.
        """
        cluster = self._store.cluster
        group = cluster.membership.groups.get(key)
        if group is None or len(cluster.gangs.ready(group)) >= group.minimum:
            return []
        members = cluster.groups.members(key)
        running = (pod for pod in members if pod.assigned and not (pod.terminating or is_critical(pod)))
        return without_failing_jobs(cluster, running)

    async def _evict_all(self, key: Key) -> None:
        """Evicts the members one by one, each only if it still has to go: an eviction may take long, or fail."""
        for pod in sorted(self._left(key), key=lambda each: each.uid in self._failed):
            if not await self._seats.take_for(pod.namespace):
                break
            if self._store.unready() or pod.uid not in {each.uid for each in self._left(key)}:
                self._seats.give_back()
            else:
                await self._evict(pod)
        self._due[key] = self._store.clock() + AGAIN

    async def _evict(self, pod: Pod) -> None:
        why = "its pod group has fallen below its minimum, and was not whole again in time"
        gone = eviction_of(self._store.cluster, pod, "broken-gang", why)
        event = Event(about_pod(pod), "GangBroken", f"evicted: {why}")
        writing = self._seats.writing_in(pod.namespace)
        if not await evict(self._store, self._actuator, pod, gone, event, writing):
            self._failed.put(pod.uid, self._store.clock())
