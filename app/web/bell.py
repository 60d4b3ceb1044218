"""A bell: rings when something has changed, and wakes all who wait for that."""

import asyncio
from contextlib import suppress


class Bell:
    """``rung`` counts how often it has rung, so that nobody misses what happens while busy."""

    def __init__(self) -> None:
        """It has not rung yet."""
        self.rung = 0
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wakes all who wait."""
        self.rung += 1
        self._event.set()

    async def wait(self, heard: int, at_most: float) -> None:
        """Waits until it has rung more often than was heard, but so many seconds at most."""
        if self.rung == heard:
            self._event.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), at_most)
