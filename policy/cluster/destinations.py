"""Where pods stand and where they are expected, as the table of nodes shows it.

A waiting pod is expected on the node that something is held on for it as a member of a gang, else on the one where a
plan keeps room for it, else on the one that it is nominated to; of the last two only while it may still come there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster.by_node import ByNode
from policy.nodes import fit
from policy.objects.resources import NOTHING

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources


class Destinations:
    """The nodes that matter to pods that wait, be they expected there now or not."""

    def __init__(self, cluster: Cluster) -> None:
        self._of = ByNode()
        self._cluster = cluster

    def place(self, pod: Pod) -> None:
        """Shows in the table where the pod stands or is expected."""
        cluster = self._cluster
        stood = self.stands(pod.uid)
        held = cluster.reservations.held.get(pod.uid)
        destination = held.node if held else pod.nominated_node
        named = {destination, pod.nominated_node} - {""} if pod.pending else ()
        self._of.put(pod.uid, named)
        expected = cluster.gangs.node_for(pod.uid)
        if not expected and pod.pending and self.may_come(pod, destination):
            expected = destination
        if pod.assigned or (pod.pending and expected and not pod.terminating):
            cluster.table.add(pod, expected)
        else:
            cluster.table.remove(pod.uid)
        if pod.pending:
            cluster.table.wait(pod)
        else:
            cluster.table.wait_no_more(pod.uid)
        if stood[0]:
            cluster.hints.pod_left(pod.uid, *stood)

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._of.put(uid, ())

    def stands(self, uid: str) -> tuple[str, Resources]:
        """On which node a pod stands or is expected, and with what; empty if on none."""
        placed = self._cluster.table.placed(uid)
        return (placed.site.name, placed.pod.request) if placed is not None else ("", NOTHING)

    def may_come(self, pod: Pod, name: str) -> bool:
        """Whether a waiting pod may still come to a node that it is expected on.

        It may not while it is held by somebody else's gate or being deleted; nor to a node that is gone, is not ready,
        or could not take it however empty it were, like a cordoned one.
        """
        table = self._cluster.table
        if not name or pod.terminating or pod.gated:
            return False
        node = table.node(name)
        if node is None or not node.ready or not fit.suitable_on(table, pod, name):
            return False
        return all(node.allocatable.get(resource) for resource, asked in pod.request.items() if asked)  # listed there

    def node_changed(self, name: str) -> None:
        """Looks again at the pods that are expected on a node: they may come to it no longer, or again."""
        for uid in self._of.pods_of(name):
            self._cluster.states.stand_again(uid)
