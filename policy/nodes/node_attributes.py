"""The attributes of nodes that searches ask for beside room, by row: names, labels, taints and readiness."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.objects.constraints import integer
from policy.objects.node import Node
from policy.objects.resources import Resources

Mask = NDArray[np.bool_]
"""One answer per row."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of something over all nodes: a code per row, -1 where a node has none."""

    codes: NDArray[np.intp]
    index: Mapping[Any, int]

    def where(self, verdicts: Iterable[bool], *, absent: bool) -> Mask:
        """Returns the verdict of each row's value; ``verdicts`` stand in the order of ``index``."""
        return np.array([*verdicts, absent], dtype=np.bool_)[self.codes]


class NodeAttributes:
    """The attributes of the nodes of a table, each computed when it is asked for."""

    def __init__(self, names: list[str], nodes: Callable[[], Iterator[Node]]) -> None:
        """``names`` are those of the table by row, and ``nodes`` yields its nodes in the same order."""
        self.memo: dict[Hashable, Any] = {}
        """Results that depend only on names, labels, taints and readiness of nodes. A change of these empties it."""
        self._names = names
        self._nodes = nodes
        self._label_keys: dict[str, int] = {}

    def count(self, node: Node, change: Callable[[dict[str, int], Resources], None]) -> None:
        """Adds or subtracts a node in the number of nodes that have a label of each key."""
        change(self._label_keys, dict.fromkeys(node.labels, 1))

    def labels(self, key: str) -> Values:
        """Returns the values of a label over all nodes."""
        known: Values | None = self.memo.get(("label", key))
        if known is None and key not in self._label_keys:  # pods may name any key
            known = self.memo.get("unlabelled")
            if known is None:
                known = self.memo["unlabelled"] = self._coded([None] * len(self._names))
        if known is None:
            known = self.memo["label", key] = self._coded([node.labels.get(key) for node in self._nodes()])
        return known

    def has_label(self, key: str) -> bool:
        """Whether any node has a label of this key."""
        return key in self._label_keys

    def numbers(self, key: str) -> tuple[NDArray[np.int64], Mask]:
        """Returns a label's values as integers, in the order of ``index``, and a mask of the valid ones. Shared."""
        known: tuple[NDArray[np.int64], Mask] | None = self.memo.get(("number", key))
        if known is None:
            numbers = [integer(value) for value in self.labels(key).index]
            known = self.memo["number", key] = (
                np.array([number or 0 for number in numbers], np.int64),
                np.array([number is not None for number in numbers], np.bool_),
            )
        return known

    def taints(self) -> Values:
        """Returns the sets of taints over all nodes; most have none."""
        known: Values | None = self.memo.get("taints")
        if known is None:
            known = self.memo["taints"] = self._coded([node.taints or None for node in self._nodes()])
        return known

    def ready(self) -> Mask:
        """Returns a mask of the nodes that are ready. It is shared: do not change it."""
        known: Mask | None = self.memo.get("ready")
        if known is None:
            ready = (node.ready for node in self._nodes())
            known = self.memo["ready"] = np.fromiter(ready, np.bool_, len(self._names))
        return known

    def ranks(self) -> NDArray[np.intp]:
        """Returns the position of each row's node in the order of names. Shared, as above."""
        known: NDArray[np.intp] | None = self.memo.get("ranks")
        if known is None:
            known = np.empty(len(self._names), np.intp)
            known[sorted(range(len(self._names)), key=self._names.__getitem__)] = np.arange(len(self._names))
            self.memo["ranks"] = known
        return known

    def names_by_row(self) -> tuple[str, ...]:
        """Returns the names by row as they are now, for callers that keep rows across a pause. Shared."""
        known: tuple[str, ...] | None = self.memo.get("names")
        if known is None:
            known = self.memo["names"] = tuple(self._names)
        return known

    def _coded(self, values: list[Any]) -> Values:
        index: dict[Any, int] = {}
        codes = [-1 if value is None else index.setdefault(value, len(index)) for value in values]
        return Values(np.array(codes, np.intp), index)
