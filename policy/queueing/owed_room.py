"""Whether a pod may be let go although nodes have no room for it, as others may have to make room."""

from collections.abc import Collection

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING


def may_go_without_room(cluster: Cluster, pod: Pod) -> bool:
    """Whether a pod that its rules admit may be let go without room, so that others are evicted for it.

    A Job as a whole may only if others owe it that room: else it would run in part, and wait there. They do if its
    quota or queue guarantees it all of that, and there is somebody to evict for it: who has more than is theirs, or is
    less important in its own namespace. A Job that runs already grows only into room that is free.
    """
    if pod.stands_for is None:
        return True
    if pod.stands_for.grows:
        return False
    guaranteed = _guaranteed(cluster, pod)
    is_its_own = bool(guaranteed) or cluster.queue_of(pod) in cluster.queues  # it admits no more than it deserves
    return is_its_own and (
        not cluster.ledger.borrowing <= {pod.namespace}
        or cluster.priorities.has_lower(pod.namespace, pod.priority)
        or _others_take_what_their_min_leaves_out(cluster, pod.namespace, guaranteed)
    )


def _guaranteed(cluster: Cluster, pod: Pod) -> list[str]:
    """Returns what a Job requests of the resources that its min names; nothing, unless it stays within min in all."""
    account = cluster.ledger.account(pod.namespace)
    least = account.quota.min if account.quota is not None else NOTHING
    named = [resource for resource in pod.request if resource in least]
    return named if all(account.used.get(r, 0) + pod.request[r] <= least[r] for r in named) else []


def _others_take_what_their_min_leaves_out(cluster: Cluster, namespace: str, resources: Collection[str]) -> bool:
    """Whether another quota uses one of some resources that its min does not name: it borrows all of that."""
    return any(
        account.used.get(resource, 0) and resource not in account.quota.min
        for other, account in (cluster.ledger.accounts.items() if resources else ())
        if account.quota is not None and other != namespace
        for resource in resources
    )
