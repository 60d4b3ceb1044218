"""Which nodes the scheduler should prefer: those that are reserved for a pod's job, and those where its like runs."""

from collections.abc import Iterable

from policy.cluster.cluster import Cluster
from policy.objects.job import job_name
from policy.objects.pod import Pod

HIGHEST = 10
"""The most that an extender may give a node."""


def preferred(cluster: Cluster, pod: Pod, candidates: Iterable[str]) -> list[str]:
    """The candidates that the scheduler should prefer; none where all are alike.

    For the pods of a job those that are reserved for it, for all others those that are not reserved.
    """
    names = list(candidates)
    job = pod.namespace, job_name(cluster.membership.groups, pod)
    in_force = [each for each in cluster.reserved if cluster.is_reserved(each)]
    own = {each.node for each in in_force if (each.pod.namespace, each.job) == job}
    if own:
        return [name for name in names if name in own]
    reserved = {each.node for each in in_force}
    return [] if reserved.isdisjoint(names) else [name for name in names if name not in reserved]


def apart(cluster: Cluster, pod: Pod, candidates: Iterable[str]) -> list[str]:
    """The candidates that keep what is lent and what is guaranteed apart; none where all are alike.

    For a pod that would borrow those where borrowers are, so that taking back empties few nodes and leaves the others
    alone; for one that stays within what is guaranteed to it those where none are. Which pods borrow is looked at by
    namespace: all of one whose quota exceeds its min, or whose queue exceeds what it deserves.
    """
    borrowing, borrows = cluster.ledger.borrowing, cluster.ledger.borrows(pod)
    if not borrowing or borrows is None:
        return []
    names, hosts = list(candidates), cluster.table.hosts_of(borrowing)
    preferred = [name for name in names if (name in hosts) == borrows]
    return preferred if len(preferred) < len(names) else []
