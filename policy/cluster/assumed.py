"""Granted pods on their way to a node. Until they are bound nobody tells which, so each counts wherever it may land.

That matters for kept room. kube-scheduler knows where it has placed a pod, but not that the room left there is kept.
"""

from collections.abc import Hashable, Iterable, Sequence

from policy.cluster.grants import Grants
from policy.nodes import fit
from policy.nodes.packing import AlikePods
from policy.nodes.table import NodeTable
from policy.objects import signature
from policy.objects.pod import Pod
from policy.objects.resources import Resources, add
from policy.quota import exempt


def others(grants: Grants, table: NodeTable, pod: Pod) -> list[AlikePods]:
    """Returns the granted pods except this one, grouped by ``alike``."""
    return alike((other for other in grants.pods() if other.uid != pod.uid), table)


def alike(pods: Iterable[Pod], table: NodeTable) -> list[AlikePods]:
    """Groups pods by kind; returns one pod of each kind, and the number of them.

    Pods of a kind are kept from the same reserved nodes. A pod that is expected on a node is a kind of its own.
    """
    groups: dict[Hashable, list[Pod]] = {}
    for other in pods:
        who = (other.namespace, other.group, other.queue) if other.group or exempt.is_critical(other) else ()
        kind = other.uid if table.placed(other.uid) else (signature.by_empty_nodes(other), other.owner, who)
        groups.setdefault(kind, []).append(other)
    return [(group[0], len(group)) for group in groups.values()]


def at_most_on(table: NodeTable, node: str, coming: Sequence[AlikePods], pod: Pod) -> Resources:
    """Returns what granted pods may take of a node before this pod comes, beyond what the table shows as used there."""
    taken: dict[str, int] = {}
    for other, number in coming:
        placed = table.placed(other.uid)
        shown = placed is not None and placed.site.name == node and other.priority >= pod.priority
        if not shown and fit.fits_if_empty_on(table, other, node):
            add(taken, {resource: number * amount for resource, amount in other.request.items()})
    return taken
