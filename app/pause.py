"""Long work on the cluster gives way to the scheduler: all that decides runs in one loop."""

import asyncio
import time
from collections.abc import Callable

SLICE = 0.002
"""Seconds of work after which the scheduler is answered first."""


class Pause:
    """Measures the work of whoever made it, and lets others go first when it is time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._before = 0.0
        self._since = clock()

    def worked(self) -> float:
        """Seconds of work so far, without the pauses."""
        return self._before + self._clock() - self._since

    async def if_due(self) -> float:
        """Pauses after a slice of work; returns the time on the clock after that."""
        now = self._clock()
        if now - self._since > SLICE:
            self._before += now - self._since
            await asyncio.sleep(0)
            now = self._since = self._clock()
        return now
