"""Which resources are shown wherever more than one pod is meant: those that whoever runs the cluster has named.

Pods may request resources of any name, and waiting ones never have to show that there is such a thing. So sums over
pods are shown of what nodes list, be it zero, and of what quotas and queues name, besides what every node has. How much
is shown is bounded by what operators write.
"""

from collections.abc import Collection

from policy.cluster.cluster import Cluster
from policy.objects.resources import Resources, subtract
from policy.quota.queue_ledger import QueueAccount

USUAL = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""What every node has."""


def named(cluster: Cluster) -> frozenset[str]:
    """The resources that are shown."""
    return USUAL.union(*_naming(cluster))


def shown(cluster: Cluster, amounts: Resources) -> dict[str, int]:
    """These amounts, as far as they are shown. Takes no time that grows with the names that pods have made up."""
    of_nodes, of_quotas, of_queues = naming = _naming(cluster)
    if len(amounts) > len(USUAL) + sum(map(len, naming)):
        return {resource: amounts[resource] for resource in named(cluster) if resource in amounts}
    return {
        resource: amount
        for resource, amount in amounts.items()
        if resource in USUAL or resource in of_nodes or resource in of_quotas or resource in of_queues
    }


def _naming(cluster: Cluster) -> tuple[Collection[str], Collection[str], Collection[str]]:
    """What nodes, quotas and queues name."""
    return cluster.table.names_of_resources, cluster.ledger.named, cluster.ledger.queues.named


def allocated(cluster: Cluster, account: QueueAccount) -> dict[str, int]:
    """What the pods of a queue use, as far as it is shown. What room is held for is not used yet, and no part of it."""
    amounts = shown(cluster, account.taken)
    subtract(amounts, shown(cluster, account.held))
    return amounts
