"""Trials on request in the process that answers the scheduler: in slices, and for a limited time."""

import time
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from app.garbage import undisturbed
from app.pause import TimeIsUp, at_leisure
from app.problems import Problem
from app.settings import Settings
from app.store.store import Store
from app.whatif.changes import Change
from app.whatif.difference import difference_steps, numbers_steps
from app.whatif.models import WhatIfModel
from app.whatif.remedies import UNTRIED, RemedySearch, TriedRemedy
from app.whatif.trial import Scene, Trial, run_on_steps, run_steps
from policy.objects.pod import Pod
from policy.simulate.snapshot import snapshot
from policy.stepwise import Steps

T = TypeVar("T")

REMEMBERED = 5.0
"""Seconds for which the remedies of a pod are reused while everything else said of it stays the same."""
RESTRAINT = 4
"""Multiple of the search's duration for which remedies are reused in any case, up to those seconds."""

COMPLETE, OUT_OF_TIME = "complete", "out-of-time"
"""How a search for remedies ended: all was tried, or the time was over."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The remedies that were found, and how the search ended."""

    remedies: list[TriedRemedy]
    ended: str

    def rather_than_wait(self, remedy: str) -> "Searched":
        """Returns the same with a remedy in place of the advice to wait, as what is waited for fails."""
        told = [replace(each, text=remedy, tried=UNTRIED) if each.changes_nothing else each for each in self.remedies]
        return replace(self, remedies=told)


@dataclass(frozen=True, slots=True)
class Known:
    """The search result for a pod: its time, its duration in seconds, what else was said of it, and the remedies."""

    at: float
    took: float
    said: Hashable
    found: Searched


class Trials:
    """Answers what-if questions on copies of the store's cluster. The asker has a seat (see app.questions)."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._known: dict[str, Known] = {}

    async def what_if(self, changes: Iterable[Change]) -> WhatIfModel:
        """Returns the effect of these changes on the cluster. Raises Problem (422, 503)."""
        changes, limit = list(changes), self._settings.whatif.time_limit
        deadline = time.perf_counter() + limit
        with undisturbed():
            scene = self.scene()
            try:
                cluster = await at_leisure(scene.copy_steps(), deadline)
                before = await at_leisure(numbers_steps(cluster), deadline)
                trial = await at_leisure(run_on_steps(cluster, scene, changes), deadline)
                otherwise = await self._or_none(run_steps(scene, ()), deadline)
                return await at_leisure(difference_steps(before, trial, otherwise), deadline + 1)
            except TimeIsUp:
                raise Problem(503, f"the answer takes longer than {limit:g} s", retry_after=60) from None
            finally:
                await at_leisure(scene.discard_steps())

    async def remedies(self, pod: Pod, said: Hashable) -> Searched:
        """Searches for remedies of a waiting pod, within ``whatif.remedyTime``. Never raises.

        ``said`` is everything else that is said of the pod: while it stays the same, remedies are reused for a moment.
        """
        limit, now = self._settings.whatif.remedy_time, self._store.clock()
        self._known = {uid: known for uid, known in self._known.items() if now - known.at < REMEMBERED}
        known = self._known.get(pod.uid)
        if known is not None and (known.said == said or now - known.at < RESTRAINT * known.took):
            return known.found
        deadline = time.perf_counter() + limit
        with undisturbed():
            scene, started = self.scene(), self._store.clock()
            search = RemedySearch(scene, pod)
            try:
                with suppress(TimeIsUp):
                    await at_leisure(search.run_steps(), deadline)
            finally:
                await at_leisure(scene.discard_steps())
        found = Searched(search.found, COMPLETE if search.complete else OUT_OF_TIME)
        self._known[pod.uid] = Known(now, self._store.clock() - started, said, found)
        return found

    def scene(self) -> Scene:
        """Takes a snapshot of the cluster."""
        now = self._store.clock()
        return Scene(snapshot(self._store.cluster, now), self._settings.reserve.terms, self._store.cluster.epoch)

    async def _or_none(self, work: Steps[Trial], deadline: float) -> Trial | None:
        try:
            return await at_leisure(work, deadline)
        except TimeIsUp:
            return None
