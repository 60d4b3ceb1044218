"""Deadlines by name, in a heap: the cost of passing time depends only on what has become due."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

SPARE = 64
"""Stale entries, beyond the number of valid ones, after which the heap is rebuilt."""


class Deadlines:
    """A time for each name. Its size depends on the number of names, however often their times change."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, name: str, at: float) -> None:
        """Sets the time at which a name is due, in place of an earlier one."""
        if self._at.get(name) == at:
            return
        self._at[name] = at
        heappush(self._heap, (at, name))
        if len(self._heap) > 2 * len(self._at) + SPARE:
            self._heap = [(at, name) for name, at in self._at.items()]
            heapify(self._heap)

    def clear(self, name: str) -> None:
        """Removes the time of a name. Does nothing for one that has none."""
        self._at.pop(name, None)
        if not self._at:
            self._heap.clear()

    def over(self, now: float) -> Iterator[str]:
        """Yields the names that are due by now, each once, and removes their times."""
        while self._heap and self._heap[0][0] <= now:
            at, name = heappop(self._heap)
            if self._at.get(name) == at:
                del self._at[name]
                yield name
