"""Tells when nobody can foresee a pod's start, though all rules would let it run: something outside of them fails."""

from dataclasses import dataclass

from policy.cluster.cluster import Cluster
from policy.explain.unanswered import unanswered_in
from policy.objects.pod import Pod
from policy.preemption import reclaim


@dataclass(frozen=True, slots=True)
class Unforeseen:
    """Why the start of a pod is not known, and what has to be done instead of waiting."""

    why: str
    remedy: str


NO_ANSWER = Unforeseen(
    "its scheduler got no answer from an extender", "see to it that the extender answers its scheduler"
)
EVICTIONS_FAIL = Unforeseen("evictions for it fail", "see to it that evictions for it succeed")


def unforeseen(cluster: Cluster, pod: Pod) -> Unforeseen | None:
    """Returns why the start of a waiting pod cannot be foreseen; None if nothing is known to fail."""
    if pod.unschedulable is not None and unanswered_in(pod.unschedulable.message) is not None:
        return NO_ANSWER
    if cluster.failed_evictions.reason(pod.uid):
        return EVICTIONS_FAIL
    plan = cluster.reservations.held_for(pod.uid)
    fails = plan is not None and plan.blocked_since and not reclaim.protected_victims(cluster, plan)
    return EVICTIONS_FAIL if fails else None
