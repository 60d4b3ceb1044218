"""Limits every namespace of a queue to its part, by a ResourceQuota. For the leader only.

Only this controller writes the ResourceQuotas of its name. It reverts manual changes. It removes a ResourceQuota that
is no longer wanted (the queue is gone, or the option is off), whoever wrote it last. So it also runs with the option
off.
"""

import asyncio

import structlog

from app.actuators.events import Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.divide import Divide
from app.controllers.evicting import evict
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.rounds import at_intervals_with_group
from app.controllers.write_seats import WriteSeats
from app.controllers.writes import Writes
from app.observability import metrics
from app.observability.evictions import eviction_of
from app.pause import Pause
from app.store.store import Store
from policy.cluster import quota_manager
from policy.cluster.quota_manager import Hard, Limit, LimitDecision
from policy.objects.pod import Pod

log = structlog.get_logger(__name__)

INTERVAL = 0.5
"""Seconds between looks."""
AGAIN = 5.0
"""Seconds until a write or an eviction that failed, or had no visible effect, is tried again."""
FRESH = 1.0
"""Seconds for which a choice of victims is valid; if writes take or wait longer, the next look chooses again."""
AT_ONCE = 20
"""Writes under way at a time."""


class ResourceQuotas:
    """Keeps the resource quotas of our name equal to what namespaces deserve; removes them if ``enabled`` is false."""

    def __init__(self, store: Store, actuator: Actuator, *, enabled: bool) -> None:
        self._store = store
        self._actuator = actuator
        self._enabled = enabled
        self._divide = Divide(store)
        self._written: dict[str, Hard] = {}
        self._not_before: dict[str, float] = {}
        self._failed: KeyedBackoff[str] = KeyedBackoff(AGAIN)
        self._taken: set[str] = set()
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._seats = WriteSeats(AT_ONCE, store.clock)
        self._limits = Writes(
            self._seats, self._failed, store.clock, metrics.LIMIT_WRITES, "resource quota not written"
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals_with_group(INTERVAL, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Does one round; writes and evicts in the group, so that a slow namespace delays no other."""
        cluster, now = self._store.cluster, self._store.clock()
        if self._store.unready():
            return
        self._not_before = {what: until for what, until in self._not_before.items() if until > now}
        if not self._enabled:
            for namespace in quota_manager.leftovers(cluster):
                self._tasks.begin(group, namespace, self._remove(namespace, cluster.limits[namespace]))
            return
        if cluster.unsettled:
            return
        await self._divide.look()
        decision = await self._decide()
        if self._store.unready() or cluster.unsettled:
            return
        self._written = {name: hard for name, hard in self._written.items() if name in decision.limits}
        self._say_what_is_taken(decision.taken)
        for namespace, (hard, queues) in decision.limits.items():
            victims = decision.victims.get(namespace, [])
            self._tasks.begin(group, namespace, self._hold(namespace, hard, queues, victims))
        for namespace in decision.removals:
            if (seen := cluster.limits.get(namespace)) is not None:
                self._tasks.begin(group, namespace, self._remove(namespace, seen))

    async def _decide(self) -> LimitDecision:
        """Decides what to do, in slices between which the loop answers the scheduler."""
        decision, pause = LimitDecision(), Pause()
        for _ in quota_manager.decide_steps(self._store.cluster, self._written, decision):
            await pause.if_due()
        return decision

    async def _hold(self, namespace: str, hard: Hard, queues: tuple[str, ...], victims: list[Pod]) -> None:
        """Writes the limit if it is missing or different, and only then evicts the victims, which exceed it."""
        cluster, decided = self._store.cluster, self._store.clock()
        seen = cluster.limits.get(namespace)
        owners = {name: cluster.queues[name].uid for name in queues if name in cluster.queues}
        if not owners:
            return  # the queues have just been deleted
        if seen is None or dict(seen.hard) != hard or seen.owners != set(owners.values()):
            if self._failed.holds(namespace, self._store.clock()) or not await self._seats.take_for(namespace):
                return
            write = self._actuator.write_limit(namespace, hard, owners, seen)
            if not await self._limits.succeeds(namespace, namespace, write, namespace=namespace):
                return
            self._written[namespace] = hard
        for victim in sorted(victims, key=lambda each: each.uid in self._failed):
            if victim.uid in self._not_before:
                continue
            if not await self._seats.take_for(namespace):
                return
            if self._store.clock() - decided > FRESH:
                self._seats.give_back()
                return
            await self._evict(victim, hard)

    async def _evict(self, victim: Pod, hard: Hard) -> None:
        """Evicts a pod with the seat that was taken, if it still has to go."""
        if not quota_manager.still_has_to_go(self._store.cluster, victim, hard):
            self._seats.give_back()
            return
        why = "its namespace uses more than its part of what its queue deserves"
        gone = eviction_of(self._store.cluster, victim, "quota-manager", why)
        event = Event(about_pod(victim), "Reclaimed", f"evicted: {why}")
        if not await evict(self._store, self._actuator, victim, gone, event, self._seats.writing_in(victim.namespace)):
            self._failed.put(victim.uid, self._store.clock())  # others are tried before it then
        self._not_before[victim.uid] = self._store.clock() + AGAIN

    async def _remove(self, namespace: str, seen: Limit) -> None:
        if namespace in self._not_before or not await self._seats.take_for(namespace):
            return
        try:
            with self._seats.writing_in(namespace):
                await self._actuator.remove_limit(namespace, seen)
        except ActionFailed as failure:
            metrics.LIMIT_WRITES.labels("failed").inc()
            log.warning("resource quota not removed", namespace=namespace, error=str(failure))
        else:
            metrics.LIMIT_WRITES.labels("removed").inc()
            log.info("resource quota removed", namespace=namespace)
        self._not_before[namespace] = self._store.clock() + AGAIN

    def _say_what_is_taken(self, taken: list[str]) -> None:
        """Logs once for each namespace that it is not limited, as an object of our name belongs to somebody else."""
        for namespace in taken:
            if namespace not in self._taken:
                log.warning(
                    "namespace not limited: a resource quota of this name is there, and is not ours",
                    namespace=namespace,
                    name=quota_manager.NAME,
                )
        self._taken = set(taken)
