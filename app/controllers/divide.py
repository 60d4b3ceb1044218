"""Keeps the deserved parts of queues up to date, on every replica, since answers to the scheduler depend on them.

So it does with the devices that pods take, and with the demand of Jobs that wait as a whole: queues deserve something
for them. The work grows with queues, namespaces, pods and Jobs. So it is done in slices between answers, and limited in
frequency.
"""

import asyncio
import time
from itertools import islice

from app.pause import Pause
from app.store.store import Store

INTERVAL = 0.02
"""Seconds between looks."""
PAUSE = 4
"""Multiple of the work for which it rests, so that dividing never takes more than a fifth of the time."""

RENEWALS = 500
"""Pods, nodes and Jobs of each sort that are computed anew in one look: tenants choose how many there are to do."""


class Divide:
    """Divides the cluster among queues again after every relevant change."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            started = time.perf_counter()
            await self.look()
            await asyncio.sleep(max(INTERVAL, PAUSE * (time.perf_counter() - started)))

    async def look(self) -> None:
        """Divides the cluster, and then computes anew what pods and waiting Jobs demand; only what has changed.

        It leaves the rest of many renewals, and of many waiting pods that are to be entered anew, to later looks. So
        nobody's division waits for them.
        """
        if not self._store.synced:
            return
        cluster, pause = self._store.cluster, Pause()
        if cluster.to_be_divided:
            for _ in cluster.divide_steps(RENEWALS):
                await pause.if_due()
        work = cluster.devices.renew_steps()
        for _ in islice(work, RENEWALS):
            await pause.if_due()
        work = cluster.queued_jobs.renew_steps()
        for _ in islice(work, RENEWALS):
            await pause.if_due()
