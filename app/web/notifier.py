"""A notifier: wakes all who wait for a change."""

import asyncio
from contextlib import suppress


class Notifier:
    """A notifier; ``generation`` counts the changes, so that a busy listener misses none."""

    def __init__(self) -> None:
        """Starts without a change."""
        self.generation = 0
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wakes all who wait."""
        self.generation += 1
        self._event.set()

    async def wait(self, seen: int, at_most: float) -> None:
        """Waits until there is a later generation than ``seen``, but at most ``at_most`` seconds."""
        if self.generation == seen:
            self._event.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), at_most)
