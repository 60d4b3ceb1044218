"""What has changed since somebody last asked, by name: so that who shows a cluster need not look at all of it again."""

from collections.abc import Callable


class Touched:
    """Namespaces and queues of which something is different. ``told`` is called with each change, and must be quick.

    It keeps names, each once, so it stays as small as the cluster also where nobody ever asks.
    """

    __slots__ = ("namespaces", "queues", "told")

    def __init__(self) -> None:
        """Nothing has changed yet, and nobody listens."""
        self.namespaces: set[str] = set()
        self.queues: set[str] = set()
        self.told: Callable[[], None] | None = None

    def note(self, namespace: str = "", queue: str = "") -> None:
        """Something of a namespace has changed, of a queue, of both; or (without names) of what is there only once."""
        if namespace:
            self.namespaces.add(namespace)
        if queue:
            self.queues.add(queue)
        if self.told is not None:
            self.told()

    def take(self) -> tuple[set[str], set[str]]:
        """The namespaces and queues that have changed; from now on they count as seen."""
        taken = self.namespaces, self.queues
        self.namespaces, self.queues = set(), set()
        return taken
