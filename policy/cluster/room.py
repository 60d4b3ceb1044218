"""Whom room helps that comes on a node: a pod has left it, it can give more, or takes pods now that it did not.

A pod is helped if the node could take it, and what has come is of what it lacked there: the rest must be free, or could
be taken back from who borrows it or is less important.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policy.nodes import fit

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.node import Node
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class Room:
    """So much has come on a node, which was ``before`` what it was; None if it was not there."""

    node: str
    freed: Resources
    before: Node | None

    def helps(self, cluster: Cluster, pod: Pod) -> bool:
        """Whether a waiting pod could have a place by this."""
        site = cluster.table.site(self.node)
        node = site.node if site is not None else None
        if site is None or node is None or not fit.suits(cluster.table, node, pod):
            return False
        is_new = self.before is None or not fit.suits(cluster.table, self.before, pod)
        short = {
            resource: lacking
            for resource, asked in pod.request.items()
            if cluster.table.lists(resource)
            and (lacking := asked + site.used.get(resource, 0) - node.allocatable.get(resource, 0)) > 0
        }
        if not (is_new or (short or pod.request).keys() & self.freed.keys()):
            return False
        for other in site.pods.values() if short else ():
            if other.priority < pod.priority or _borrows(cluster, other):
                short = {r: more for r, lacking in short.items() if (more := lacking - other.request.get(r, 0)) > 0}
        return not short


def grown(before: Node | None, after: Node) -> Resources:
    """What a node can give more than before."""
    had = before.allocatable if before is not None else {}
    return {r: more for r, amount in after.allocatable.items() if (more := amount - had.get(r, 0)) > 0}


def _borrows(cluster: Cluster, pod: Pod) -> bool:
    """Whether something is lent to a pod's quota, or to its queue."""
    ledger = cluster.ledger
    return pod.namespace in ledger.over_min or cluster.queue_of(pod) in ledger.queues.over_deserved
