"""Keeps what queues deserve up to date. On every replica: it is what the scheduler is answered by.

The work grows with queues and namespaces, so it is done between answers, in slices, and not more often than it can be.
"""

import asyncio
import time

from app.pause import Pause
from app.store.store import Store

INTERVAL = 0.02
"""Seconds between looks."""
PAUSE = 4
"""How many times as long as it took it rests, so that it never takes more than a fifth of the time."""


class Divide:
    """Divides the cluster among queues again after every change that matters."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            started = time.perf_counter()
            await self.look()
            await asyncio.sleep(max(INTERVAL, PAUSE * (time.perf_counter() - started)))

    async def look(self) -> None:
        """Divides anew, if anything has changed."""
        cluster = self._store.cluster
        if not self._store.synced or not cluster.to_be_divided:
            return
        pause = Pause()
        for _ in cluster.divide():
            await pause.if_due()
