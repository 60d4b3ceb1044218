"""Which nodes are better than others: for the scheduler, and for whoever is to be given one.

Seed: reserve action (Node calculating score logic).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from policy.cluster import Cluster
from policy.job import job_name
from policy.node_table import NodeTable
from policy.pod import Pod

HIGHEST = 10
"""The most that an extender may give a node."""
_EVEN = 9  # digits: nodes that are as free as each other tie, whatever their size
_NO_SCALARS = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


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


def freeness(table: NodeTable, pod: Pod) -> NDArray[np.float64]:
    """How free each node is, for this pod: ((cpu + memory) / 2 + 2 * scalars) / 3, between 0 and 1.

    Scalars are the mean over those that the pod requests: all but cpu, memory, ephemeral storage and pods.
    """
    scalars = [name for name, amount in pod.request.items() if amount and name not in _NO_SCALARS]
    zero = np.zeros(len(table.names))
    scalar = sum((_free_share(table, name) for name in sorted(scalars)), zero) / max(1, len(scalars))
    score = ((_free_share(table, "cpu") + _free_share(table, "memory")) / 2 + 2 * scalar) / 3
    return np.round(score, _EVEN)


def shortage(table: NodeTable, pod: Pod) -> NDArray[np.float64]:
    """How much each node is short of for the pod now, in shares of its request."""
    free, lacking = table.free, np.zeros(len(table.names))
    for resource, amount in pod.request.items():
        column = table.columns.get(resource)
        if amount and column is not None:
            lacking += np.clip(float(amount) - free[:, column], 0, None) / amount
    return np.round(lacking, _EVEN)


def _free_share(table: NodeTable, resource: str) -> NDArray[np.float64]:
    """The part of a resource that is free on each node: 0 where it has none, or more is used than there is."""
    column = table.columns.get(resource)
    if column is None:
        return np.zeros(len(table.names))
    there, used = table.allocatable[:, column], table.used[:, column]
    share: NDArray[np.float64] = np.clip(1 - used / np.maximum(there, 1), 0, 1)
    return np.where(there > 0, share, 0.0)
