"""Wakes refused pods that could run now, since the scheduler does not notice a raised quota."""

import asyncio

import structlog

from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.write_seats import WriteSeats
from app.observability import metrics
from app.store.store import Store
from policy.objects.pod import Pod
from policy.queueing.waking import to_wake

log = structlog.get_logger(__name__)

INTERVAL = 0.25
"""Seconds between looks; pods that the scheduler retries meanwhile need no waking."""
AGAIN = 15.0
"""Seconds until a woken pod that is still refused is woken again, and until all are looked at anyway."""
SOON = 1.0
"""Seconds until the next look for pods above the rate."""
RATE, BURST = 100.0, 200
"""Pods woken per second in the long run, and at once after a rest: no more than a scheduler places."""
AT_ONCE = 20
"""Writes under way at a time."""


class Wake:
    """Looks for pods to wake after every change that may have made room."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._seen = -1
        self._looked = 0.0
        self._look_at = 0.0
        self._may_wake = 0.0
        self._woken: dict[str, float] = {}
        self._failed: KeyedBackoff[str] = KeyedBackoff()
        self._chosen = 0  # pods that are chosen and wait for a seat
        self._seats = WriteSeats(AT_ONCE, store.clock, self._look_soon)

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(INTERVAL)
                self.look(group)

    def look(self, group: asyncio.TaskGroup) -> None:
        """Wakes, in the group, the pods that could run now. A slow write delays no other."""
        now = self._store.clock()
        cluster = self._store.cluster
        if self._store.unready() or (cluster.generations.admission == self._seen and now < self._look_at):
            return
        self._may_wake = min(BURST, self._may_wake + RATE * (now - self._looked))
        self._seen, self._looked = cluster.generations.admission, now
        self._woken = {uid: at for uid, at in self._woken.items() if now - at < AGAIN}
        found = [pod for pod in to_wake(cluster, self._backs_off) if pod.uid not in self._woken]
        found.sort(key=self._is_held_up)  # last, so that they take no rate from others
        pods = found[: min(int(self._may_wake), BURST - self._chosen)]
        self._may_wake -= len(pods)
        self._chosen += len(pods)
        self._look_at = now + SOON if len(pods) < len(found) else self._next_look(now)
        for pod in pods:
            self._woken[pod.uid] = now
            group.create_task(self._wake(pod))

    def _backs_off(self, pod: Pod) -> bool:
        return self._failed.holds(pod.uid, self._store.clock()) or self._seats.are_kept_from(pod.namespace)

    def _is_held_up(self, pod: Pod) -> bool:
        return pod.uid in self._failed or self._seats.is_slow_in(pod.namespace)

    def _next_look(self, now: float) -> float:
        return max(now + SOON, min(now + AGAIN, self._failed.next(now)))

    def _look_soon(self) -> None:
        self._look_at = min(self._look_at, self._looked + SOON)

    async def _wake(self, pod: Pod) -> None:
        may_write = await self._seats.take_for(pod.namespace)
        self._chosen -= 1
        if not may_write:
            self._woken.pop(pod.uid, None)
            self._may_wake += 1
            return
        try:
            with self._seats.writing_in(pod.namespace):
                await self._actuator.wake(pod)
        except ActionFailed as failure:
            self._woken.pop(pod.uid, None)
            self._failed.put(pod.uid, self._store.clock())
            self._look_soon()
            metrics.WAKE_UPS.labels("failed").inc()
            log.warning("pod not woken", namespace=pod.namespace, pod=pod.name, error=str(failure))
        else:
            self._failed.clear(pod.uid)
            metrics.WAKE_UPS.labels("woken").inc()
