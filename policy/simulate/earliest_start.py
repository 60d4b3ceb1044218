"""The earliest moment at which waiting jobs could start: there is room for all that it takes, were they alone in line.

Running pods end at their run times, and nobody else who waits takes room. A job has room as soon as each shape of its
pods has, looked at by itself. Rules of quotas and queues, demands on other pods, and ports do not count. So a job may
start later, and no sooner unless pods are evicted for it.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.cluster.cluster import Cluster
from policy.nodes import fit
from policy.nodes.room_for_all import Wanted
from policy.nodes.table import NodeTable
from policy.objects.constraints import Constraints
from policy.objects.group import Key
from policy.objects.job import Job, job_name
from policy.objects.pod import Pod
from policy.objects.quantity import LARGEST
from policy.stepwise import Steps

MOST_KINDS = 200
"""Kinds of jobs for which it is worked out: tenants may write any number of different requests."""
AT_A_TIME = 50
"""Pods that are looked at between two pauses."""
MOST_TIMES = 10**6

Amounts = NDArray[np.int64]


def earliest_steps(cluster: Cluster, ends: Collection[tuple[float, str]], now: float) -> Steps[dict[str, float]]:
    """Returns by UID of a waiting pod or stand-in when its job could start at the earliest, in seconds since the epoch.

    ``ends`` are the times at which running pods end, with their UIDs. It has no entry for a job that never could.
    """
    room = yield from _room_steps(cluster, ends, now)
    known, found = dict[Hashable, float | None](), dict[str, float]()
    groups = dict[Key, float | None]()
    for pod in list(cluster.pending.values()):
        yield
        key = pod.namespace, job_name(cluster.membership.groups, pod)
        if pod.stands_for is not None:
            wanted = cluster.queued_jobs.wanted(cluster.queued_jobs.at_least(pod))
            at = yield from _first_for_all_steps(room, wanted, known)
        elif key not in cluster.membership.groups:
            at = yield from _first_for_all_steps(room, [(pod, 1)], known)
        else:
            if key not in groups:  # once for all of its members
                wanted = yield from _wanted_steps(cluster.groups.job(*key))
                groups[key] = yield from _first_for_all_steps(room, wanted, known)
            at = groups[key]
        if at is not None:
            found[pod.uid] = at
    return found


def _first_for_all_steps(
    room: "_Room", wanted: Collection[Wanted], known: dict[Hashable, float | None]
) -> Steps[float | None]:
    """Returns the first moment with room for each of these kinds of pods by itself; None if never, or there are none.

    ``known`` has the first moments of kinds that were looked at before.
    """
    latest: float | None = None
    for number, (pod, count) in enumerate(wanted, start=1):
        kind = *_shape(pod), count
        if kind not in known and len(known) < MOST_KINDS:
            known[kind] = room.first_for(pod, count)
            yield
        if (at := known.get(kind)) is None:
            return None
        latest = at if latest is None else max(latest, at)
        if not number % AT_A_TIME:
            yield
    return latest


def _wanted_steps(job: Job | None) -> Steps[list[Wanted]]:
    """Returns what has to have room for a gang to start; nothing if fewer members are there than it takes."""
    missing = max(1, job.minimum - job.ready) if job is not None else 1
    members = job.waiting[:missing] if job is not None else ()
    if len(members) < missing:
        return []
    alike = dict[Hashable, list[Pod]]()
    for number, each in enumerate(members, start=1):
        alike.setdefault(_shape(each), []).append(each)
        if not number % AT_A_TIME:
            yield
    return [(each[0], len(each)) for each in alike.values()]


def _shape(pod: Pod) -> tuple[Hashable, Constraints]:
    return frozenset(pod.request.items()), pod.constraints


@dataclass(slots=True)
class _Room:
    """The room of nodes now (``free``, a row per node), and at each end of a pod, in the order of time.

    ``freed`` and ``left`` by resource: what an end frees, and what its node has just after it.
    """

    table: NodeTable
    now: float
    free: Amounts
    at: NDArray[np.float64]
    rows: NDArray[np.intp]
    freed: dict[str, Amounts]
    left: dict[str, Amounts]

    def first_for(self, pod: Pod, count: int) -> float | None:
        """Returns the first moment with room for so many pods like this one, whoever else waits; None if never."""
        table, need = self.table, fit.need(self.table, pod)
        if fit.undecidable(table, pod) or any(resource not in table.columns for resource, _ in need):
            return None
        open_to = fit.fits_if_empty(table, pod)
        if not open_to.any():
            return None  # it may request more than the arrays can hold
        now, after, before = (np.full(size, MOST_TIMES) for size in (len(open_to), len(self.at), len(self.at)))
        for resource, amount in need:
            left, freed = self.left[resource], self.freed[resource]
            now = np.minimum(now, self.free[:, table.columns[resource]] // amount)
            after, before = np.minimum(after, left // amount), np.minimum(before, (left - freed) // amount)
        there = int(now[open_to].clip(0).sum())
        if there >= count:
            return self.now
        more = np.where(open_to[self.rows], after.clip(0) - before.clip(0), 0).cumsum()
        first = int(np.searchsorted(more, count - there))
        return float(self.at[first]) if first < len(more) else None


def _room_steps(cluster: Cluster, ends: Collection[tuple[float, str]], now: float) -> Steps[_Room]:
    """Returns the room beside running pods alone: none is taken by those that are only expected."""
    table, free = cluster.table, cluster.table.free
    for number, placed in enumerate(list(table.expected.values())):
        if placed.site.row >= 0:
            _give(cluster, free[placed.site.row], placed.pod)
        if not number % AT_A_TIME:
            yield
    at, rows = np.zeros(len(ends)), np.zeros(len(ends), np.intp)
    freed = np.zeros((len(ends), len(table.columns)), np.int64, order="F")
    for number, (end, uid) in enumerate(ends):
        pod = cluster.pods[uid]
        at[number], rows[number] = end, table.rows.get(pod.node, -1)
        _give(cluster, freed[number], pod)
        if not number % AT_A_TIME:
            yield
    order = np.argsort(at)
    order = order[rows[order] >= 0]
    yield
    at, rows = at[order], rows[order]
    room, by_node = _Room(table, now, free, at, rows, {}, {}), np.argsort(rows, kind="stable")
    first = np.flatnonzero(np.diff(rows[by_node], prepend=-1))
    times = np.diff(first, append=len(rows))
    for resource, column in table.columns.items():
        yield
        amounts = room.freed[resource] = freed[order, column]
        amounts = amounts[by_node]
        sums = amounts.cumsum()
        sums -= np.repeat(sums[first] - amounts[first], times)
        left = room.left[resource] = np.empty_like(sums)
        left[by_node] = free[rows[by_node], column] + sums
    return room


def _give(cluster: Cluster, there: Amounts, pod: Pod) -> None:
    """Adds what a pod takes to the amounts of a row."""
    for resource, amount in pod.request.items():
        if (column := cluster.table.columns.get(resource)) is not None:
            there[column] += min(amount, LARGEST)
