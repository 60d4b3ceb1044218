"""Looks for plans: whether a search is due for pods, and for whom nobody can be evicted now."""

from dataclasses import dataclass, field
from math import inf

from app.controllers.reclaim.budget_patience import BudgetPatience
from app.controllers.reclaim.failed_plans import FailedPlans
from app.observability import metrics
from app.pause import at_leisure
from app.store.store import Store
from policy.objects.pod import Pod
from policy.preemption import joint_plans, preemptors, victims
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.preemptors import Shape

AGAIN = (0.5, 5.0)
"""Seconds until a search without a result is repeated: at first, and at most (doubling)."""
KEPT = 60.0
"""Seconds after its next search is due for which a shape is remembered."""


@dataclass(slots=True)
class SearchBackoff:
    """A shape of pods for which nobody could be evicted: the time of the next search, and the wait after it.

    ``moment`` is the last time for which it was searched early, as somebody was protected until then.
    """

    again_at: float = 0.0
    wait: float = field(default=AGAIN[0])
    moment: float = -inf

    def search_early(self, moment: float) -> None:
        """Searches at a moment before its time, unless that was done lately: a tenant may start pods all the time."""
        if moment < self.again_at and moment >= self.moment + AGAIN[1]:
            self.again_at = self.moment = moment


class PlanSearch:
    """The shapes of pods for which a search had no result, and how many pods of it were to start together."""

    def __init__(self, store: Store, failures: FailedPlans, patience: BudgetPatience) -> None:
        self._store = store
        self._failures = failures
        self._patience = patience
        self._backoff: dict[tuple[Shape, int], SearchBackoff] = {}

    async def plans_for(self, members: list[Pod]) -> list[Plan] | NoPlan:
        """Returns a plan for each of these pods, if a search is due and all of them can be planned for; else none.

        NoPlan: a search had no result.
        """
        cluster, now = self._store.cluster, self._store.clock()
        current = [cluster.pods.get(member.uid) for member in members]
        pods = [pod for pod in current if pod is not None and self._may_be_planned_for(pod)]
        if not pods or len(pods) < len(members):
            return []
        shape = preemptors.shape_of(pods[0], cluster), len(pods)
        backoff = self._backoff.get(shape)
        if backoff is not None and now < backoff.again_at:
            return []
        result = await self._search(pods)
        if isinstance(result, list):
            self._backoff.pop(shape, None)
            now_there = [cluster.pods.get(pod.uid) for pod in pods]  # the search took time
            return result if all(pod is not None and self._may_be_planned_for(pod) for pod in now_there) else []
        backoff = self._backoff.setdefault(shape, SearchBackoff())
        backoff.again_at = now + backoff.wait
        if result.moments:  # when somebody may go whom min-run-time protects now
            backoff.search_early(max(now + AGAIN[0], result.moments[0] - cluster.epoch))
        backoff.wait = min(backoff.wait * 2, AGAIN[1])
        metrics.RECLAIM_WITHOUT_PLAN.labels(result.reason).inc()
        return result

    def forget_what_is_gone(self) -> None:
        """Forgets shapes that nobody has asked about for some time."""
        horizon = self._store.clock() - KEPT
        self._backoff = {shape: each for shape, each in self._backoff.items() if each.again_at > horizon}

    async def _search(self, pods: list[Pod]) -> list[Plan] | NoPlan:
        cluster = self._store.cluster
        if len(pods) == 1:
            result = await at_leisure(victims.search_steps(cluster, pods[0]))
            return [result] if isinstance(result, Plan) else result
        return await at_leisure(joint_plans.plans_for_all_steps(cluster, pods))

    def _may_be_planned_for(self, pod: Pod) -> bool:
        """Whether the pod still waits, and has not failed too often or too recently."""
        cluster = self._store.cluster
        if not pod.pending or cluster.is_expected(pod.uid) or self._store.clock() < cluster.in_vain.waits_until(pod):
            return False
        if self._failures.has_to_wait(pod):
            return False
        return not self._failures.waits_for_change(pod) or self._patience.is_over(pod)
