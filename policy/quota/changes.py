"""All signals that something has changed: counters for code that looks again, and names for views.

A counter is compared with its value at the last look. Names tell a view which parts of it to look at again.

- ``Generations.admission``: a refused pod might be admitted now. Read by gang admission, by pods that change their
  queue, by the controllers that wake pods and open gates, and by simulations.
- ``Generations.plans``: quotas, queues, nodes or budgets have changed, so a plan may be wrong or another possible. Read
  by gang admission, by the controllers that reclaim and open gates, by simulations, and by the live page of a pod.
- ``Generations.shares``: what queues deserve has to be computed anew. Read by ``QueueLedger.stale`` and ``admit``.
- ``Generations.gangs``: a member of a gang was lost. Read by ungating.
- ``Generations.gates``: another gate may be opened. Read by the controller that opens gates.
- ``Generations.arrivals``: a job of a new kind waits at a gate. Read by ungating.
- ``Changes``: which namespaces and queues have changed. Read by the page. Its subscribers are called at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST = 2000
"""The most names that are kept: namespaces, and queue names that pods invent, come and go without end."""
LONGEST = 253
"""The most characters that the name of an object may have."""


class Generations:
    """Counters of changes (see this module). The ledger and the parts of the cluster share one, and add to it."""

    __slots__ = ("admission", "arrivals", "gangs", "gates", "plans", "shares")

    def __init__(self) -> None:
        self.admission = self.plans = self.shares = self.gangs = self.gates = self.arrivals = 0

    @property
    def of_placing(self) -> tuple[int, int]:
        """While this stays the same, a pod or gang that could not be placed cannot be placed either."""
        return self.admission, self.plans

    @property
    def of_ungating(self) -> tuple[int, int, int]:
        """While this stays the same, no other gate can be opened."""
        return self.admission, self.plans, self.gates

    @property
    def of_incomplete_gangs(self) -> tuple[int, int]:
        """While this stays the same, no other gang lacks members that wait at gates."""
        return self.gangs, self.arrivals

    def snapshot(self) -> int:
        """Returns what ``restore`` needs after a trial."""
        return self.admission

    def restore(self, snapshot: int) -> None:
        """Sets ``admission`` as it was before a trial: what is undone lets in nobody else.

        The other counters stay: their readers look once too often at most.
        """
        self.admission = snapshot


class Changes:
    """Names of namespaces and queues that have changed. Calls its ``subscribers`` at each change; they must be quick.

    It keeps each name once, and a limited number of them, so it stays small also where nobody ever asks.
    ``everything``: more were noted, and anything may have changed. ``in_trial``: a trial is under way, whose changes
    will be undone.
    """

    __slots__ = ("everything", "in_trial", "namespaces", "queues", "subscribers")

    def __init__(self) -> None:
        """Begins without changes and without subscribers."""
        self.namespaces: set[str] = set()
        self.queues: set[str] = set()
        self.everything = self.in_trial = False
        self.subscribers: list[Callable[[], None]] = []

    def note(self, namespace: str = "", queue: str = "") -> None:
        """Notes a change of a namespace, of a queue, or of both; without names, of something that exists only once."""
        if self.in_trial:
            return
        if namespace:
            self.namespaces.add(namespace)
        if queue and len(queue) <= LONGEST:
            self.queues.add(queue)
        if len(self.namespaces) + len(self.queues) > MOST:
            self.everything = True
            self.namespaces.clear()
            self.queues.clear()
        for tell in self.subscribers:
            tell()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Notes no changes within this context. They only serve to ask about the rest, and are undone."""
        self.in_trial = True
        try:
            yield
        finally:
            self.in_trial = False

    def take(self) -> tuple[set[str], set[str], bool]:
        """Returns the namespaces and queues that have changed, and whether all have. From now on they count as seen."""
        taken = self.namespaces, self.queues, self.everything
        self.namespaces, self.queues, self.everything = set(), set(), False
        return taken
