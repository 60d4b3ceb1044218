"""Whether a pod may be let go although nodes have no room for it, as others may have to make room."""

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.quota.entitlement import SLOT, entitlement


def may_go_without_room(cluster: Cluster, pod: Pod) -> bool:
    """Whether a pod that its rules admit may be let go without room, so that others are evicted for it.

    A Job as a whole may only if others owe it that room: else it would run in part, and wait there. They do if it stays
    within what is its own, and there is somebody to evict for it: who holds what it may take back, or is less important
    in its own namespace. A Job that runs already grows only into room that is free.
    """
    if pod.stands_for is None:
        return True
    if pod.stands_for.grows:
        return False
    by_share, by_slot = cluster.rules.fair_share_preemption, cluster.table.is_short_of(SLOT)
    entitled = entitlement(cluster.ledger, pod, by_share=by_share, by_slot=by_slot)
    admitted_by_queue = cluster.queue_of(pod) in cluster.queues  # which admits no more than it deserves
    if not entitled.resources and not admitted_by_queue:
        return False
    return cluster.priorities.has_lower(pod.namespace, pod.priority) or cluster.lent.is_held_by_others(entitled)
