"""Where the members of a gang would go, all together, on nodes with free room now.

Largest first, each on the node that it leaves the least room on. Room that is expected by anybody else is left alone,
be they ever so unimportant. Members with demands on other pods are placed one by one in the table itself, so that each
sees those before it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policy import fit
from policy.arriving import Alike
from policy.node_table import Mask, NodeTable
from policy.pod import Pod
from policy.quantity import LARGEST
from policy.resources import Resources
from policy.suitability import accepting

MOST_ONE_BY_ONE = 100
"""How many members with demands on other pods are placed: what is done while the scheduler waits is bounded."""


def decidable(table: NodeTable, members: Sequence[Pod]) -> bool:
    """Whether it can be worked out here, in a short time, where the members would go."""
    if any(member.constraints.undecidable or fit.unlisted(table, member) for member in members):
        return False
    return len(members) <= MOST_ONE_BY_ONE or not depends_on_others(table, members)


class Places:
    """Room for members, taken by one after the other; the table stays as it is.

    ``offered`` are the nodes that the first member may go to, as the scheduler sees it; None: any that fits. ``coming``
    are pods that may land anywhere but on nodes that are reserved from them: room that one may take is not used.
    ``reserved_from`` says which nodes are reserved from a pod. What the members themselves are expected to take, by an
    earlier plan, is theirs.
    """

    def __init__(
        self,
        table: NodeTable,
        members: Sequence[Pod],
        offered: Collection[str] | None = None,
        coming: Iterable[Alike] = (),
        reserved_from: Callable[[Pod], Collection[str]] = lambda _: (),
    ) -> None:
        self.nodes: dict[str, str] = {}
        """The node of each member that was placed, by UID."""
        self._table = table
        self._members = members
        self._offered = offered
        self._not_reserved = ~table.mask_of(reserved_from(members[0]))
        self._one_by_one = depends_on_others(table, members)
        self._open: dict[Hashable, Mask] = {}
        self._free = table.free.copy()
        for member in members:
            placed = table.placed(member.uid)
            if placed is not None and placed.site.row >= 0:
                self._use(placed.site.row, member.request, -1)
        for other, number in coming:
            may_land = fit.suitable(table, other) & ~table.mask_of(reserved_from(other))
            _take_everywhere(table, self._free, other, number, may_land)

    def find(self) -> Pod | None:
        """Places all members; the first that has no place, or None."""
        if self._one_by_one:
            return self._place_one_by_one([member for alike in self._in_order() for member in alike])
        return next(filter(None, map(self._place_together, self._in_order())), None)

    def _in_order(self) -> list[list[Pod]]:
        """Members that are alike: the largest first, of the same size those with the fewest nodes to choose from."""
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
        """Fills one node after the other, in the order of how little each has left; who has no place, or None."""
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

    def _place_one_by_one(self, members: list[Pod]) -> Pod | None:
        """The same where each has to see those before it: they are in the table meanwhile."""
        before: list[tuple[str, tuple[Pod, str] | None]] = []
        try:
            for member in members:
                rows = np.flatnonzero(
                    self._allowed(member)
                    & _at_least(self._table, self._free, member.request)
                    & fit.fits(self._table, member)
                )
                if not len(rows):
                    return member
                row = int(rows[np.argmin(self._left(rows, member.request))])
                node = self.nodes[member.uid] = self._table.names[row]
                self._use(row, member.request, 1)
                before.append((member.uid, self._table.place(member.uid)))
                self._table.add(replace(member, node=node))
        finally:
            for uid, place in before:
                self._table.restore(uid, place)
        return None

    def _left(self, rows: NDArray[np.intp], request: Resources) -> NDArray[np.float64]:
        """How much each of these nodes has left, in shares of what it has at all."""
        left = np.zeros(len(rows))
        for resource, amount in request.items():
            if amount > 0 and self._table.lists(resource):
                column = self._table.columns[resource]
                left += self._free[rows, column] / self._table.allocatable[rows, column]
        return left

    def _times(self, rows: NDArray[np.intp], request: Resources) -> NDArray[np.int64]:
        """How many members with this request each of these nodes has room for."""
        times = np.full(len(rows), len(self._members))
        for resource, amount in request.items():
            if amount > 0 and self._table.lists(resource):
                times = np.minimum(times, self._free[rows, self._table.columns[resource]] // min(amount, LARGEST))
        return times

    def _kind(self, member: Pod) -> Hashable:
        """What is the same for members that may go to the same nodes, and need the same there.

        Equal requests and constraints are one object (app.store.objects), which is quicker to compare.
        """
        chosen_for = member is self._members[0] and self._offered is not None
        return id(member.constraints), id(member.request), member.priority, chosen_for

    def _allowed(self, member: Pod) -> Mask:
        """Where the member may go, be there room or not; the same for all that are alike."""
        known = self._open.get(self._kind(member))
        if known is None:
            known = accepting(self._table, member.constraints) & self._not_reserved
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
    """Of the nodes offered for a pod, one where it takes no room that others expect; empty if there is none."""
    found = Places(table, [pod], offered)
    return found.nodes[pod.uid] if found.find() is None else ""


def full(table: NodeTable, pod: Pod, nodes: Sequence[str], coming: Iterable[Alike]) -> list[str]:
    """The nodes, of some, where the pod would take room that others expect, or that coming pods may have taken."""
    rows = np.array([table.rows[node] for node in nodes], np.intp)
    free = table.free[rows]
    placed = table.placed(pod.uid)
    if placed is not None and placed.site.row >= 0:
        for resource, amount in placed.pod.request.items():
            if (column := table.columns.get(resource)) is not None:
                free[rows == placed.site.row, column] += min(amount, LARGEST)
    for other, number in coming:
        _take_everywhere(table, free, other, number, fit.suitable(table, other)[rows])
    return [node for node, there in zip(nodes, _at_least(table, free, pod.request), strict=True) if not there]


def depends_on_others(table: NodeTable, members: Sequence[Pod]) -> bool:
    """Whether where one member may go depends on where other pods are."""
    constraints = [member.constraints for member in members]
    if any(each.host_ports or each.affinity or each.anti_affinity or each.spread for each in constraints):
        return True
    return any(True for namespace in {member.namespace for member in members} for _ in table.kept_away_by(namespace))


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
