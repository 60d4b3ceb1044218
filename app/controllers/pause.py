"""Long work on the cluster gives way to the scheduler: all that decides runs in one loop."""

import asyncio
import time

SLICE = 0.002
"""Seconds of work after which the scheduler is answered first."""


class Pause:
    """Measures the work of whoever made it, and lets others go first when it is time."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since = time.perf_counter()

    def worked(self) -> float:
        """Seconds of work so far, without the pauses."""
        return self._before + time.perf_counter() - self._since

    async def if_due(self) -> None:
        """Pauses after a slice of work."""
        if time.perf_counter() - self._since > SLICE:
            self._before = self.worked()
            await asyncio.sleep(0)
            self._since = time.perf_counter()
