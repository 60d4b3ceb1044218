"""Finds nodes that have room for a waiting pod, and taints that it does not tolerate."""

from collections.abc import Iterator

import numpy as np

from policy.cluster.cluster import Cluster
from policy.explain.remedy import FEW, ObjectChange, Remedy, first_of, listed
from policy.nodes import fit
from policy.nodes.tolerations import tolerates
from policy.objects.constraints import Taint
from policy.objects.node import Node
from policy.objects.pod import Pod

MOST_NODES = 200
"""The most nodes whose taints are looked at."""
_OF_THE_SYSTEM = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")
"""Prefixes of taints that controllers put on nodes, or installers on those of the control plane."""


def taints_text(cluster: Cluster, pod: Pod) -> str:
    """Says which taints keep the pod off nodes that have room for it; empty if it has room elsewhere, too."""
    kept_off = list(_kept_off(cluster, pod))
    if not kept_off or fit.fits(cluster.table, pod).any():
        return ""
    names = first_of([node.name for node, _ in kept_off])
    keys = sorted({taint.key for _, taints in kept_off for taint in taints})[:FEW]
    return f"it does not tolerate the taints of nodes with room for it ({names}): {', '.join(keys)}"


def without_taints(cluster: Cluster, pod: Pod) -> Iterator[Remedy]:
    """Suggests removing the taints that the pod does not tolerate from one node. None of them may be the system's."""
    for node, taints in _kept_off(cluster, pod):
        if not any(taint.key.startswith(_OF_THE_SYSTEM) for taint in taints):
            keys = listed(sorted({taint.key for taint in taints}))
            kept = [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints if t not in taints]
            text = f"remove the taint {keys} from node {node.name}, or add a toleration to the pod"
            yield Remedy("taint", text, (ObjectChange("Node", "", node.name, ((("spec", "taints"), kept or None),)),))
            return


def _kept_off(cluster: Cluster, pod: Pod) -> Iterator[tuple[Node, list[Taint]]]:
    """Yields nodes that have room for the pod, each with its taints that the pod does not tolerate."""
    for row in np.flatnonzero(fit.kept_off_by_taints(cluster.table, pod))[:MOST_NODES]:
        node = cluster.table.node(cluster.table.names[row])
        if node is not None and node.usable:
            yield node, [each for each in node.taints if not tolerates(pod.constraints.tolerations, (each,))]
