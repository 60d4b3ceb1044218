"""New room on a node, and the pods it helps. A pod has left, or the node has grown, or takes pods that it did not.

The room helps a pod if the node could take the pod, and the pod lacked there some of what has come. The rest must be
free, or could be taken back from borrowers or less important pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policy.nodes import fit

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.nodes.table import Site
    from policy.objects.node import Node
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class FreedRoom:
    """The amounts that have come on a node. ``before`` is the node as it was; None if it did not exist."""

    node: str
    freed: Resources
    before: Node | None

    def helps(self, cluster: Cluster, pod: Pod) -> bool:
        """Whether a waiting pod could be placed because of this room."""
        site = cluster.table.site(self.node)
        if site is None or (left := _left_beside(cluster, site, pod)) is None:
            return False
        short = {resource: -more for resource, more in left.items() if more < 0}
        if not ((short or pod.request).keys() & self.freed.keys() or self._is_new_for(cluster, pod)):
            return False
        for other in site.pods.values() if short else ():
            if other.priority < pod.priority or _borrows(cluster, other):
                short = {r: more for r, lacking in short.items() if (more := lacking - other.request.get(r, 0)) > 0}
        return not short

    def is_enough(self, cluster: Cluster, pod: Pod) -> bool:
        """Whether a waiting pod has room on the node now, though nobody is evicted, and had none before."""
        site = cluster.table.site(self.node)
        if site is None or (left := _left_beside(cluster, site, pod)) is None or min(left.values(), default=0) < 0:
            return False
        lacked = any(more < self.freed.get(resource, 0) for resource, more in left.items())
        return lacked or self._is_new_for(cluster, pod)

    def _is_new_for(self, cluster: Cluster, pod: Pod) -> bool:
        """Whether the node could not have taken the pod before, even if it had been empty."""
        return self.before is None or not fit.node_fits_if_empty(cluster.table, self.before, pod)


def grown(before: Node | None, after: Node) -> Resources:
    """Returns what a node can give more than before."""
    had = before.allocatable if before is not None else {}
    return {r: more for r, amount in after.allocatable.items() if (more := amount - had.get(r, 0)) > 0}


def _left_beside(cluster: Cluster, site: Site, pod: Pod) -> dict[str, int] | None:
    """Returns what a node would have left beside a pod, of what that requests: below 0 what the node lacks.

    None if the node could not take the pod even if it were empty.
    """
    table, node = cluster.table, site.node
    if node is None or not fit.node_fits_if_empty(table, node, pod):
        return None
    return {
        resource: node.allocatable.get(resource, 0) - site.used.get(resource, 0) - asked
        for resource, asked in pod.request.items()
        if table.lists(resource)
    }


def _borrows(cluster: Cluster, pod: Pod) -> bool:
    """Whether a pod's quota or queue borrows something."""
    ledger = cluster.ledger
    return pod.namespace in ledger.over_min or cluster.queue_of(pod) in ledger.queues.over_deserved
