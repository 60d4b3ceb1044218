"""Writes Events on an elastic quota that say which of its rules keeps pods waiting. For the leader only.

kube-scheduler writes on each pod why it waits. Here the owner of the quota learns it, for all pods in one Event. The
controller reads only the pods' conditions, since the scheduler may ask another replica than the leader.
"""

import asyncio
import secrets
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from app.actuators.events import Event, Series, Subject, about_quota
from app.actuators.protocol import Actuator
from app.controllers.rounds import at_intervals
from app.store.elastic_quotas import ELASTIC_QUOTAS, ElasticQuotaObject
from app.store.store import Store
from policy.objects.pod import Pod, turn
from policy.quota.rule import Rule
from policy.quota.rules import named_in

INTERVAL = 5.0
"""Seconds between looks."""
AT_MOST = 20
"""Events per look; the others are written later."""
REPEAT = 300.0
"""Seconds until the same rule of the same quota is reported again while pods wait for it."""
EXPIRES = 3600.0
"""Seconds for which an API server keeps an Event by default; a later report is a new Event."""
SLICE = 500

Story = tuple[str, str, Rule[Any]]
"""Namespace and name of a quota, and its rule that pods wait for."""


class Refusals:
    """Finds the pods that wait for each quota, and reports them at intervals."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._told: dict[Story, tuple[float, Series]] = {}

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals(INTERVAL, self.look)

    async def look(self) -> None:
        """Reports the waiting pods whose report is due."""
        if self._store.unready():
            return
        now = self._store.clock()
        self._told = {story: told for story, told in self._told.items() if now - told[0] < EXPIRES}
        waiting = await self._waiting()
        due = [story for story in waiting if now - self._told_at(story) >= REPEAT]
        for story in sorted(due, key=self._told_at)[:AT_MOST]:
            obj = self._store.quota_objects.get(story[:2])
            if obj is not None:
                series = self._series(story)
                self._told[story] = now, series
                reason, message = story[2].event, self._message(story[2], waiting[story])
                self._actuator.report(Event(self._about(obj), reason, message, series=series))

    def _about(self, obj: ElasticQuotaObject) -> Subject:
        return about_quota(obj.metadata, self._store.kind_of_quota(ELASTIC_QUOTAS.key(obj.metadata)))

    async def _waiting(self) -> dict[Story, list[Pod]]:
        """Returns the pods that a quota refuses according to the scheduler's last message, by quota and rule."""
        cluster, waiting = self._store.cluster, defaultdict[Story, list[Pod]](list)
        for index, pod in enumerate(list(cluster.attempts.refused.values()), start=1):
            governing = cluster.ledger.account(pod.namespace).quota
            rule = named_in(pod.unschedulable.message) if pod.unschedulable else None
            waits = not pod.terminating and pod.uid not in cluster.grants
            if governing is not None and rule is not None and rule.event and waits:
                waiting[pod.namespace, governing.name, rule].append(pod)
            if index % SLICE == 0:
                await asyncio.sleep(0)
        return waiting

    def _told_at(self, story: Story) -> float:
        told = self._told.get(story)
        return told[0] if told else float("-inf")

    def _series(self, story: Story) -> Series:
        if story in self._told:
            series = self._told[story][1]
            return replace(series, count=series.count + 1)
        return Series(f"{story[1][:200]}.{secrets.token_hex(8)}", datetime.now(UTC), 1)

    def _message(self, rule: Rule[Any], pods: list[Pod]) -> str:
        first = min(pods, key=turn)
        refused = self._store.cluster.check(first)
        text = refused.message if refused is not None and refused.rule == rule.name else rule.text
        return f"{text}; pods that wait: {len(pods)}, next of them {first.name}"
