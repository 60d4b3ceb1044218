"""Writes what each elastic quota uses, and what is wrong with it, into its status. For the leader only."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from app.actuators.protocol import ActionFailed, Actuator
from app.api.models import quantities, used_of
from app.observability import metrics
from app.store.store import Store
from policy import elastic_quota

log = structlog.get_logger(__name__)

INTERVAL = 1.0
"""Seconds between writes of one quota."""
REFRESH = 300.0
"""Seconds until everything is written again: a write that changes nothing costs little, and what somebody else wrote
is put right."""
AT_ONCE = 20
SLICE = 100

Key = tuple[str, str]


class Status:
    """Keeps the status of every elastic quota equal to the ledger."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._written: dict[Key, dict[str, Any]] = {}
        self._since: dict[tuple[Key, str], str] = {}
        self._refreshed = store.clock()

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL)

    async def look(self) -> None:
        """Writes what has changed."""
        if self._store.unready():
            return
        if self._store.clock() - self._refreshed > REFRESH:
            self._written.clear()
            self._refreshed = self._store.clock()
        wanted: dict[Key, dict[str, Any]] = {}
        for index, namespace in enumerate(list(self._store.cluster.quotas)):
            wanted |= self._statuses(namespace)
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        self._written = {key: status for key, status in self._written.items() if key in wanted}
        lasting = {(key, each["type"]) for key, status in wanted.items() for each in status["conditions"]}
        self._since = {condition: since for condition, since in self._since.items() if condition in lasting}
        limit = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for key, status in wanted.items():
                if self._written.get(key) != status:
                    group.create_task(self._write(key, status, limit))

    def _statuses(self, namespace: str) -> Mapping[Key, dict[str, Any]]:
        cluster = self._store.cluster
        quotas = cluster.quotas.get(namespace, {})
        governing = elastic_quota.in_force(quotas.values())
        if governing is None:
            return {}
        assigned = cluster.ledger.account(namespace).assigned
        statuses = {}
        for name, quota in quotas.items():
            used = used_of(assigned if quota is governing else {}, {**quota.max, **quota.min})
            conditions = [
                {"type": condition.type, "reason": condition.reason, "message": condition.message}
                for condition in elastic_quota.conditions(quota, governing)
            ]
            statuses[namespace, name] = {"used": quantities(used), "conditions": conditions}
        return statuses

    async def _write(self, key: Key, status: dict[str, Any], limit: asyncio.Semaphore) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        since = {each["type"]: self._since.setdefault((key, each["type"]), now) for each in status["conditions"]}
        conditions = [
            {**each, "status": "True", "lastTransitionTime": since[each["type"]]} for each in status["conditions"]
        ]
        body = {"used": status["used"], "conditions": conditions}
        async with limit:
            try:
                await self._actuator.write_quota_status(key[0], key[1], body)
            except ActionFailed as failure:
                metrics.STATUS_WRITES.labels("failed").inc()
                log.warning("status not written", quota="/".join(key), error=str(failure))
            else:
                metrics.STATUS_WRITES.labels("written").inc()
                self._written[key] = status
