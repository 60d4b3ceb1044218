"""Finds nodes with free room now for all members of a gang together.

Best fit decreasing: the largest member first, each on the node that it leaves the least room on. It leaves alone room
that is expected by anybody else, however low their priority. Members with demands on other pods are placed one by one,
so that each sees those before it (policy.nodes.gang_demands).
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from policy.nodes import fit
from policy.nodes.gang_demands import Kinds, Together, demands_something, is_bounded
from policy.nodes.node_attributes import Mask
from policy.nodes.node_filters import passing_filters
from policy.nodes.table import NodeTable
from policy.nodes.topology import demands_of
from policy.objects import signature
from policy.objects.pod import Pod
from policy.objects.quantity import LARGEST
from policy.objects.resources import Resources

AlikePods = tuple[Pod, int]
"""A granted pod, and how many there are like it."""


def decidable(table: NodeTable, members: Sequence[Pod]) -> bool:
    """Whether it can be worked out here, in a short time, where the members would go."""
    unlike = _unlike(members)
    if any(fit.undecidable(table, member) for member in unlike):
        return False
    return not any(map(demands_something, unlike)) or is_bounded(table, members)


class Places:
    """Room for members, taken by one after the other; the table stays as it is.

    ``offered`` are the nodes that the scheduler offers to the first member; None: any that fits. ``coming`` are pods
    that may land on any node that is not reserved from them; room that one of them may take is not used.
    ``reserved_from`` says which nodes are reserved from a pod. Room where the members themselves are expected, by an
    earlier plan, is theirs.
    """

    def __init__(
        self,
        table: NodeTable,
        members: Sequence[Pod],
        offered: Collection[str] | None = None,
        coming: Iterable[AlikePods] = (),
        reserved_from: Callable[[Pod], Collection[str]] = lambda _: (),
    ) -> None:
        self.nodes: dict[str, str] = {}
        """The node of each member that was placed, by UID."""
        self._table = table
        self._members = members
        self._offered = offered
        self._not_reserved = ~table.mask_of(reserved_from(members[0]))
        self._one_by_one = any(map(demands_something, _unlike(members)))
        self._kinds = Kinds(table, members)
        self._open: dict[Hashable, Mask] = {}
        self._free = table.free.copy()
        for member in members:
            placed = table.placed(member.uid)
            if placed is not None and placed.site.row >= 0:
                self._use(placed.site.row, member.request, -1)
        for other, number in coming:
            may_land = fit.fits_if_empty(table, other) & ~table.mask_of(reserved_from(other))
            _take_everywhere(table, self._free, other, number, may_land)

    def find(self) -> Pod | None:
        """Places all members; returns the first that has no place, or None."""
        if self._one_by_one:
            return self._place_one_by_one(self._in_order())
        return next(filter(None, map(self._place_together, self._in_order())), None)

    def _in_order(self) -> list[list[Pod]]:
        """Groups members that are alike: largest first, of equal size those with the fewest nodes to choose from."""
        there = np.maximum(self._table.allocatable.sum(axis=0, dtype=np.float64), 1.0)
        columns = self._table.columns
        kinds: dict[Hashable, list[Pod]] = {}
        for member in self._members:
            kinds.setdefault(self._kind(member), []).append(member)

        def size(member: Pod) -> float:
            shares = (amount / there[columns[r]] for r, amount in member.request.items() if r in columns)
            return sum(float(share) for share in shares)

        return sorted(kinds.values(), key=lambda alike: (-size(alike[0]), int(self._allowed(alike[0]).sum())))

    def _place_together(self, alike: list[Pod]) -> Pod | None:
        """Fills one node after the other, least room first; returns the first member without a place, or None."""
        request = alike[0].request
        rows = np.flatnonzero(self._allowed(alike[0]) & _at_least(self._table, self._free, request))
        if not len(rows):
            return alike[0]  # it may request what no node has
        rows = rows[np.argsort(self._left(rows, request), kind="stable")]
        rows = np.repeat(rows, self._times(rows, request))[: len(alike)]
        if len(rows) < len(alike):
            return alike[len(rows)]
        names = self._table.names
        self.nodes.update((member.uid, names[row]) for member, row in zip(alike, rows.tolist(), strict=True))
        for resource, amount in request.items():
            if amount > 0 and self._table.lists(resource):
                np.subtract.at(self._free[:, self._table.columns[resource]], rows, amount)
        return None

    def _place_one_by_one(self, kinds: list[list[Pod]]) -> Pod | None:
        """Places members one by one, each after those before it; returns the first without a place."""
        together = Together(self._table, [alike[0] for alike in kinds], self._members)
        for number, alike in enumerate(kinds):
            allowed, request = self._allowed(alike[0]), alike[0].request
            for member in alike:
                mask = allowed & together.open_to(number) & _at_least(self._table, self._free, request)
                rows = np.flatnonzero(mask)
                if not len(rows):
                    return member
                row = int(rows[np.argmin(self._left(rows, request))])
                self.nodes[member.uid] = self._table.names[row]
                self._use(row, request, 1)
                together.place(number, row)
        return None

    def _left(self, rows: NDArray[np.intp], request: Resources) -> NDArray[np.float64]:
        """Returns the free resources of each of these nodes, as shares of its allocatable, summed over the request."""
        left = np.zeros(len(rows))
        for resource, amount in request.items():
            if amount > 0 and self._table.lists(resource):
                column = self._table.columns[resource]
                left += self._free[rows, column] / self._table.allocatable[rows, column]
        return left

    def _times(self, rows: NDArray[np.intp], request: Resources) -> NDArray[np.int64]:
        """Returns how many members with this request fit on each of these nodes."""
        times = np.full(len(rows), len(self._members))
        for resource, amount in request.items():
            if amount > 0 and self._table.lists(resource):
                times = np.minimum(times, self._free[rows, self._table.columns[resource]] // min(amount, LARGEST))
        return times

    def _kind(self, member: Pod) -> Hashable:
        """Returns a key that is equal for members that may go to the same nodes and need the same there."""
        chosen_for = member is self._members[0] and self._offered is not None
        return self._kinds.of(member), chosen_for

    def _allowed(self, member: Pod) -> Mask:
        """Returns the nodes that the member may go to, apart from room. Members that are alike share the mask."""
        known = self._open.get(self._kind(member))
        if known is None:
            known = passing_filters(self._table, member.constraints) & self._not_reserved
            if not self._one_by_one:
                demands = demands_of(self._table, member, set(fit.overlooked(self._table, member)))
                if demands is not None:
                    demands.restrict(known)
            if member is self._members[0] and self._offered is not None:
                known = known & self._table.mask_of(self._offered)
            self._open[self._kind(member)] = known
        return known

    def _use(self, row: int, request: Resources, times: int) -> None:
        for resource, amount in request.items():
            column = self._table.columns.get(resource)
            if amount and column is not None:
                self._free[row, column] -= times * min(amount, LARGEST)


def best_of(table: NodeTable, pod: Pod, offered: Collection[str]) -> str:
    """Returns an offered node where the pod takes no room that others expect; empty if there is none."""
    found = Places(table, [pod], offered)
    return found.nodes[pod.uid] if found.find() is None else ""


def full(table: NodeTable, pod: Pod, nodes: Sequence[str], coming: Iterable[AlikePods]) -> list[str]:
    """Returns the nodes where the pod would take room that others expect or that coming pods may have taken."""
    rows = np.array([table.rows[node] for node in nodes], np.intp)
    free = table.free[rows]
    placed = table.placed(pod.uid)
    if placed is not None and placed.site.row >= 0:
        for resource, amount in placed.pod.request.items():
            if (column := table.columns.get(resource)) is not None:
                free[rows == placed.site.row, column] += min(amount, LARGEST)
    for other, number in coming:
        _take_everywhere(table, free, other, number, fit.fits_if_empty(table, other)[rows])
    return [node for node, there in zip(nodes, _at_least(table, free, pod.request), strict=True) if not there]


def depends_on_others(table: NodeTable, members: Sequence[Pod]) -> bool:
    """Whether the place of some member depends on where other pods are."""
    if any(map(demands_something, _unlike(members))):
        return True
    if not any(map(table.demanding.may_keep_away, {member.namespace for member in members})):
        return False
    kinds = Kinds(table, members)
    one_of_each = {kinds.of(member): member for member in members}.values()
    return any(True for member in one_of_each for _ in table.demanding.keeping_away(member))


def _unlike(members: Iterable[Pod]) -> Collection[Pod]:
    """Returns one of the members for each request and constraints. Members are of one namespace."""
    return {signature.by_empty_nodes(member): member for member in members}.values()


def _at_least(table: NodeTable, free: NDArray[np.int64], request: Resources) -> Mask:
    mask = np.ones(len(free), np.bool_)
    for resource, amount in request.items():
        column = table.columns.get(resource)
        if amount > 0 and table.lists(resource):
            mask &= free[:, column] >= amount if column is not None else False
    return mask


def _take_everywhere(table: NodeTable, free: NDArray[np.int64], pod: Pod, number: int, rows: Mask) -> None:
    """Counts so many pods like this one as if each were on every one of the rows."""
    for resource, amount in pod.request.items():
        column = table.columns.get(resource)
        if amount and column is not None:
            free[rows, column] = np.maximum(free[rows, column], 0) - min(number * amount, LARGEST)
