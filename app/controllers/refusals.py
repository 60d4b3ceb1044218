"""Writes Events on an elastic quota that say which of its rules keeps pods waiting. For the leader only.

kube-scheduler writes on each pod why it waits. Here the owner of the quota learns it, for all pods in one Event. The
controller reads only the pods' conditions, since the scheduler may ask another replica than the leader. The scheduler
is told nothing of pods at gates and of Jobs that wait as a whole: the first of each line is asked about here.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from app.actuators.events import Event, Series, Subject, about_quota
from app.actuators.protocol import Actuator
from app.controllers.rounds import at_intervals
from app.pause import Pause
from app.store.elastic_quotas import ELASTIC_QUOTAS, ElasticQuotaObject
from app.store.store import Store
from policy.cluster.gates import Where
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

Story = tuple[str, str, Rule[Any]]
"""Namespace and name of a quota, and its rule that pods wait for."""


@dataclass(slots=True)
class Waiting:
    """Pods and Jobs as a whole that wait for a rule of a quota: their numbers, and the first of all."""

    first: Pod
    pods: int = 0
    jobs: int = 0

    @property
    def text(self) -> str:
        """How many wait, and who is next, for people."""
        numbers = (("pods", self.pods), ("Jobs", self.jobs))
        number = ", ".join(f"{what} that wait: {count}" for what, count in numbers if count)
        job = self.first.stands_for
        return f"{number}, next of them {job.text if job is not None else self.first.name}"


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

    async def _waiting(self) -> dict[Story, Waiting]:
        """Returns the pods and Jobs that wait for a quota, by quota and rule."""
        cluster, found, pause = self._store.cluster, dict[Story, Waiting](), Pause()
        for pod in list(cluster.attempts.refused.values()):
            message = pod.unschedulable.message if pod.unschedulable else ""
            waits = not pod.terminating and pod.uid not in cluster.grants
            if waits and (story := self._story(pod, message)):
                self._enter(found, story, pod).pods += 1
            await pause.if_due()
        at_gates = set[Story]()
        for where in list(cluster.gates.lines):
            first = self._first_at_gate(where)
            refused = cluster.why_waits(first) if first is not None else None
            if first is not None and refused is not None and (story := self._story(first, refused.message)):
                waiting = self._enter(found, story, first)
                if story not in at_gates:  # of several lines of the namespace, all are counted at once
                    at_gates.add(story)
                    waiting.pods += cluster.gates.number_of(first.namespace, jobs=False)
                    waiting.jobs += cluster.gates.number_of(first.namespace, jobs=True)
            await pause.if_due()
        return found

    def _first_at_gate(self, where: Where) -> Pod | None:
        """Returns the first of a line, if it waits for its turn; None also if the line has gone in a pause."""
        line = self._store.cluster.gates.lines.get(where)
        first = line.first().first() if line is not None else None
        return first if first is not None and self._store.cluster.gate_admission.holds(first) else None

    def _story(self, pod: Pod, message: str) -> Story | None:
        """Returns the quota that refuses a pod according to a message, and its rule; None if none does."""
        governing, rule = self._store.cluster.ledger.account(pod.namespace).quota, named_in(message)
        if governing is None or rule is None or not rule.event:
            return None
        return pod.namespace, governing.name, rule

    def _enter(self, found: dict[Story, Waiting], story: Story, pod: Pod) -> Waiting:
        """Returns those that wait for a rule, with this pod among them."""
        waiting = found.setdefault(story, Waiting(pod))
        waiting.first = min(waiting.first, pod, key=turn)
        return waiting

    def _told_at(self, story: Story) -> float:
        told = self._told.get(story)
        return told[0] if told else float("-inf")

    def _series(self, story: Story) -> Series:
        if story in self._told:
            series = self._told[story][1]
            return replace(series, count=series.count + 1)
        return Series(f"{story[1][:200]}.{secrets.token_hex(8)}", datetime.now(UTC), 1)

    def _message(self, rule: Rule[Any], waiting: Waiting) -> str:
        refused = self._store.cluster.why_waits(waiting.first)
        text = refused.message if refused is not None and refused.rule == rule.name else rule.text
        return f"{text}; {waiting.text}"
