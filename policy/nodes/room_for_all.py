"""Finds out whether nodes have room now for all pods of several shapes, so many of each.

Best fit decreasing, as for gangs (policy.nodes.packing), but without naming a node for each pod: a Job may have a
million of them. A "no" may be wrong where only another order would do; a "yes" never is.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policy.nodes import fit
from policy.nodes.table import NodeTable
from policy.objects.pod import Pod

Wanted = tuple[Pod, int]
"""A pod, and how many like it there are."""


def has_room(table: NodeTable, wanted: Sequence[Wanted], free: NDArray[np.int64] | None = None) -> bool:
    """Whether there is room for all of these at the same time. Demands on other pods are not judged.

    ``free`` is what is free for them, a row per node; None: all that is.

    The largest come first, and if that does not do, those for which there are the fewest places.
    """
    free = table.free if free is None else free
    places = [int(fit.how_often(table, free, pod)[1].sum()) for pod, _ in wanted]
    if any(number < count for number, (_, count) in zip(places, wanted, strict=True)):
        return False
    if len(wanted) < 2:  # noqa: PLR2004 - nothing is in the way of a single one
        return True
    there = table.allocatable.sum(axis=0, dtype=np.float64)
    sizes = [_size(table, there, pod) for pod, _ in wanted]
    orders = np.argsort([-size for size in sizes], kind="stable"), np.argsort(places, kind="stable")
    return any(_fit_in_order(table, free, [wanted[at] for at in order]) for order in orders)


def _fit_in_order(table: NodeTable, free: NDArray[np.int64], wanted: Sequence[Wanted]) -> bool:
    """Whether all have room if each takes what those before it have left."""
    free = free.copy()
    for pod, count in wanted:
        rows, times = fit.how_often(table, free, pod)
        if int(times.sum()) < count:
            return False
        order = np.argsort(times, kind="stable")  # first where the fewest have room
        rows, times = rows[order], times[order]
        taken = np.clip(count - (np.cumsum(times) - times), 0, times)
        for resource, amount in fit.need(table, pod) if len(rows) else ():
            free[rows, table.columns[resource]] -= taken * amount
    return True


def _size(table: NodeTable, there: NDArray[np.float64], pod: Pod) -> float:
    """Returns the largest part of what all nodes have (``there``) that a pod requests of a resource."""
    columns = table.columns
    shares = (amount / max(1.0, float(there[columns[r]])) for r, amount in pod.request.items() if r in columns)
    return max(shares, default=0.0)
