"""The resources that are shown in sums over pods: only those that the cluster's operators have named.

Pods may request resources of any name, and a waiting pod may name one that does not exist. So sums over pods show what
nodes list, even with zero, what quotas and queues name, and what every node has. Operators, not users, decide how much
is shown.
"""

from collections.abc import Collection

from policy.cluster.cluster import Cluster
from policy.objects.resources import Resources, subtract, total

USUAL = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""The resources that every node has."""


def named(cluster: Cluster) -> frozenset[str]:
    """Returns the resources that are shown."""
    return USUAL.union(*_naming(cluster))


def shown(cluster: Cluster, amounts: Resources) -> dict[str, int]:
    """Returns these amounts, as far as they are shown. Its time does not grow with names that pods have made up."""
    of_nodes, of_quotas, of_queues = naming = _naming(cluster)
    if len(amounts) > len(USUAL) + sum(map(len, naming)):
        return {resource: amounts[resource] for resource in named(cluster) if resource in amounts}
    return {
        resource: amount
        for resource, amount in amounts.items()
        if resource in USUAL or resource in of_nodes or resource in of_quotas or resource in of_queues
    }


def _naming(cluster: Cluster) -> tuple[Collection[str], Collection[str], Collection[str]]:
    """Returns the resources that nodes, quotas and queues name."""
    return cluster.table.names_of_resources, cluster.ledger.named, cluster.ledger.queues.named


def allocated(cluster: Cluster, name: str) -> dict[str, int]:
    """Returns what the pods of a queue and of all below it use, as far as it is shown.

    Leaves out held room, which is not used yet.
    """
    queues = cluster.ledger.queues
    amounts = shown(cluster, queues.node(name).taken)
    subtract(amounts, shown(cluster, total(account.held for account in queues.inside(name))))
    return amounts
