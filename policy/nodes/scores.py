"""Scores of nodes for a pod by how free they are: as our rules count it, and as kube-scheduler's default profile does.

Seed: reserve action (Node calculating score logic). Sources of ``scores``: the plugins NodeResourcesFit
(LeastAllocated) and NodeResourcesBalancedAllocation of kube-scheduler 1.37. The scheduler's other scores are left out:
preferred affinity, spreading, images, and taints of the effect PreferNoSchedule.
"""

import numpy as np
from numpy.typing import NDArray

from policy.nodes.table import NodeTable
from policy.objects.pod import Pod

LEAST = {"cpu": 100, "memory": 200 * 2**20}
"""The request that LeastAllocated assumes for a pod that requests nothing of these."""
_HIGHEST = 100
_EVEN = 9  # digits: nodes that are as free as each other tie, whatever their size
_NO_SCALARS = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


def scores(table: NodeTable, pod: Pod, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Returns the points of these rows' nodes for the pod: 0 to 200, more is better."""
    free, balance = np.zeros(len(rows)), np.zeros((len(rows), 2))
    for column, (resource, least) in enumerate(LEAST.items()):
        asked = pod.request.get(resource, 0)
        there, used = _of(table, resource, rows)
        left = np.clip(there - used - (asked or least), 0, None)
        free += np.floor(np.divide(left * _HIGHEST, there, out=np.zeros(len(rows)), where=there > 0))
        share = np.divide(used + asked, there, out=np.ones(len(rows)), where=there > 0)
        balance[:, column] = np.minimum(share, 1)
    even = np.floor((1 - np.abs(balance[:, 0] - balance[:, 1]) / 2) * _HIGHEST)
    points: NDArray[np.float64] = np.floor(free / len(LEAST)) + even
    return points


def freeness(table: NodeTable, pod: Pod) -> NDArray[np.float64]:
    """Returns how free each node is for this pod: ((cpu + memory) / 2 + 2 * scalars) / 3, between 0 and 1.

    Scalars are the mean over those that the pod requests: all but cpu, memory, ephemeral storage and pods.
    """
    scalars = [name for name, amount in pod.request.items() if amount and name not in _NO_SCALARS]
    zero = np.zeros(len(table.names))
    scalar = sum((_free_share(table, name) for name in sorted(scalars)), zero) / max(1, len(scalars))
    score = ((_free_share(table, "cpu") + _free_share(table, "memory")) / 2 + 2 * scalar) / 3
    return np.round(score, _EVEN)


def shortage(table: NodeTable, pod: Pod) -> NDArray[np.float64]:
    """Returns how much each node is short of for the pod now, in shares of its request."""
    free, lacking = table.free, np.zeros(len(table.names))
    for resource, amount in pod.request.items():
        column = table.columns.get(resource)
        if amount and column is not None:
            lacking += np.clip(float(amount) - free[:, column], 0, None) / amount
    return np.round(lacking, _EVEN)


def _of(table: NodeTable, resource: str, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns what these nodes have of a resource, and how much of it is used."""
    column = table.columns.get(resource)
    if column is None:
        return np.zeros(len(rows)), np.zeros(len(rows))
    return table.allocatable[rows, column].astype(np.float64), table.used[rows, column].astype(np.float64)


def _free_share(table: NodeTable, resource: str) -> NDArray[np.float64]:
    """Returns the free part of a resource on each node: 0 where it has none, or more is used than there is."""
    column = table.columns.get(resource)
    if column is None:
        return np.zeros(len(table.names))
    there, used = table.allocatable[:, column], table.used[:, column]
    share: NDArray[np.float64] = np.clip(1 - used / np.maximum(there, 1), 0, 1)
    return np.where(there > 0, share, 0.0)
