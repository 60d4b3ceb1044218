"""The requests of waiting pods: whether any of them fits somewhere, and the smallest of them at hand."""

from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import islice

from policy.objects.resources import Resources

LOOKED_AT = 50
"""The most distinct requests that are looked at, so that the time of an answer does not grow with what waits."""


class Sizes:
    """A multiset of amounts. Each change takes at most logarithmic time in the number of distinct amounts."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._heap: list[int] = []
        self._in_heap: set[int] = set()

    def change(self, amount: int, by: int) -> None:
        """Adds one of this amount (``by`` 1), or removes one (-1)."""
        count = self._counts.get(amount, 0) + by
        if count:
            self._counts[amount] = count
            if amount not in self._in_heap:
                self._in_heap.add(amount)
                heappush(self._heap, amount)
        else:
            del self._counts[amount]

    def smallest(self) -> int:
        """Returns the smallest amount; 0 if there is none."""
        while self._heap and self._heap[0] not in self._counts:
            self._in_heap.discard(heappop(self._heap))
        return self._heap[0] if self._heap else 0


class WaitingRequests:
    """A multiset of requests."""

    def __init__(self) -> None:
        self._counts: dict[frozenset[tuple[str, int]], int] = {}
        self._sizes: dict[str, Sizes] = {}
        self._asking: dict[str, int] = {}
        self._fitted: frozenset[tuple[str, int]] = frozenset()

    def change(self, request: Resources, by: int) -> None:
        """Adds ``by`` pods with this request, or removes them if negative."""
        key = frozenset(request.items())
        count = self._counts.get(key, 0) + by
        if count:
            self._counts[key] = count
        else:
            del self._counts[key]
        if count == max(0, by):  # it is the first of its kind, or was the last
            kinds = 1 if by > 0 else -1
            for resource, amount in request.items():
                self._sizes.setdefault(resource, Sizes()).change(amount, kinds)
                self._asking[resource] = self._asking.get(resource, 0) + kinds
                if not self._asking[resource]:
                    del self._asking[resource], self._sizes[resource]  # tenants invent resources without end

    def smallest(self, resource: str) -> int:
        """Returns the smallest amount of the resource that any of them requests; 0 if none does."""
        sizes = self._sizes.get(resource)
        return sizes.smallest() if sizes else 0

    def fitting(self, room: Mapping[str, int], together: Resources) -> Resources:
        """Returns the sum of the requests that each fit into this room alone. Resources not named in the room fit.

        Where there are too many distinct ones to look at, all count as fitting: their sum is ``together``.
        """
        if len(self._counts) > LOOKED_AT:
            return together
        found: dict[str, int] = {}
        for request, count in self._counts.items():
            if all(amount <= room.get(resource, amount) for resource, amount in request):
                for resource, amount in request:
                    found[resource] = found.get(resource, 0) + count * amount
        return found

    @property
    def alike(self) -> bool:
        """Whether all of them request the same."""
        return len(self._counts) <= 1

    def smallest_of_all(self) -> dict[str, int]:
        """Returns the smallest amount of each resource that is requested."""
        return {resource: self.smallest(resource) for resource in self._asking}

    def any_fits(self, room: Mapping[str, int]) -> bool:
        """Whether one of them fits into this room in all that it requests. Mostly that is seen at once.

        Where there are too many distinct ones to look at, one of the others counts as fitting.
        """
        if self._fitted in self._counts and _fits(self._fitted, room):
            return True
        for resource, asking in self._asking.items():
            if asking == len(self._counts) and self.smallest(resource) > room.get(resource, 0):
                return False
        for request in islice(self._counts, LOOKED_AT):
            if _fits(request, room):
                self._fitted = request
                return True
        return len(self._counts) > LOOKED_AT


def _fits(request: frozenset[tuple[str, int]], room: Mapping[str, int]) -> bool:
    return all(amount <= room.get(resource, 0) for resource, amount in request)
