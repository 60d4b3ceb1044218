"""Candidates: nodes on which the pending pod may find room, without victims or with them."""

from collections.abc import Iterator

import numpy as np

from policy.cluster.cluster import Cluster
from policy.nodes import fit, scores
from policy.objects.pod import Pod
from policy.preemption.eviction_trial import EvictionTrial

LOOKED_AT = 20
"""How many nodes are looked at without success before the search may pause."""


def roomy_node(cluster: Cluster, pod: Pod) -> str:
    """A node with room for the pod now; empty if there is none."""
    table = cluster.table
    rows = np.flatnonzero(fit.fits(table, pod) & ~table.mask_of(cluster.reservations.nodes_reserved_from(pod)))
    return min((table.names[row] for row in rows.tolist()), default="")


def node_where_room_is_coming(trial: EvictionTrial) -> str:
    """A node that has pods which leave, and room for the pending pod without them; empty if there is none."""
    table = trial.cluster.table
    sites = {placed.site.name for uid in trial.taken.leaving if (placed := table.placed(uid))}
    return next((name for name in sorted(sites - trial.reserved) if trial.fits(name)), "")


def promising_nodes(trial: EvictionTrial) -> Iterator[str]:
    """Yields promising nodes, smallest shortage first, and an empty name where the caller may pause.

    The order is that of the shortages at the start.
    """
    table, pod = trial.cluster.table, trial.preemptor.pod
    rows = np.flatnonzero(fit.fits_if_empty(table, pod))
    shortage = scores.shortage(table, pod)[rows]
    rows = rows[np.lexsort((table.attributes.ranks()[rows], shortage))]
    names = table.attributes.names_by_row()  # as they are now: after a pause a row may be another's
    yield ""
    for _ in trial.find_borrowers_steps():
        yield ""
    yield ""
    for number, node in enumerate(map(names.__getitem__, rows)):
        if is_promising(trial, node):
            yield node
        elif number % LOOKED_AT == 0:
            yield ""


def is_promising(trial: EvictionTrial, node: str) -> bool:
    """Whether a node would have room if all possible victims were evicted. Call this only while there are no victims.

    False for a node that is reserved for another job: it is nobody else's candidate.
    """
    if node in trial.reserved:
        return False
    preemptor, borrowers, evictable = trial.preemptor, trial.borrowers, trial.evictable
    own = preemptor.pod.namespace if preemptor.governed else None
    pods = (pod for pod in borrowers.pods_on(node) if own is None or pod.namespace == own)
    gone = {pod.uid for pod in pods if evictable.is_peer(pod)}
    may_take, is_evictable, wanted = borrowers.may_take_of, evictable.is_evictable, borrowers.resources
    there = borrowers.on_node(node)
    gone.update([pod.uid for pod, queue in there if may_take(pod, queue, wanted) and is_evictable(pod)])
    return bool(gone) and _fits_without(trial, node, trial.taken.leaving | gone)


def _fits_without(trial: EvictionTrial, node: str, gone: frozenset[str]) -> bool:
    """Whether the pod may fit a node without some of these pods; those that it wants to be near to may stay."""
    table, pod = trial.cluster.table, trial.preemptor.pod
    if pod.constraints.affinity:
        return not fit.lacking_on(table, pod, node, gone)
    return fit.fits_on(table, pod, node, gone)
