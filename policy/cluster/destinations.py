"""The nodes where pods stand and where they are expected, as the table of nodes shows them.

A waiting pod is expected on the node with a hold for it as a member of a gang. Else it is expected where a plan keeps
room for it, else on the node that it is nominated to; on these two only while it may still come there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster.by_node import ByNode
from policy.nodes import fit
from policy.objects.resources import NOTHING, is_lighter

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources


class Destinations:
    """The nodes that matter to waiting pods, whether these are expected there now or not.

    ``outgrown`` are UIDs of pods that request more than when they were promised their node. They are not expected there
    until the rules admit them: whoever resizes a pod asks no rule, and may have promised to it what others guarantee.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.outgrown: set[str] = set()
        self._of = ByNode()
        self._cluster = cluster

    def place(self, pod: Pod) -> None:
        """Shows in the table where the pod stands or is expected."""
        table, stood = self._cluster.table, self.stands(pod.uid)
        waits = pod.pending
        expected = self._expect(pod) if waits else ""
        if pod.assigned or expected:
            table.add(pod, expected)
        else:
            table.remove(pod.uid)
        if waits:
            table.wait(pod)
        else:
            self.forget(pod.uid)
            table.wait_no_more(pod.uid)
        if stood[0]:
            self._cluster.hints.pod_left(pod.uid, *stood)

    def _expect(self, pod: Pod) -> str:
        """Notes the nodes that matter to a waiting pod; returns the one where it is expected, empty for none."""
        cluster = self._cluster
        held = cluster.reservations.held.get(pod.uid)
        destination = held.node if held else pod.nominated_node
        self._of.put(pod.uid, {destination, pod.nominated_node} - {""})
        expected = cluster.gangs.node_for(pod.uid) or (destination if self.may_come(pod, destination) else "")
        return "" if pod.terminating else expected

    def see_resized(self, pod: Pod, before: Pod | None) -> None:
        """Sees a waiting pod. One that requests more than before outgrows its node, unless it has a new one since."""
        held = self._cluster.reservations.held.get(pod.uid)
        if before is None or not (held or before.nominated_node == pod.nominated_node != ""):
            self.outgrown.discard(pod.uid)
        elif is_lighter(_written(before), _written(pod)):
            self.outgrown.add(pod.uid)

    def is_admitted(self, uid: str) -> None:
        """Notes that the rules admit a pod as it is now, so that it is expected again."""
        if uid in self.outgrown:
            self.outgrown.discard(uid)
            if uid in self._cluster.pods:
                self.place(self._cluster.pods[uid])

    def forget(self, uid: str) -> None:
        """Forgets a pod that waits no more, or is gone."""
        self._of.put(uid, ())
        self.outgrown.discard(uid)

    def nodes_of(self, uid: str) -> frozenset[str]:
        """Returns the nodes that matter to a waiting pod."""
        return self._of.nodes_of(uid)

    def restore(self, uid: str, nodes: frozenset[str]) -> None:
        """Sets the nodes that matter to a pod to those of before, without a look at the table."""
        self._of.put(uid, nodes)

    def stands(self, uid: str) -> tuple[str, Resources]:
        """Returns the node where a pod stands or is expected, and its request there; empty if there is none."""
        placed = self._cluster.table.placed(uid)
        return (placed.site.name, placed.pod.request) if placed is not None else ("", NOTHING)

    def may_come(self, pod: Pod, name: str) -> bool:
        """Whether a waiting pod may still come to a node that it is expected on.

        It may not while another gate than ours holds it, while it is being deleted, or once it has outgrown the node.
        Nor may it come to one that is gone, is not ready, or could not take it even if it were empty, like a cordoned
        one.
        """
        table = self._cluster.table
        if not name or pod.terminating or pod.gated or pod.uid in self.outgrown:
            return False
        node = table.node(name)
        if node is None or not node.ready or not fit.fits_if_empty_on(table, pod, name):
            return False
        return all(node.allocatable.get(resource) for resource, asked in pod.request.items() if asked)  # listed there

    def node_changed(self, name: str) -> None:
        """Checks again the pods that are expected on a node: whether they may come to it may have changed."""
        for uid in self._of.pods_of(name):
            self._cluster.states.stand_again(uid)


def _written(pod: Pod) -> Resources:
    """Returns what a pod itself requests: its user does not resize it when devices of its claims become known."""
    return pod.needs.request if pod.needs is not None else pod.request
