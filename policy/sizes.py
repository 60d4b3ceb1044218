"""The sizes of what waits, and the smallest of them at hand."""

from heapq import heappop, heappush


class Sizes:
    """A multiset of amounts. Each change takes no longer than the logarithm of how many different ones there are."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._heap: list[int] = []
        self._in_heap: set[int] = set()

    def change(self, amount: int, by: int) -> None:
        """One more of this amount, or one less."""
        count = self._counts.get(amount, 0) + by
        if count:
            self._counts[amount] = count
            if amount not in self._in_heap:
                self._in_heap.add(amount)
                heappush(self._heap, amount)
        else:
            del self._counts[amount]

    def smallest(self) -> int:
        """The smallest amount; 0 if there is none."""
        while self._heap and self._heap[0] not in self._counts:
            self._in_heap.discard(heappop(self._heap))
        return self._heap[0] if self._heap else 0
