"""Who is due when: a heap, so that time passing costs only what has become due."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

SPARE = 64
"""Entries that no longer count, beyond as many as do, until the heap is made anew."""


class Deadlines:
    """A time for each name. Its size follows how many names have one, however often they change."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, name: str, at: float) -> None:
        """A name is due at this time, in place of another one."""
        if self._at.get(name) == at:
            return
        self._at[name] = at
        heappush(self._heap, (at, name))
        if len(self._heap) > 2 * len(self._at) + SPARE:
            self._heap = [(at, name) for name, at in self._at.items()]
            heapify(self._heap)

    def clear(self, name: str) -> None:
        """A name is due no more; for one that has no time it is no error."""
        self._at.pop(name, None)

    def over(self, now: float) -> Iterator[str]:
        """The names that are due by now, each once; from then on they have no time."""
        while self._heap and self._heap[0][0] <= now:
            at, name = heappop(self._heap)
            if self._at.get(name) == at:
                del self._at[name]
                yield name
