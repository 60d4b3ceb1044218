"""Names of what has changed since somebody last asked. So views of the cluster need not look at all of it again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST = 2000
"""The most names that are kept: namespaces, and queue names that pods invent, come and go without end."""
LONGEST = 253
"""The most characters that the name of an object may have."""


class Touched:
    """Namespaces and queues that have changed. Calls ``told`` with each change; it must be quick.

    It keeps each name once, and a limited number of them, so it stays small also where nobody ever asks.
    ``everything``: more were noted, and anything may have changed.
    """

    __slots__ = ("_in_passing", "everything", "namespaces", "queues", "told")

    def __init__(self) -> None:
        """Begins without changes and without a listener."""
        self.namespaces: set[str] = set()
        self.queues: set[str] = set()
        self.everything = False
        self.told: Callable[[], None] | None = None
        self._in_passing = False

    def note(self, namespace: str = "", queue: str = "") -> None:
        """Notes a change of a namespace, of a queue, or of both; without names, of something that exists only once."""
        if self._in_passing:
            return
        if namespace:
            self.namespaces.add(namespace)
        if queue and len(queue) <= LONGEST:
            self.queues.add(queue)
        if len(self.namespaces) + len(self.queues) > MOST:
            self.everything = True
            self.namespaces.clear()
            self.queues.clear()
        if self.told is not None:
            self.told()

    @property
    def passing(self) -> bool:
        """Whether a trial is under way, whose changes will be undone."""
        return self._in_passing

    @contextmanager
    def in_passing(self) -> Iterator[None]:
        """Notes no changes within this context. They only serve to ask about the rest, and are undone."""
        self._in_passing = True
        try:
            yield
        finally:
            self._in_passing = False

    def take(self) -> tuple[set[str], set[str], bool]:
        """Returns the namespaces and queues that have changed, and whether all have. From now on they count as seen."""
        taken = self.namespaces, self.queues, self.everything
        self.namespaces, self.queues, self.everything = set(), set(), False
        return taken
