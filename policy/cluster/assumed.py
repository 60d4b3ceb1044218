"""Granted pods on their way to a node. Until they are bound nobody tells which, so each counts wherever it may land.

That matters for kept room. kube-scheduler knows where it has placed a pod, but not that the room left there is kept.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policy.cluster.grants import Grants
from policy.nodes import fit
from policy.nodes.node_attributes import Mask
from policy.nodes.packing import AlikePods
from policy.nodes.table import NodeTable
from policy.objects import signature
from policy.objects.pod import Pod
from policy.objects.quantity import LARGEST
from policy.objects.resources import Resources, add
from policy.quota import exempt

MOST_KINDS = 20
"""The most kinds of granted pods that are looked at node by node. All others count as if they came to each node."""

_Kind = tuple[Hashable, str]
"""A key that is equal for pods that the same empty nodes could take, and the node that shows them in the table."""
Takers = dict[_Kind, tuple[Pod, Mask]]
"""Which of some nodes could take pods of a kind if they were empty, and one of these pods."""

_MOST_TAKERS = 256
_MOST_OF_A_KIND = LARGEST // (
    MOST_KINDS + 1
)  # no sum is larger than an array can hold; who requests as much counts with all


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


def at_most_on_each(
    table: NodeTable, rows: Mapping[str, int], coming: Iterable[Pod], pod: Pod, takers: Takers
) -> dict[str, NDArray[np.int64]]:
    """Returns what ``at_most_on`` does, for many nodes at once: by resource of the pod, in the order of ``rows``.

    ``rows`` are those of the nodes in the table, by name. ``coming`` are granted pods. The caller keeps ``takers``
    until a node changes.
    """
    kinds, expected = dict[_Kind, list[Pod]](), table.expected
    for other in coming:
        node = ""
        if other.uid in expected and other.priority >= pod.priority:
            node = expected[other.uid].site.name
        if other.uid != pod.uid:
            kinds.setdefault((signature.by_empty_nodes(other), node), []).append(other)
    by_number = sorted(kinds.items(), key=lambda each: -len(each[1]))
    masks = [_takers(table, rows, kind, pods[0], takers) for kind, pods in by_number[:MOST_KINDS]]
    taken = {}
    for resource, _ in fit.need(table, pod) if by_number else ():
        amounts = [_together(pods, resource) for _, pods in by_number]
        rest = min(sum(amounts[MOST_KINDS:]), _MOST_OF_A_KIND)
        taken[resource] = np.array(amounts[:MOST_KINDS], np.int64) @ np.array(masks) + rest
        absurd = [mask for mask, amount in zip(masks, amounts, strict=False) if amount == _MOST_OF_A_KIND]
        if absurd or rest == _MOST_OF_A_KIND:  # a node may list as much as that
            taken[resource][np.any(absurd, axis=0) | (rest == _MOST_OF_A_KIND)] = LARGEST
    return taken


def _takers(table: NodeTable, rows: Mapping[str, int], kind: _Kind, pod: Pod, takers: Takers) -> Mask:
    """Returns which of these nodes could take a kind of pods if they were empty, but for the one that shows them."""
    if kind not in takers:
        if len(takers) >= _MOST_TAKERS:
            takers.clear()
        mask = fit.fits_if_empty(table, pod)[list(rows.values())]
        mask &= np.array([node != kind[1] for node in rows])
        takers[kind] = pod, mask
    return takers[kind][1]


def _together(pods: Sequence[Pod], resource: str) -> int:
    """Returns what pods of a kind request together, as far as arrays can hold it."""
    return min(len(pods) * pods[0].request.get(resource, 0), _MOST_OF_A_KIND)
