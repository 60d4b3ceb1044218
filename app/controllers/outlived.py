"""Evicts pods that have outlived their run times, if ``runTime.evict`` is on. For the leader only."""

import asyncio
from collections import defaultdict

from app.actuators.events import Event, about_pod
from app.actuators.protocol import Actuator
from app.controllers.evicting import evict
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.rounds import at_intervals_with_group
from app.controllers.write_seats import WriteSeats
from app.observability.evictions import eviction_of
from app.pause import Pause
from app.settings import RunTimeSettings
from app.store.store import Store
from policy.cluster.run_times import LOOK
from policy.objects.pod import Pod
from policy.quota.exempt_from_eviction import exempt_from_eviction

AT_ONCE = 20
"""Evictions under way at a time."""
AT_A_LOOK = 100
"""Evictions that are begun at a look; others follow at the next. Those on which a promise relies are not counted."""
IN_A_NAMESPACE = 20
"""Evictions of a namespace that are begun at a look, with those under way."""
AGAIN = (10.0, 300.0)
"""Seconds until a pod is tried again whose eviction was blocked or failed: at first, and at most (doubling)."""
REASON = "run-time-exceeded"


class Outlived:
    """Looks for pods that run for longer than is said of them, or than their quota and queues allow.

    It leaves alone what it is not sure of: pods that no quota or queue governs, that are exempt from eviction, or that
    are on their way out already. Disruption budgets hold. No namespace delays others: they take turns. Only those on
    nodes with a promised start come first, and all at a look: the promise relies on their ends.
    """

    def __init__(self, store: Store, actuator: Actuator, settings: RunTimeSettings) -> None:
        self._store = store
        self._actuator = actuator
        self._settings = settings
        self._failed: KeyedBackoff[str] = KeyedBackoff(*AGAIN)
        self._tasks: KeyedTasks[str] = KeyedTasks()
        self._seats = WriteSeats(AT_ONCE, store.clock)
        self._last = ""  # the namespace at which the last look ended

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals_with_group(LOOK, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Begins to evict some of those that must go, in the group."""
        if not self._settings.evict or self._store.unready():
            return
        room = AT_A_LOOK
        due, relied_on = await self._due()
        pause = Pause()
        for pod in relied_on:
            if not self._seats.are_kept_from(pod.namespace):
                self._tasks.begin(group, pod.uid, self._evict_if_still_due(pod.uid, pod.namespace))
            await pause.if_due()
        for namespace in sorted(due, key=lambda each: (each <= self._last, each)):
            if room > 0 and not self._seats.are_kept_from(namespace):
                room -= self._begin(group, due[namespace], room)
                self._last = namespace

    async def _due(self) -> tuple[dict[str, list[Pod]], list[Pod]]:
        """Returns who must go and may be tried, by namespace, and apart from these those that a promise relies on.

        Those whose evictions are under way are among them.
        """
        due, relied_on, pause = defaultdict[str, list[Pod]](list), list[Pod](), Pause()
        for pod in list(self._store.cluster.pods.values()):
            if self._must_go(pod) and not self._failed.holds(pod.uid, self._store.clock()):
                (relied_on if self._is_relied_on(pod) else due[pod.namespace]).append(pod)
            await pause.if_due()
        return due, relied_on

    def _is_relied_on(self, pod: Pod) -> bool:
        """Whether a start is promised on the node of a pod, so that it may rely on the end of the pod.

        It relies on nobody whom a disruption budget protects (policy.cluster.run_times).
        """
        cluster = self._store.cluster
        on = cluster.reservations.nodes.on(pod.node)
        promised = on is not None and any(each.promised_start for each in on.members)
        return promised and not cluster.budgets.protect(pod)

    def _begin(self, group: asyncio.TaskGroup, due: list[Pod], room: int) -> int:
        """Begins evictions in a namespace, those first that have not failed yet. Returns how many."""
        new = [pod for pod in due if pod.uid not in self._tasks]
        room = min(room, max(0, IN_A_NAMESPACE - (len(due) - len(new))))
        chosen = sorted(new, key=lambda each: each.uid in self._failed)[:room]
        for pod in chosen:
            self._tasks.begin(group, pod.uid, self._evict_if_still_due(pod.uid, pod.namespace))
        return len(chosen)

    async def _evict_if_still_due(self, uid: str, namespace: str) -> None:
        if not await self._seats.take_for(namespace):
            return
        pod = self._store.cluster.pods.get(uid)
        if self._store.unready() or pod is None or not self._must_go(pod):
            self._seats.give_back()
        else:
            await self._evict(pod)

    def _must_go(self, pod: Pod) -> bool:
        cluster = self._store.cluster
        if not pod.started:
            return False
        at = cluster.run_times.is_over_at(pod)
        over = at is not None and at + self._settings.grace < self._store.clock() + cluster.epoch
        return over and cluster.is_governed(pod) and not exempt_from_eviction(cluster.ledger, pod)

    async def _evict(self, pod: Pod) -> None:
        why = f"it has run for longer than {self._store.cluster.run_times.whose_is_over(pod)}"
        gone = eviction_of(self._store.cluster, pod, REASON, why)
        event = Event(about_pod(pod), "RunTimeExceeded", f"evicted: {why}")
        if await evict(self._store, self._actuator, pod, gone, event, self._seats.writing_in(pod.namespace)):
            self._failed.clear(pod.uid)
        else:
            self._failed.put(pod.uid, self._store.clock())
