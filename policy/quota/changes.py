"""What has changed since somebody last asked, by name: so that who shows a cluster need not look at all of it again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST = 2000
"""How many names are kept: namespaces come and go, and pods name queues that do not exist, without end."""
LONGEST = 253
"""Characters of a name that an object may have."""


class Touched:
    """Namespaces and queues of which something is different. ``told`` is called with each change, and must be quick.

    It keeps names, each once, and only so many, so it stays small also where nobody ever asks. ``everything``: more
    were noted, and anything may be different.
    """

    __slots__ = ("_in_passing", "everything", "namespaces", "queues", "told")

    def __init__(self) -> None:
        """Nothing has changed yet, and nobody listens."""
        self.namespaces: set[str] = set()
        self.queues: set[str] = set()
        self.everything = False
        self.told: Callable[[], None] | None = None
        self._in_passing = False

    def note(self, namespace: str = "", queue: str = "") -> None:
        """Something of a namespace has changed, of a queue, of both; or (without names) of what is there only once."""
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
        """Whether what changes now is only looked at, and changed back."""
        return self._in_passing

    @contextmanager
    def in_passing(self) -> Iterator[None]:
        """What changes in here is changed back soon, or was changed so, only to look at the rest: nobody need know."""
        self._in_passing = True
        try:
            yield
        finally:
            self._in_passing = False

    def take(self) -> tuple[set[str], set[str], bool]:
        """The namespaces and queues that have changed, and whether all have; from now on they count as seen."""
        taken = self.namespaces, self.queues, self.everything
        self.namespaces, self.queues, self.everything = set(), set(), False
        return taken
