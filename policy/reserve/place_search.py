"""Searches for a place for each member of a job: which nodes are reserved, as far as all members fit them together."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import numpy as np

from policy.cluster.cluster import Cluster
from policy.nodes import fit, scores
from policy.nodes.node_attributes import Mask
from policy.nodes.packing import depends_on_others
from policy.objects import signature
from policy.objects.job import Job
from policy.objects.pod import Pod, turn
from policy.objects.reservation import Reservation
from policy.objects.resources import Resources, subtract
from policy.preemption.preemptors import Shape, shape_of
from policy.quota.exempt_from_eviction import SYSTEM_OWNERS
from policy.reserve import promises
from policy.reserve.coming import Coming
from policy.stepwise import Steps

STEP = 20
"""Members or nodes that are looked at between two pauses."""
MOST_TIMED = 100
"""The most nodes of which it is worked out when they have room, for each kind of members of such a job."""


@dataclass(frozen=True, slots=True)
class Place:
    """A member of a job, and the node that is to be reserved for it."""

    pod: Pod
    node: str


class Search:
    """Searches for a place for each member of a job, in steps. Knows nodes by name, as some may come or go meanwhile.

    ``everywhere``: as if all nodes were ready and none were kept for others. ``soonest_from``: the time from which on
    nodes with room sooner come first, and those of which it is not sure when they have room are left out.
    """

    def __init__(
        self, cluster: Cluster, job: Job, *, everywhere: bool = False, soonest_from: float | None = None
    ) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._job = job
        self._everywhere = everywhere
        self._soonest_from = soonest_from
        self._own = {each.node for each in cluster.reservations.reserved.of_job(job.namespace, job.name)}
        self._one_by_one = False
        self._standing = {pod.uid for pod in job.standing}
        self._places: dict[str, Place] = {}
        self._empty: dict[str, dict[str, int]] = {}
        self._left: dict[str, dict[str, int]] = {}
        self._rankings: dict[Shape, list[str]] = {}
        self._allowed: dict[Shape, frozenset[str]] = {}
        self._possible: dict[Shape, bool] = {}
        self._shapes: dict[Hashable, Shape] = {}
        self._coming: Coming | None = None
        self._room_at: dict[tuple[str, frozenset[tuple[str, int]]], float] = {}
        """By node and request: when the node surely has room."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The places found, in the order of the members."""
        return tuple(sorted(self._places.values(), key=lambda place: turn(place.pod)))

    def keep_steps(self, members: Iterable[Pod], chosen: Mapping[str, str]) -> Steps[list[Pod]]:
        """Keeps earlier places (by UID) whose node is there and still fit; returns the members that kept theirs."""
        kept = []
        for number, pod in enumerate(members):
            if not number % STEP:
                yield
            node = chosen[pod.uid]
            known = self._table.node(node)
            ready = known is not None and known.ready
            if ready and fit.fits_if_empty_on(self._table, pod, node) and self._has_space(node, pod):
                self._put(pod, node)
                kept.append(pod)
        return kept

    def only(self, pods: Iterable[Pod]) -> None:
        """Gives up the places of all other pods."""
        places = [self._places[pod.uid] for pod in pods]
        self._places, self._left = {}, {}
        for place in places:
            self._put(place.pod, place.node)

    def has_node_for_steps(self, pod: Pod) -> Steps[bool]:
        """Whether any node could take the pod once all that can end has ended, even if it is kept for others now."""
        shape = self._shape(pod)
        if shape not in self._possible:
            rows = np.flatnonzero(fit.fits_if_empty(self._table, pod)).tolist()  # mostly the first one will do
            names = self._table.attributes.names_by_row()
            self._possible[shape] = False
            for number, row in enumerate(rows):
                if not number % STEP:
                    yield
                if _covers(self._empty_room(names[row]), pod.request):
                    self._possible[shape] = True
                    break
        return self._possible[shape]

    def place_all_steps(self, pods: list[Pod], most_nodes: int) -> Steps[bool]:
        """Finds a place for every pod on at most so many nodes; returns whether that was possible.

        Tries the order of the score first, then first fit decreasing: the largest pods first, on as few nodes as
        possible.
        """
        before = [place.pod for place in self._places.values()]
        self._one_by_one = depends_on_others(self._table, [*pods, *before])
        yield
        for pod in pods:
            if self._shape(pod) not in self._rankings:
                ranking = self._ranking(pod)  # whatever is found for others
                if self._soonest_from is not None:
                    ranking = yield from self._soonest_steps(pod, ranking[:MOST_TIMED], self._soonest_from)
                self._rankings[self._shape(pod)] = ranking
                self._allowed[self._shape(pod)] = frozenset(ranking)
                yield
        if (yield from self._place_in_order_steps(pods, most_nodes, packed=False)):
            return True
        self.only(before)
        yield
        if (yield from self._place_in_order_steps(self._largest_first(pods), most_nodes, packed=True)):
            return True
        self.only(before)
        return False

    def _place_in_order_steps(self, pods: list[Pod], most_nodes: int, *, packed: bool) -> Steps[bool]:
        full: dict[tuple[Shape, bool], int] = {}
        opened = list(self._left)
        for start in range(0, len(pods), STEP):
            with self._assumed(pods) as assumed:
                for pod in pods[start : start + STEP]:
                    node = self._node_for(pod, most_nodes, opened if packed else [], full)
                    if not node:
                        return False
                    if node not in self._left:
                        opened.append(node)
                    self._put(pod, node)
                    if assumed:
                        self._table.add(pod, node)
            yield
        return True

    @contextmanager
    def _assumed(self, pods: list[Pod]) -> Iterator[bool]:
        """Expects all placed pods on their nodes meanwhile if any must keep near or apart; yields whether it does."""
        if not self._one_by_one:
            yield False
            return
        everybody = [*pods, *(place.pod for place in self._places.values())]
        before = {pod.uid: self._table.place(pod.uid) for pod in everybody}
        try:
            for place in self._places.values():
                self._table.add(place.pod, place.node)
            yield True
        finally:
            for uid, stood in before.items():
                self._table.restore(uid, stood)  # it may have come to a node since the decision began

    def _node_for(self, pod: Pod, most_nodes: int, first: list[str], full: dict[tuple[Shape, bool], int]) -> str:
        """Returns one of the ``first`` nodes, or else the best. ``full``: how many of each lack space for the shape."""
        shape = self._shape(pod)
        for opened, names in ((True, first), (False, self._rankings[shape])):
            start = full.get((shape, opened), 0)
            while start < len(names) and not self._has_space(names[start], pod):
                start += 1
            full[shape, opened] = start
            for name in islice(names, start, None):
                beyond = name not in self._left and len(self._left) >= most_nodes
                if (
                    not beyond
                    and name in self._allowed[shape]
                    and self._has_space(name, pod)
                    and self._is_met(name, pod)
                ):
                    return name
        return ""

    def _is_met(self, node: str, pod: Pod) -> bool:
        if not self._one_by_one:
            return node in self._table.rows
        return fit.would_be_met_on(self._table, pod, node, self._places.keys())

    def _ranking(self, pod: Pod) -> list[str]:
        """Returns the nodes that may be reserved for a pod, best first. The job's own nodes come before all others.

        Two members may have changed places, or one is replaced: so all of the job's own nodes count. The order is by
        how free nodes are, then by the smallest shortage, then by the fewest pods to wait for, then by name.
        """
        table = self._table
        mask = fit.fits_if_empty(table, pod)
        rows = np.flatnonzero(mask if self._everywhere else mask & nodes_open_to(self._cluster, self._job))
        column = table.columns.get("pods")
        others = table.used[rows, column] if column is not None else np.zeros(len(rows))
        lacking, free = scores.shortage(table, pod)[rows], scores.freeness(table, pod)[rows]
        own = table.mask_of(self._own)[rows]
        best_first = np.lexsort((table.attributes.ranks()[rows], others, lacking, -free, ~own))
        return [table.names[row] for row in rows[best_first].tolist()]

    def _soonest_steps(self, pod: Pod, names: list[str], now: float) -> Steps[list[str]]:
        """Returns those of these nodes that surely have room for a pod some time, the soonest first."""
        found = list[tuple[float, int, str]]()
        if self._coming is None:
            self._coming = yield from promises.coming_steps(self._cluster, now)
        for number, name in enumerate(names):
            key = name, frozenset(pod.request.items())
            at = self._room_at.get(key)
            if at is None:
                at = yield from promises.room_at_steps(self._cluster, name, pod.request, self._coming, now)
                self._room_at[key] = at
            if at <= now + self._cluster.rules.promise_ahead:
                found.append((max(at, now), number, name))
            yield
        return [name for _, _, name in sorted(found)]

    def _has_space(self, node: str, pod: Pod) -> bool:
        """Whether a node would have room for the pod and for all members that it is reserved for already."""
        left = self._left.get(node)
        return _covers(self._room_beside_others(node) if left is None else left, pod.request)

    def _empty_room(self, node: str) -> dict[str, int]:
        """Returns a node's room beside the pods that do not end before the job has started; nothing if it is gone.

        These are pods of DaemonSets, static pods, exempt pods, and the job's own.
        """
        room = self._empty.get(node)
        if room is None:
            known = self._table.node(node)
            room = self._empty[node] = dict(known.allocatable) if known else {}
            for pod in self._table.pods_on(node).values() if known else ():
                if pod.owner in SYSTEM_OWNERS or pod.uid in self._standing or self._cluster.is_exempt(pod):
                    subtract(room, pod.request)
        return room

    def _room_beside_others(self, node: str) -> dict[str, int]:
        """Returns what is left of a node's empty room beside what is reserved for other jobs."""
        room = dict(self._empty_room(node))
        reservations = self._cluster.reservations
        for each in () if self._everywhere else reservations.reserved.on(node):
            if _is_for_another(self._cluster, self._job, each):
                subtract(room, reservations.request_of(each))
        return room

    def _put(self, pod: Pod, node: str) -> None:
        self._places[pod.uid] = Place(pod, node)
        left = self._left.get(node)
        if left is None:
            left = self._left[node] = self._room_beside_others(node)
        subtract(left, pod.request)

    def _shape(self, pod: Pod) -> Shape:
        """Returns a pod's shape, computed once for members that are alike. The job keeps them all."""
        same = signature.by_rules_and_nodes(pod, pod.queue)
        known = self._shapes.get(same)
        if known is None:
            known = self._shapes[same] = shape_of(pod, self._cluster)
        return known

    def _largest_first(self, pods: list[Pod]) -> list[Pod]:
        """Sorts pods by the largest share of the nodes' resources that they request."""
        totals, columns = self._table.allocatable.sum(axis=0, dtype=np.float64), self._table.columns
        sizes: dict[Shape, float] = {}
        for shape, pod in {self._shape(pod): pod for pod in pods}.items():
            known = [(amount, columns[name]) for name, amount in pod.request.items() if name in columns]
            sizes[shape] = max((amount / max(1.0, totals[column]) for amount, column in known), default=0.0)
        return sorted(pods, key=lambda pod: (-sizes[self._shape(pod)], turn(pod)))


def nodes_open_to(cluster: Cluster, job: Job) -> Mask:
    """Returns the nodes that are ready and on which no pod of others is promised room."""
    table = cluster.table
    members = {pod.uid for pod in job.waiting + job.granted}
    others = ((uid, placed) for uid, placed in table.expected.items() if uid not in members)
    promised = {
        placed.site.name
        for uid, placed in others
        if cluster.reservations.is_held_for(uid) or uid in cluster.gangs.holds or placed.pod.priority >= job.priority
    }
    known = cluster.reservations.reserved if cluster.rules.whole_nodes else ()
    reserved = {each.node for each in known if _is_for_another(cluster, job, each)}
    return table.attributes.ready() & ~table.mask_of(promised | reserved)


def _is_for_another(cluster: Cluster, job: Job, each: Reservation) -> bool:
    """Whether a node is reserved for a member of another job."""
    return (each.pod.namespace, each.job) != (job.namespace, job.name) and cluster.reservations.is_reserved(each)


def _covers(room: Resources, request: Resources) -> bool:
    return all(room.get(resource, 0) >= amount for resource, amount in request.items() if amount)
