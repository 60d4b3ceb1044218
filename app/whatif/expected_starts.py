"""When waiting jobs are expected to start: computed on a copy, in slices, and only if somebody asks."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress

import structlog

from app.garbage import undisturbed
from app.pause import Pause, TimeIsUp, at_leisure
from app.settings import Settings
from app.store.store import Store
from app.whatif.missing_claims import missing_claim
from app.whatif.start_errors import StartErrors
from app.whatif.trial import Scene
from policy.explain.unforeseen import unforeseen
from policy.objects.pod import Pod
from policy.simulate.expected_start import DECLARED, ExpectedStart, Forecast, never
from policy.simulate.snapshot import snapshot

log = structlog.get_logger(__name__)

PATIENCE = 1.0
"""Seconds that an answer waits for what is being computed. After that it has what was computed before."""
RESTRAINT = 4
"""Multiple of the work for which nothing is computed anew: it takes at most a fifth of a core."""


class ExpectedStarts:
    """Keeps the starts that were computed last. ``expected.interval`` is the least time until it is computed again.

    ``errors`` measures how good they were.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._found: dict[str, ExpectedStart] = {}
        self._earliest: dict[str, float] = {}
        self._without: set[str] = set()
        self._next_at = self._stale_at = 0.0
        self._last_work = 0.0
        self._work: asyncio.Task[None] | None = None
        self.errors = StartErrors(store)

    async def renew(self) -> None:
        """Computes the starts anew if it is time, and waits for that a moment, if that may be enough. Never raises."""
        now = self._store.clock()
        if self._work is None and now >= self._next_at:
            if now >= self._stale_at:  # nobody has asked for long, so these are starts of another time
                self._found, self._earliest, self._without = {}, {}, set()
            self._work = asyncio.create_task(self._compute())
        if self._work is not None and self._last_work <= PATIENCE:  # else it would be waited for in vain
            await asyncio.wait({self._work}, timeout=PATIENCE)

    def of(self, pods: Iterable[Pod]) -> ExpectedStart | None:
        """Returns the first start of these pods; None if none is known, as of those for which something fails."""
        cluster = self._store.cluster
        found = (self._found[pod.uid] for pod in pods if pod.uid in self._found and not unforeseen(cluster, pod))
        return min(found, key=lambda each: each.at, default=None)

    def earliest(self, pods: Iterable[Pod]) -> float | None:
        """Returns when the job of these pods could start at the earliest, were it alone in line; None if not known.

        That is no later than its expected start, unless some end is estimated for that.
        """
        there = list(pods)
        found = [self._earliest[pod.uid] for pod in there if pod.uid in self._earliest]
        start = self.of(there)
        if start is not None and start.basis == DECLARED:
            found.append(start.at)
        return min(found, default=None)

    def was_sought(self, pods: Iterable[Pod]) -> bool:
        """Whether the starts of some of these pods were sought to the end."""
        return any(pod.uid in self._found or pod.uid in self._without for pod in pods)

    async def _compute(self) -> None:
        pause, started = Pause(), self._store.clock()
        try:
            await self._play(pause)
        except Exception:  # a job may be odd in a way that nobody knows: the asker gets all else
            log.exception("expected starts cannot be computed")
        finally:
            self._last_work = pause.worked()
            rest = max(self._settings.expected.interval, (1 + RESTRAINT) * self._last_work)
            self._next_at, self._stale_at = started + rest, self._store.clock() + 2 * rest
            self._work = None

    def _lacks_claim(self, uid: str) -> bool:
        """Whether a pod starts nowhere, as a claim that it names does not exist. The forecast knows no such claims."""
        pod = self._store.cluster.pods.get(uid)
        return pod is not None and missing_claim(self._store, self._settings, pod) != ""

    async def _play(self, pause: Pause) -> None:
        deadline = time.perf_counter() + self._settings.whatif.time_limit
        now, cluster = self._store.clock(), self._store.cluster
        scene = Scene(snapshot(cluster, now), self._settings.reserve.terms, cluster.epoch)
        with undisturbed(), suppress(TimeIsUp):
            try:
                copy = await at_leisure(scene.copy_steps(), deadline, pause)
                estimates = self._settings.run_time.estimate == "median"
                estimate = cluster.ended.estimate if estimates else never
                forecast = Forecast(copy, scene.terms, now, scene.epoch, estimate)
                await self._keep(forecast, now + scene.epoch, deadline, pause)
            finally:
                await at_leisure(scene.discard_steps(), pause=pause)

    async def _keep(self, forecast: Forecast, began: float, deadline: float, pause: Pause) -> None:
        """Plays what comes, and keeps the starts that are found, also if time is up before the end."""
        is_complete = False
        try:
            is_complete = await at_leisure(forecast.play_steps(), deadline, pause)
        finally:
            lacking = set[str]()
            for uid in forecast.found.keys() | forecast.earliest.keys():
                if self._lacks_claim(uid):
                    lacking.add(uid)
                await pause.if_due()
            found = {uid: start for uid, start in forecast.found.items() if uid not in lacking}
            without = forecast.waiting | (forecast.found.keys() - found.keys())
            self._found, self._without = found, without if is_complete else set()
            self._earliest = {uid: at for uid, at in forecast.earliest.items() if uid not in lacking}
            self.errors.expect(found, began)
