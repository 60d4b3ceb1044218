"""How kube-scheduler's default profile ranks the nodes that a pod fits, as far as their room is concerned.

Sources: the plugins NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation of kube-scheduler 1.37. What
else it scores (preferred affinity, spreading, images, taints that are only disliked) is not looked at.
"""

import numpy as np
from numpy.typing import NDArray

from policy.node_table import NodeTable
from policy.pod import Pod

LEAST = {"cpu": 100, "memory": 200 * 2**20}
"""What a pod that requests nothing of these counts with, in the first of the two."""
_HIGHEST = 100


def scores(table: NodeTable, pod: Pod, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """The points of the nodes of these rows for the pod: 0 to 200, the more the better."""
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


def _of(table: NodeTable, resource: str, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What these nodes have of a resource, and what of it is used."""
    column = table.columns.get(resource)
    if column is None:
        return np.zeros(len(rows)), np.zeros(len(rows))
    return table.allocatable[rows, column].astype(np.float64), table.used[rows, column].astype(np.float64)
