"""Writes what each queue deserves, has and uses, and what is wrong with it, into its status. For the leader only.

A part of the controller ``status``. Only the fields that are written here are touched: ``state`` and the counters of
pod groups are somebody else's.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any

import structlog

from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.aside import Aside
from app.controllers.hands import Hands
from app.controllers.rounds import at_intervals_with_group
from app.controllers.under_way import UnderWay
from app.observability import metrics
from app.shapes import quantities
from app.store.queues import QUEUES
from app.store.store import Store
from policy.cluster import quota_manager
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import allocated, shown
from policy.explain.terminating import conditions_of_queue
from policy.objects.resources import total

log = structlog.get_logger(__name__)

INTERVAL = 1.0
"""Seconds between writes of one queue."""
REFRESH = 300.0
"""Seconds until everything is written again, so that what somebody else wrote is put right."""
AT_ONCE = 20
"""Writes under way at a time."""
SLICE = 50

Key = tuple[str, str]
"""The name of a queue and its UID: one that was made anew has no status."""


class QueueStatus:
    """Keeps the status of every queue equal to the ledger."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._written: dict[Key, dict[str, Any]] = {}
        self._failed: Aside[Key] = Aside()
        self._since: dict[tuple[Key, str], str] = {}
        self._refreshed = store.clock()
        self._under_way: UnderWay[str] = UnderWay()
        self._hands = Hands(AT_ONCE, store.clock)

    async def run(self) -> None:
        """Goes on until cancelled."""
        await at_intervals_with_group(INTERVAL, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Writes what has changed, in the group: a write that takes long holds up no other."""
        cluster = self._store.cluster
        if self._store.unready() or self._store.lacks(QUEUES):
            return
        if self._store.clock() - self._refreshed > REFRESH:
            self._written.clear()
            self._refreshed = self._store.clock()
        wanted: dict[Key, dict[str, Any]] = {}
        for index, name in enumerate(list(cluster.queues)):
            if name in cluster.queues:
                wanted[name, cluster.queues[name].uid] = status_of(cluster, name)
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        self._written = {key: status for key, status in self._written.items() if key in wanted}
        lasting = {(key, each["type"]) for key, status in wanted.items() for each in status["conditions"]}
        self._since = {condition: since for condition, since in self._since.items() if condition in lasting}
        for key, status in wanted.items():
            if self._is_due(key, status) and await self._hands.take_for(key[0]):
                self._under_way.begin(group, key[0], self._write(key, status))

    def _is_due(self, key: Key, status: dict[str, Any]) -> bool:
        """Whether a status is to be written now."""
        held_back = key[0] in self._under_way or self._failed.holds(key, self._store.clock())
        return self._written.get(key) != status and not held_back

    async def _write(self, key: Key, status: dict[str, Any]) -> None:
        """Writes a status with the hand that was taken; a queue has hands like a namespace."""
        name = key[0]
        self._written.pop(key, None)  # what fails may have been done all the same
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {**each, "lastTransitionTime": self._since.setdefault((key, each["type"]), now)}
            for each in status["conditions"]
        ]
        try:
            with self._hands.at_work(name):
                await self._actuator.write_queue_status(name, {**status, "conditions": conditions})
        except ActionFailed as failure:
            self._failed.put(key, self._store.clock())
            metrics.STATUS_WRITES.labels("failed").inc()
            log.warning("status not written", queue=name, error=str(failure))
        else:
            metrics.STATUS_WRITES.labels("written").inc()
            self._failed.clear(key)
            self._written[key] = status


def status_of(cluster: Cluster, name: str) -> dict[str, Any]:
    """The status of a queue that exists, but for the times in its conditions.

    Seed: Queue API. ``allocated`` counts pods on nodes and those admitted, ``used`` the former, and ``preempting`` what
    is held for pods that others go for, and what the queue's own pods that go still use.
    """
    queue, account = cluster.queues[name], cluster.ledger.queues.account(name)
    division, request, held = account.division, shown(cluster, account.request), shown(cluster, account.held)
    zero = dict.fromkeys({**division.deserved, **queue.capability, **queue.guarantee, **request}, 0)
    conditions: dict[str, dict[str, Any]] = {}
    for condition in conditions_of_queue(cluster, name):  # one for each type
        if condition.type in conditions:
            conditions[condition.type]["message"] += f"; {condition.message}"
        else:
            conditions[condition.type] = {
                "type": condition.type,
                "status": "True",
                "reason": condition.reason,
                "message": condition.message,
            }
    return {
        "deserved": quantities({**zero, **division.deserved}),
        "allocated": quantities({**zero, **allocated(cluster, account)}),
        "used": quantities({**zero, **shown(cluster, account.running)}),
        "preempting": quantities(total((held, shown(cluster, quota_manager.preempting(cluster, name))))),
        "conditions": list(conditions.values()),
    }
