"""The nodes that the scheduler should prefer: those reserved for a pod's job, and those where similar pods run."""

from collections.abc import Iterable

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod

HIGHEST = 10
"""The highest score that an extender may give a node."""


def preferred(cluster: Cluster, pod: Pod, candidates: Iterable[str]) -> list[str]:
    """Returns the candidates that the scheduler should prefer; none where all are alike.

    For the pods of a job these are the nodes reserved for it; for all others, the nodes that are not reserved.
    """
    names = list(candidates)
    job = cluster.reservations.nodes.job_of(pod)
    in_force = [each for each in cluster.reservations.reserved if cluster.reservations.is_reserved(each)]
    own = {each.node for each in in_force if (each.pod.namespace, each.job) == job}
    if own:
        return [name for name in names if name in own]
    reserved = {each.node for each in in_force}
    return [] if reserved.isdisjoint(names) else [name for name in names if name not in reserved]


def apart(cluster: Cluster, pod: Pod, candidates: Iterable[str]) -> list[str]:
    """Returns the candidates that keep what is lent and what is guaranteed apart; none where all are alike.

    For a pod that would borrow these are nodes with borrowers. So taking back empties few nodes and leaves the others
    alone. For a pod that stays within what is guaranteed to it they are nodes without borrowers. All pods of a
    namespace count as borrowing if its quota exceeds its min, or its queue exceeds what it deserves.
    """
    borrowing, borrows = cluster.ledger.borrowing, cluster.ledger.borrows(pod)
    if not borrowing or borrows is None:
        return []
    names, hosts = list(candidates), cluster.table.hosts_of(borrowing)
    preferred = [name for name in names if (name in hosts) == borrows]
    return preferred if len(preferred) < len(names) else []
