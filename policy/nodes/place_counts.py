"""For how many pods of each shape nodes have room, kept from one question to the next.

A shape is what a pod requests, and which nodes accept it. A question looks only at nodes on which something has changed
since the last one, and at all shapes in one array operation. ``fit.how_often`` defines the answer: demands on other
pods are not judged.
"""

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from policy.nodes import fit
from policy.nodes.table import NodeTable
from policy.objects.constraints import Constraints
from policy.objects.pod import Pod
from policy.objects.quantity import LARGEST
from policy.stepwise import Steps, at_once

AT_ONCE = 500
"""Shapes that are looked at between two pauses."""
MOST = 10**6
"""The most places on one node that are counted."""

STATE = "places are counted"
"""The key of the mark in the memo of a table."""

Numbers = NDArray[np.int64]
RowNumbers = NDArray[np.intp]


class PlaceCounts:
    """The places of shapes on the nodes of a table, by the numbers of the shapes, which begin with 0.

    ``_masks`` are rows of nodes that accept pods, by the number of the mask; number 0 accepts none. ``_accepted_by``
    has the mask of each shape, ``_needs`` what it requests by column, and ``_known`` its places when ``_used`` was used
    on the nodes. ``_state`` is a mark in the table's memo: it is gone once something in the table has changed.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._numbers: dict[Hashable, int] = {}
        self._shapes: list[Pod] = []
        self._as_of: Hashable = None
        self._masks = np.zeros((1, 0), np.bool_)
        self._numbers_of_masks: dict[Constraints, int] = {}
        self._accepted_by = np.zeros(0, np.intp)
        self._needs = np.zeros((0, 0), np.int64)
        self._known = np.zeros(0, np.int64)
        self._used = np.zeros((0, 0), np.int64)
        self._state: object = None

    def __len__(self) -> int:
        return len(self._shapes)

    def number(self, pod: Pod) -> int | None:
        """Returns the number of a pod's shape; None if it has none, as it takes ports of nodes."""
        if pod.constraints.host_ports:
            return None
        key = frozenset(pod.request.items()), pod.constraints
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._shapes)
            self._shapes.append(pod)
        return known

    def all_steps(self) -> Steps[Numbers]:
        """Returns the places of all shapes now. Nothing may change in its pauses. Do not keep or change the result."""
        self._read()
        self._state = self._table.memo.setdefault(STATE, object())
        rows, old = self._changed(), len(self._known)
        for start in range(0, old if len(rows) else 0, AT_ONCE):
            some = np.arange(start, min(start + AT_ONCE, old))
            self._known[some] += self._gained(some, rows)
            yield
        self._used[rows] = self._table.used[rows]
        everywhere, counted = np.arange(len(self._used)), [self._known]
        for start in range(old, len(self._shapes), AT_ONCE):
            some = np.arange(start, min(start + AT_ONCE, len(self._shapes)))
            counted.append(self._count(some, everywhere, self._used))
            yield
        self._known = np.concatenate(counted)
        return self._known

    def of(self, number: int) -> int:
        """Returns the places of one shape now. After a change it counts those of all: others are asked about next."""
        if number >= len(self._known) or self._state is not self._table.memo.get(STATE):
            at_once(self.all_steps())
        return int(self._known[number])

    def _are_other_nodes(self) -> bool:
        """Whether there are other nodes than when they were read last, or some have changed."""
        return self._as_of != self._of_nodes()

    def _of_nodes(self) -> Hashable:
        table = self._table
        return table.changes_of_followed, len(table.names), len(table.columns)

    def _read(self) -> None:
        """Reads what new shapes need, and which nodes accept them; of all shapes, if there are other nodes."""
        table = self._table
        if self._are_other_nodes():
            self._as_of, self._used = self._of_nodes(), table.used.copy()
            self._known, self._accepted_by = np.zeros(0, np.int64), np.zeros(0, np.intp)
            self._needs = np.zeros((0, len(table.columns)), np.int64)
            self._masks, self._numbers_of_masks = np.zeros((1, len(table.names)), np.bool_), {}
        new = self._shapes[len(self._accepted_by) :]
        if not new:
            return
        needs, accepted_by, masks = np.zeros((len(new), len(table.columns)), np.int64), [0] * len(new), [self._masks]
        for at, pod in enumerate(new):
            need = fit.need(table, pod)
            if not all(resource in table.columns and amount <= LARGEST for resource, amount in need):
                continue  # no node has so much
            if (number := self._numbers_of_masks.get(pod.constraints)) is None:
                number = self._numbers_of_masks[pod.constraints] = len(self._numbers_of_masks) + 1
                masks.append(fit.open_to(table, pod, ())[None])
            accepted_by[at] = number
            for resource, amount in need:
                needs[at, table.columns[resource]] = amount
        self._needs = np.concatenate((self._needs, needs))
        self._accepted_by = np.concatenate((self._accepted_by, np.array(accepted_by, np.intp)))
        self._masks = np.concatenate(masks)

    def _changed(self) -> RowNumbers:
        """Returns the rows of nodes on which other amounts are used than when all shapes were asked about last."""
        return np.flatnonzero((self._table.used != self._used).any(axis=1))

    def _gained(self, shapes: RowNumbers, rows: RowNumbers) -> Numbers:
        """Returns how many more places some shapes have now on some nodes than with what was used there before."""
        return self._count(shapes, rows, self._table.used[rows]) - self._count(shapes, rows, self._used[rows])

    def _count(self, shapes: RowNumbers, rows: RowNumbers, used: Numbers) -> Numbers:
        """Returns the places of some shapes on some nodes, on which so much is used."""
        free = (self._table.allocatable[rows] - used).clip(0)
        there = np.full((len(shapes), len(rows)), MOST)
        for column in range(free.shape[1]):
            need = self._needs[shapes, column, None]
            if need.any():
                there = np.minimum(there, np.where(need > 0, free[:, column] // np.maximum(need, 1), MOST))
        places: Numbers = np.where(self._masks[self._accepted_by[shapes]][:, rows], there, 0).sum(axis=1)
        return places
