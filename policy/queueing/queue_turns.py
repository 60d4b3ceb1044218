"""Takes turns among queues in a tree: from the root down, in each family the neediest child comes first.

A child is chosen by its own figures, so opening one job changes the turns of its queue and of those above it alone.
"""

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace

from policy.objects.queue import ROOT
from policy.quota.queue_tree import QueueTree

QueueKey = tuple[int, float, str]


class QueueTurns:
    """Queues with jobs to look at. ``key_of`` returns the key by which a queue stands among its siblings, now."""

    def __init__(self, tree: QueueTree, key_of: Callable[[str], QueueKey]) -> None:
        self._tree = tree
        self._key_of = key_of
        self._families: dict[str, list[QueueKey]] = {ROOT: []}

    def __bool__(self) -> bool:
        """Whether there is any queue."""
        return bool(self._families[ROOT])

    def add(self, queue: str) -> None:
        """Adds a queue that is not there."""
        name = queue
        while True:
            parent = self._tree.parent_of(name)
            family = self._families.setdefault(parent, [])
            heappush(family, self._key_of(name))
            if parent == ROOT or len(family) > 1:
                return
            name = parent

    def pop(self) -> str:
        """Removes the queue whose turn it is; returns it."""
        way = [ROOT]
        while family := self._families.get(way[-1]):
            key = family[0]
            if (now := self._key_of(key[-1])) != key:
                heapreplace(family, now)
            else:
                way.append(key[-1])
        queue = way.pop()
        while way:
            parent = way.pop()
            heappop(self._families[parent])
            if self._families[parent] or parent == ROOT:
                break
            del self._families[parent]
        return queue
