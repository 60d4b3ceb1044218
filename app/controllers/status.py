"""Writes the use of each elastic quota, and what is wrong with it, into its status. For the leader only.

The controller reads the present status first. So a new leader does not write again what is already there, and a
condition keeps its transition time.
"""

import asyncio

from app.actuators.events import Event, about_quota
from app.actuators.protocol import Actuator
from app.controllers.rounds import at_intervals_with_group
from app.controllers.status_writer import Json, StatusWriter, Subject, condition_of
from app.shapes import quantities, used_of
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.store import Store
from policy.explain.terminating import conditions_of_quota
from policy.quota import elastic_quota

INTERVAL = 1.0
"""Seconds between writes of one quota."""
AGAIN = 300.0
"""Seconds until a written status is written again if the watch does not show it: the write may have been lost."""
AT_ONCE = 20
"""Writes under way at a time."""
SLICE = 100


class Status:
    """Keeps the status of every elastic quota equal to the ledger."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._writer = StatusWriter(
            "quota", AT_ONCE, AGAIN, store.clock, write=self._write, seen=self._seen, tell=self._tell
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals_with_group(INTERVAL, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Writes, in the group, the statuses that are not up to date. A slow write delays no other."""
        if self._store.unready() or self._store.lacks(ELASTIC_QUOTAS):
            return
        wanted: dict[Subject, Json] = {}
        for index, namespace in enumerate(list(self._store.cluster.quotas)):
            wanted |= self._statuses(namespace)
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        await self._writer.write_missing(group, wanted)

    def _statuses(self, namespace: str) -> dict[Subject, Json]:
        cluster = self._store.cluster
        quotas = cluster.quotas.get(namespace, {})
        governing = elastic_quota.in_force(quotas.values())
        if governing is None:
            return {}
        assigned = cluster.ledger.account(namespace).assigned
        statuses = {}
        for name, quota in quotas.items():
            used = used_of(cluster, quota, assigned if quota is governing else {})
            conditions = [condition_of(each) for each in conditions_of_quota(cluster, quota, governing)]
            statuses[Subject(namespace, name)] = {"used": quantities(used), "conditions": conditions}
        return statuses

    def _seen(self, quota: Subject) -> Json:
        """Returns the present status of a quota; empty if it has none."""
        obj = self._store.quota_objects.get((quota.namespace, quota.name))
        return obj.status if obj is not None and isinstance(obj.status, dict) else {}

    async def _write(self, quota: Subject, status: Json) -> None:
        key = quota.namespace, quota.name
        await self._actuator.write_quota_status(*key, status, self._store.kind_of_quota(key))

    def _tell(self, quota: Subject, condition: Json) -> None:
        """Writes an Event on the quota about a new condition."""
        key = quota.namespace, quota.name
        obj = self._store.quota_objects.get(key)
        if obj is not None:
            about = about_quota(obj.metadata, self._store.kind_of_quota(key))
            self._actuator.report(Event(about, condition["reason"], condition["message"], warning=True))
