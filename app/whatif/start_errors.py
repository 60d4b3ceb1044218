"""Measures by how much expected starts were wrong: what was first expected of a pod or Job against when it started."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from app.observability import metrics
from app.pause import Pause
from app.store.store import Store
from policy.simulate.expected_start import ExpectedStart

INTERVAL = 5.0
"""Seconds between looks, as long as anybody is expected to start. A pod that is gone before the next is not counted."""
SOON = 1.0
"""Seconds within which a start is expected that tells nothing: what has room now starts at once anyway."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """A start that was expected, and of which Job if a stand-in waited for it."""

    start: ExpectedStart
    job: tuple[str, str] | None


class StartErrors:
    """Keeps what was first expected of each pod that waits. The API server says when one has started."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._expected: dict[str, _Expected] = {}
        self._work: asyncio.Task[None] | None = None

    def expect(self, found: Mapping[str, ExpectedStart], now: float) -> None:
        """Notes starts that were computed at a time, as far as none was expected of the pod before."""
        for uid, start in found.items():
            pod = self._store.cluster.pending.get(uid)
            if pod is None or uid in self._expected or start.at <= now + SOON:
                continue
            if pod.stands_for is None:
                self._expected[uid] = _Expected(start, None)
            elif (job := self._store.cluster.batch_jobs.of_stand_in(pod)) is not None:
                self._expected[uid] = _Expected(start, job.key)
        if self._expected and self._work is None:
            self._work = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            while self._expected:
                await asyncio.sleep(INTERVAL)
                await self.look()
        finally:
            self._work = None

    async def look(self) -> None:
        """Measures those that have started, and forgets those that are gone."""
        pause = Pause()
        for uid, expected in list(self._expected.items()):
            started = self._started(uid, expected)
            if started is None:
                del self._expected[uid]
            elif started:
                del self._expected[uid]
                metrics.EXPECTED_START_ERROR.labels(expected.start.basis).observe(abs(started - expected.start.at))
            await pause.if_due()

    def _started(self, uid: str, expected: _Expected) -> float | None:
        """Returns when it has started, in seconds since the epoch; 0 if it has not, None if it is gone."""
        cluster = self._store.cluster
        if expected.job is not None:
            job = cluster.batch_jobs.get(expected.job)
            return job.started if job is not None else None
        pod = cluster.pods.get(uid)
        return pod.started if pod is not None else None
