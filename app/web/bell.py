"""A notifier: rings when something has changed, and wakes all who wait for that."""

import asyncio
from contextlib import suppress


class Bell:
    """A bell; ``rung`` counts its rings, so that a busy listener misses none."""

    def __init__(self) -> None:
        """Starts without a ring."""
        self.rung = 0
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wakes all who wait."""
        self.rung += 1
        self._event.set()

    async def wait(self, heard: int, at_most: float) -> None:
        """Waits until there are more rings than ``heard``, but at most ``at_most`` seconds."""
        if self.rung == heard:
            self._event.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), at_most)
