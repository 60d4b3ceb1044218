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
        node = site.node if site is not None else None
        if site is None or node is None or not fit.node_fits_if_empty(cluster.table, node, pod):
            return False
        is_new = self.before is None or not fit.node_fits_if_empty(cluster.table, self.before, pod)
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
    """Returns what a node can give more than before."""
    had = before.allocatable if before is not None else {}
    return {r: more for r, amount in after.allocatable.items() if (more := amount - had.get(r, 0)) > 0}


def _borrows(cluster: Cluster, pod: Pod) -> bool:
    """Whether a pod's quota or queue borrows something."""
    ledger = cluster.ledger
    return pod.namespace in ledger.over_min or cluster.queue_of(pod) in ledger.queues.over_deserved
