"""Writes what each elastic quota uses, and what is wrong with it, into its status. For the leader only.

What stands in the status already is read back, so that a new leader writes nothing that is true, and a condition keeps
the time since when it holds.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from app.actuators.events import Event, about_quota
from app.actuators.protocol import ActionFailed, Actuator
from app.controllers.aside import Aside
from app.controllers.hands import Hands
from app.controllers.rounds import at_intervals_with_group
from app.controllers.under_way import UnderWay
from app.observability import metrics
from app.shapes import quantities, used_of
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.store import Store
from policy.explain.terminating import conditions_of_quota
from policy.quota import elastic_quota

log = structlog.get_logger(__name__)

INTERVAL = 1.0
"""Seconds between writes of one quota."""
AGAIN = 300.0
"""Seconds until the same is written over the same again, in case the write was lost; where it stands, nothing is."""
AT_ONCE = 20
"""Writes under way at a time."""
SLICE = 100

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Written:
    """A status that was written, over which one, and when: until the watch shows it, that one is still seen."""

    status: dict[str, Any]
    over: dict[str, Any]
    at: float


class Status:
    """Keeps the status of every elastic quota equal to the ledger."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._written: dict[Key, Written] = {}
        self._failed: Aside[Key] = Aside()
        self._since: dict[tuple[Key, str], str] = {}
        self._under_way: UnderWay[Key] = UnderWay()
        self._hands = Hands(AT_ONCE, store.clock)

    async def run(self) -> None:
        """Goes on until cancelled."""
        await at_intervals_with_group(INTERVAL, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Writes what is not there yet, in the group: a write that takes long holds up no other."""
        if self._store.unready() or self._store.lacks(ELASTIC_QUOTAS):
            return
        wanted: dict[Key, dict[str, Any]] = {}
        for index, namespace in enumerate(list(self._store.cluster.quotas)):
            wanted |= self._statuses(namespace)
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        self._written = {key: written for key, written in self._written.items() if key in wanted}
        lasting = {(key, each["type"]) for key, status in wanted.items() for each in status["conditions"]}
        self._since = {condition: since for condition, since in self._since.items() if condition in lasting}
        for key, status in wanted.items():
            if self._is_due(key, status) and await self._hands.take_for(key[0]):
                self._under_way.begin(group, key, self._write(key, status))

    def _statuses(self, namespace: str) -> Mapping[Key, dict[str, Any]]:
        cluster = self._store.cluster
        quotas = cluster.quotas.get(namespace, {})
        governing = elastic_quota.in_force(quotas.values())
        if governing is None:
            return {}
        assigned = cluster.ledger.account(namespace).assigned
        statuses = {}
        for name, quota in quotas.items():
            used = used_of(cluster, quota, assigned if quota is governing else {})
            conditions = [
                {"type": condition.type, "status": "True", "reason": condition.reason, "message": condition.message}
                for condition in conditions_of_quota(cluster, quota, governing)
            ]
            statuses[namespace, name] = {"used": quantities(used), "conditions": conditions}
        return statuses

    def _is_due(self, key: Key, status: dict[str, Any]) -> bool:
        """Whether a status is to be written now."""
        held_back = key in self._under_way or self._failed.holds(key, self._store.clock())
        return self._is_missing(key, status) and not held_back

    def _is_missing(self, key: Key, status: dict[str, Any]) -> bool:
        """Whether a quota does not have this status, and not only because the watch does not show it yet."""
        seen = self._seen(key)
        if _without_times(seen) == status:
            self._written.pop(key, None)  # it has been seen: what differs from now on is somebody else's
            return False
        written = self._written.get(key)
        return (
            written is None
            or (written.status, written.over) != (status, seen)
            or self._store.clock() - written.at >= AGAIN
        )

    def _seen(self, key: Key) -> dict[str, Any]:
        """What stands in the status of a quota."""
        obj = self._store.quota_objects.get(key)
        return obj.status if obj is not None and isinstance(obj.status, dict) else {}

    async def _write(self, key: Key, status: dict[str, Any]) -> None:
        """Writes a status with the hand that was taken."""
        seen = self._seen(key)
        appeared = [each for each in status["conditions"] if self._appears(key, each["type"], seen)]
        since = {each["type"]: self._since[key, each["type"]] for each in status["conditions"]}
        conditions = [{**each, "lastTransitionTime": since[each["type"]]} for each in status["conditions"]]
        try:
            with self._hands.at_work(key[0]):
                kind = self._store.kind_of_quota(key)
                await self._actuator.write_quota_status(*key, {"used": status["used"], "conditions": conditions}, kind)
        except ActionFailed as failure:
            self._failed.put(key, self._store.clock())
            metrics.STATUS_WRITES.labels("failed").inc()
            log.warning("status not written", quota="/".join(key), error=str(failure))
        else:
            metrics.STATUS_WRITES.labels("written").inc()
            self._failed.clear(key)
            self._written[key] = Written(status, seen, self._store.clock())
        for condition in appeared:
            self._tell(key, condition)

    def _appears(self, key: Key, kind: str, seen: dict[str, Any]) -> bool:
        """Notes since when a condition holds; whether that is since now, as nobody has said before that it does."""
        if (key, kind) in self._since:
            return False
        since = next((each.get("lastTransitionTime") for each in _conditions(seen) if each.get("type") == kind), None)
        self._since[key, kind] = since or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return since is None

    def _tell(self, key: Key, condition: dict[str, Any]) -> None:
        obj = self._store.quota_objects.get(key)
        if obj is not None:
            event = Event(
                about_quota(obj.metadata, self._store.kind_of_quota(key)),
                condition["reason"],
                condition["message"],
                warning=True,
            )
            self._actuator.report(event)


def _conditions(status: dict[str, Any]) -> list[dict[str, Any]]:
    """The conditions of a status that hold."""
    known = status.get("conditions")
    listed = known if isinstance(known, list) else []
    return [each for each in listed if isinstance(each, dict) and each.get("status") == "True"]


def _without_times(status: dict[str, Any]) -> dict[str, Any]:
    """A status as we write it, but for the times in its conditions; what else is in it makes a difference."""
    conditions = status.get("conditions") or []
    if isinstance(conditions, list):
        conditions = [
            {part: value for part, value in each.items() if part != "lastTransitionTime"}
            if isinstance(each, dict)
            else each
            for each in conditions
        ]
    return {"used": None, **status, "conditions": conditions}
