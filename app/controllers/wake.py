"""Wakes refused pods that could run now: the scheduler does not notice that a quota was raised."""

import asyncio

import structlog

from app.actuators.protocol import ActionFailed, Actuator
from app.observability import metrics
from app.store.store import Store
from policy.pod import Pod
from policy.waking import to_wake

log = structlog.get_logger(__name__)

INTERVAL = 0.25
"""Seconds between looks; what the scheduler retries by itself meanwhile needs no waking."""
AGAIN = 15.0
"""Seconds until a pod that was woken and is still refused is woken again, and until all are looked at anyway."""
SOON = 1.0
"""Seconds until what was not done is tried again: a write that failed, or what would have been too much at once."""
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
        self._unfinished = False
        self._may_wake = 0.0
        self._woken: dict[str, float] = {}

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self.look()

    async def look(self) -> None:
        """Wakes whoever is worth it now."""
        now = self._store.clock()
        cluster = self._store.cluster
        pause = SOON if self._unfinished else AGAIN
        if self._store.unready() or (cluster.eased == self._seen and now - self._looked < pause):
            return
        self._may_wake = min(BURST, self._may_wake + RATE * (now - self._looked))
        self._seen, self._looked = cluster.eased, now
        self._woken = {uid: at for uid, at in self._woken.items() if now - at < AGAIN}
        found = [pod for pod in to_wake(cluster) if pod.uid not in self._woken]
        pods = found[: int(self._may_wake)]
        self._may_wake -= len(pods)
        self._unfinished = len(pods) < len(found)
        limit = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for pod in pods:
                self._woken[pod.uid] = now
                group.create_task(self._wake(pod, limit))

    async def _wake(self, pod: Pod, limit: asyncio.Semaphore) -> None:
        async with limit:
            try:
                await self._actuator.wake(pod)
            except ActionFailed as failure:
                self._woken.pop(pod.uid, None)
                self._unfinished = True
                metrics.WAKE_UPS.labels("failed").inc()
                log.warning("pod not woken", namespace=pod.namespace, pod=pod.name, error=str(failure))
            else:
                metrics.WAKE_UPS.labels("woken").inc()
