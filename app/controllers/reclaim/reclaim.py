"""Reclaims lent resources: evicts pods for entitled pods, and keeps the room until these are bound."""

import asyncio
import time
from collections.abc import Callable

from app.actuators.protocol import Actuator
from app.controllers.reclaim.broken_gangs import BrokenGangs
from app.controllers.reclaim.budget_patience import BudgetPatience
from app.controllers.reclaim.clocks import Clocks
from app.controllers.reclaim.failed_plans import FailedPlans
from app.controllers.reclaim.job_evictions import JobEvictions
from app.controllers.reclaim.notices import Notices
from app.controllers.reclaim.plan_ends import PlanEnds
from app.controllers.reclaim.plan_execution import PlanExecution
from app.controllers.reclaim.plan_search import PlanSearch
from app.controllers.reclaim.pod_evictions import PodEvictions
from app.controllers.reclaim.progress import ProgressOfPlans
from app.controllers.reclaim.victim_evictions import VictimEvictions
from app.controllers.reclaim.victim_notices import VictimNotices
from app.pause import at_leisure
from app.settings import ReclaimSettings
from app.store.store import Store
from policy.objects.pod import Pod
from policy.preemption import preemptors, reclaim
from policy.preemption.plans import Plan

INTERVAL = 0.25
"""Seconds between looks."""


class Reclaim:
    """Looks for plans for waiting pods, and has them carried out. For the leader only."""

    def __init__(
        self,
        store: Store,
        actuator: Actuator,
        settings: ReclaimSettings,
        epoch: Callable[[], float] = time.time,
    ) -> None:
        """``epoch`` returns the seconds since the epoch, in which reservations are written."""
        clocks = Clocks(store.clock, epoch)
        self._store = store
        self._settings = settings
        self._progress = ProgressOfPlans(store, clocks)
        self._patience = BudgetPatience(store, settings, clocks)
        self._failures = FailedPlans(store, settings, clocks)
        self._broken = BrokenGangs(store, actuator, settings)
        self._notices = Notices(store, actuator)
        told = VictimNotices(store, actuator, settings, self._notices, self._progress)
        pods = PodEvictions(store, actuator, settings, self._patience)
        jobs = JobEvictions(store, actuator, self._patience)
        evictions = VictimEvictions(store, actuator, pods, jobs, self._broken)
        self._search = PlanSearch(store, self._failures, self._patience)
        self._ends = PlanEnds(store, actuator, clocks, self._progress, self._failures, told)
        self._execution = PlanExecution(
            store, actuator, settings, clocks, self._progress, self._failures, told, evictions, self._ends
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await asyncio.sleep(INTERVAL)
                    await self.look(group)
        finally:
            self._store.cluster.failed_evictions.clear()

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Does one round. Slow work runs in the group, so that a slow plan delays no other."""
        if self._store.unready() or self._store.cluster.unsettled:
            return
        self._broken.clean_up(group)
        self._notices.write(group)
        self._failures.adopt()
        self._patience.adopt()
        self._execution.go_on(group)
        looked_at: set[str] = set()
        cluster, now = self._store.cluster, self._store.clock()
        planned = self._planned()
        waiting = await at_leisure(preemptors.waiting_steps(cluster, now, self._settings.delay))
        cluster.failed_evictions.keep_only(planned | self._planned() | {pod.uid for pod in waiting})
        for pod in waiting:
            if pod.uid not in looked_at:
                members = preemptors.together_with(self._store.cluster, pod, waiting)
                looked_at.update(member.uid for member in members)
                plans = await self._plans_for(members)
                if self._store.unready() or self._store.cluster.unsettled:
                    return
                self._execution.begin(group, plans)
                await asyncio.sleep(0)
        self._forget_what_is_gone()

    async def _plans_for(self, members: list[Pod]) -> list[Plan]:
        """Returns plans for these pods, if a search finds them. If it does not, ends those that are of no use then."""
        found = await self._search.plans_for(members)
        if isinstance(found, list):
            return found
        for member in members:
            self._store.cluster.failed_evictions.forget(member.uid)
        if not found.node and found.reason != "room":  # so room held for other members of its gang is held in vain
            await self._ends.end_unneeded(reclaim.mates_of(self._store.cluster, members[0]))
        return []

    def _planned(self) -> set[str]:
        """Returns the UIDs of the pods that room is made for, a plan of which may end while others are looked for."""
        return {reservation.pod.uid for reservation in self._store.cluster.reservations.plans.values()}

    def _forget_what_is_gone(self) -> None:
        self._failures.forget_what_is_gone()
        self._patience.forget_what_is_gone()
        self._progress.forget_what_is_gone()
        self._search.forget_what_is_gone()
