"""All pods that stand or are expected somewhere, as rows of numbers: finds those that a selector selects.

Pods of one template share their labels, so a selector is judged once for each *kind*: a namespace with a map of labels.
The labels of kinds stand in columns, one for each key that was asked about, with a code for each value. Everything is
kept by differences. The cost of a selector hardly grows with pods, whoever wrote either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policy.nodes.codes import Mask, among, meeting
from policy.objects import signature
from policy.objects.constraints import Selector
from policy.objects.pod import Pod

MOST_COLUMNS = 512
"""The most keys that are remembered: pods may name any key in their selectors."""
_FIRST = 64
_SPARE_VALUES = 1000


@dataclass(slots=True)
class _Kind:
    """A namespace with a map of labels, its code, and how many pods are of that kind."""

    key: tuple[str, int]
    labels: Mapping[str, str]
    code: int
    pods: int = 0


_GONE = _Kind(("", 0), {}, -1)
"""Stands in the place of a kind that has no pods any more."""


@dataclass(slots=True)
class _Column:
    """The value of one label, or the namespace, by kind: -1 where there is none. A value's code is never reused."""

    codes: NDArray[np.int32]
    index: dict[str, int] = field(default_factory=dict)

    def put(self, kind: int, value: str) -> None:
        self.codes[kind] = self.index.setdefault(value, len(self.index))


class PodIndex:
    """Pods by the *slot* that each has while it is there. ``rows`` has the row of its node, -1 if that is not known."""

    def __init__(self) -> None:
        """Begins without pods."""
        self.slots: dict[str, int] = {}
        self.rows = np.full(_FIRST, -1, np.int32)
        self.stands = np.zeros(_FIRST, np.bool_)
        self.terminating = np.zeros(_FIRST, np.bool_)
        self._kind_of = np.zeros(_FIRST, np.int32)
        self._kinds: dict[tuple[str, int], _Kind] = {}
        self._by_code: list[_Kind] = []
        self._namespace_column = _Column(np.full(_FIRST, -1, np.int32))
        self._label_columns: dict[str, _Column] = {}
        self._with: dict[str, set[int]] = {}
        self._free_slots: list[int] = []
        self._free_codes: list[int] = []
        self._used_slots = 0

    @property
    def size(self) -> int:
        """The number of slots. Entries of the arrays beyond them mean nothing."""
        return self._used_slots

    def add(self, pod: Pod, row: int, *, stands: bool) -> None:
        """Adds a new pod on the node with this row."""
        if self._free_slots:
            slot = self._free_slots.pop()
        else:
            slot, self._used_slots = self._used_slots, self._used_slots + 1
            if slot >= len(self.rows):
                self._grow()
        self.slots[pod.uid] = slot
        self.rows[slot], self.stands[slot], self.terminating[slot] = row, stands, pod.terminating
        self._kind_of[slot] = self._enter(pod)

    def change(self, pod: Pod) -> None:
        """Updates the labels and the state of a pod that stays where it was."""
        slot = self.slots[pod.uid]
        self.terminating[slot] = pod.terminating
        left, self._kind_of[slot] = int(self._kind_of[slot]), self._enter(pod)
        self._leave(left)

    def remove(self, uid: str) -> None:
        """Removes a pod."""
        slot = self.slots.pop(uid)
        self.rows[slot] = -1
        self._leave(int(self._kind_of[slot]))
        self._free_slots.append(slot)

    def put_on(self, uids: Iterable[str], row: int) -> None:
        """Sets the row of the node for these pods; -1: the node is not known any more."""
        self.rows[[self.slots[uid] for uid in uids]] = row

    def selected(self, selector: Selector | None, namespaces: Iterable[str] | None) -> Mask:
        """Returns by slot, as a new mask, the selected pods of these namespaces (None: all) on known nodes."""
        if selector is None:
            return np.zeros(self._used_slots, np.bool_)
        number = len(self._by_code)
        known = self._namespace_column
        of_kind = np.ones(number, np.bool_)
        if namespaces is not None:
            of_kind = among(known.codes, known.index, namespaces)[:number]
        for requirement in selector.requirements:
            if not of_kind.any():
                break
            column = self._column(requirement.key)
            of_kind &= meeting(column.codes, column.index, requirement)[:number]
        chosen: Mask = self.rows[: self._used_slots] >= 0
        if of_kind.all():
            return chosen
        chosen &= of_kind[self._kind_of[: self._used_slots]]
        return chosen

    def _column(self, key: str) -> _Column:
        column = self._label_columns.get(key)
        if column is None:
            if len(self._label_columns) >= MOST_COLUMNS:
                self._label_columns.clear()
            column = self._label_columns[key] = _Column(np.full(len(self._namespace_column.codes), -1, np.int32))
            for code in self._with.get(key, ()):
                column.put(code, self._by_code[code].labels[key])
        return column

    def _enter(self, pod: Pod) -> int:
        """Counts one more pod of a kind; returns its code."""
        key = pod.namespace, signature.of_part(pod.labels)
        kind = self._kinds.get(key)
        if kind is None:
            code = self._free_codes.pop() if self._free_codes else len(self._by_code)
            kind = self._kinds[key] = _Kind(key, pod.labels, code)
            self._by_code[code : code + 1] = [kind]
            for column in (
                (self._namespace_column, *self._label_columns.values())
                if code >= len(self._namespace_column.codes)
                else ()
            ):
                column.codes = np.concatenate((column.codes, np.full(len(column.codes), -1, np.int32)))
            self._namespace_column.put(code, pod.namespace)
            self._tell_columns(kind)
        kind.pods += 1
        return kind.code

    def _tell_columns(self, kind: _Kind) -> None:
        """Enters a new kind in the columns. Rebuilds a column that has far more values than there are kinds."""
        most = 2 * len(self._kinds) + _SPARE_VALUES
        for name in kind.labels:
            self._with.setdefault(name, set()).add(kind.code)
        for name in kind.labels.keys() & self._label_columns.keys():
            column = self._label_columns[name]
            column.put(kind.code, kind.labels[name])
            if len(column.index) > most:
                del self._label_columns[name]
        if len(self._namespace_column.index) > most:
            self._namespace_column.index.clear()
            for each in self._kinds.values():
                self._namespace_column.put(each.code, each.key[0])

    def _leave(self, code: int) -> None:
        kind = self._by_code[code]
        kind.pods -= 1
        if kind.pods:
            return
        self._namespace_column.codes[code] = -1
        for name in kind.labels:
            self._with[name].discard(code)
            if not self._with[name]:
                del self._with[name]
            if name in self._label_columns:
                self._label_columns[name].codes[code] = -1
        self._by_code[code] = _GONE
        del self._kinds[kind.key]
        self._free_codes.append(code)

    def _grow(self) -> None:
        more = len(self.rows)
        self.rows = np.concatenate((self.rows, np.full(more, -1, np.int32)))
        self.stands = np.concatenate((self.stands, np.zeros(more, np.bool_)))
        self.terminating = np.concatenate((self.terminating, np.zeros(more, np.bool_)))
        self._kind_of = np.concatenate((self._kind_of, np.zeros(more, np.int32)))
