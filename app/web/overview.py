"""Yields the parts of the page from the store in small steps: all at first, later what has changed."""

from collections.abc import Collection, Iterable, Iterator
from heapq import nsmallest
from typing import Any

from app.settings import Settings
from app.store.store import Store
from app.web import parts
from app.web.figures import Loans, queue_row, quota_rows
from app.web.parts import Gone, Lending, Listed, Part
from app.web.waiting import Crowds
from policy.cluster.shown_resources import named
from policy.objects.queue import ROOT

ROWS = 2000
"""Maximum number of namespaces with quotas that are shown, and of queues; REST has all."""


class Rows:
    """The rows of one list, by their namespace or queue; the first names, if there are many."""

    def __init__(self) -> None:
        """Starts without rows."""
        self.shown: set[str] = set()
        self._keys: dict[str, set[tuple[str, ...]]] = {}

    def update(self, names: Collection[str], touched: set[str]) -> None:
        """Sets the names that have rows; adds names to ``touched`` that this shows or hides."""
        if all((name in names) == (name in self.shown) for name in touched):
            return
        shown = set(names if len(names) <= ROWS else nsmallest(ROWS, names))
        touched |= shown ^ self.shown
        self.shown = shown

    def of(self, name: str, rows: Iterable[Part]) -> Iterator[Part | Gone]:
        """Yields the current rows of a name, if it is shown, and its rows that are gone."""
        keys, now = self._keys.setdefault(name, set()), set[tuple[str, ...]]()
        for row in rows if name in self.shown else ():
            now.add(row.key)
            keys.add(row.key)  # before the yield: the caller may stop here
            yield row
        yield from map(Gone, keys - now)
        keys &= now
        if not keys:
            del self._keys[name]


class Overview:
    """The content of the page. ``decisions`` are the latest verdicts, the latest first."""

    def __init__(self, store: Store, settings: Settings, decisions: Iterable[Any]) -> None:
        """Starts with nothing looked at."""
        self._store = store
        self._settings = settings
        self._decisions = decisions
        self._crowds = Crowds(observe=settings.observes)
        self._quotas, self._queues = Rows(), Rows()
        self._between_quotas, self._between_queues = Loans(), Loans()
        self._namespaces: set[str] = set()
        self._names: set[str] = set()
        self._lent: frozenset[str] | None = None
        self._available: Any = None
        self._named = frozenset[str]()

    def look(self) -> Iterator[Part | Gone | None]:
        """Yields parts that may have changed since the last look; None if nothing is ready yet.

        No step takes long. If the caller stops, the next look continues with the rest.
        """
        self._heed_changes()
        yield Part(("status",), "status", parts.status(self._store, self._settings))
        yield Part(("calls",), "calls", tuple(parts.calls()))
        yield from self._of_namespaces()
        yield from self._of_queues()
        for waiting in self._crowds.waiting(self._store.cluster):
            yield Part(("waiting",), "waiting", waiting) if waiting else None
        lending = Lending(self._between_quotas.result(), self._between_queues.result())
        yield Part(("lending",), "lending", lending)
        yield Part(("reservations",), "reservations", parts.reservations(self._store))
        yield Part(("decisions",), "decisions", parts.latest(self._decisions))

    def _heed_changes(self) -> None:
        """Notes the namespaces and queues to look at; all of them, if something common to them has changed."""
        cluster = self._store.cluster
        namespaces, queues, everything = cluster.changes.take()
        if everything or self._lent is None:
            namespaces.update(pod.namespace for pod in cluster.pending.values())
            namespaces.update(cluster.quotas, self._quotas.shown, self._between_quotas.names, self._crowds.namespaces)
            queues.update(cluster.queues, self._queues.shown, self._between_queues.names)
        lent = frozenset(cluster.ledger.pool.min)
        if lent != self._lent:
            namespaces.update(cluster.quotas)
            self._lent = lent
        queues.update([above for name in queues for above in (*cluster.ledger.queues.tree.above(name), ROOT)])
        names = named(cluster)
        if cluster.ledger.queues.available is not self._available or names != self._named:
            queues.update(cluster.queues)
            self._available, self._named = cluster.ledger.queues.available, names
        self._namespaces |= namespaces
        self._names |= queues

    def _of_namespaces(self) -> Iterator[Part | Gone | None]:
        cluster = self._store.cluster
        self._quotas.update(cluster.quotas, self._namespaces)
        total = len(cluster.quotas)
        yield Part(("quotas",), "quotas", Listed(min(total, ROWS), total))
        for namespace in sorted(self._namespaces):
            yield from self._crowds.count_steps(cluster, namespace)
            rows = list(quota_rows(cluster, namespace, self._crowds.number(namespace)))
            in_force = next((row for row in rows if row.in_force), None)
            self._between_quotas.put(namespace, in_force.bars if in_force else ())
            parts_of = [Part(("quota", namespace, row.name), "quota", row, row_of="quotas") for row in rows]
            yield from self._quotas.of(namespace, parts_of)
            self._namespaces.discard(namespace)

    def _of_queues(self) -> Iterator[Part | Gone | None]:
        cluster = self._store.cluster
        self._queues.update(cluster.queues, self._names)
        total = len(cluster.queues)
        yield Part(("queues",), "queues", Listed(min(total, ROWS), total))
        for name in sorted(self._names):
            row = queue_row(cluster, name, self._waiting_in(name)) if name in cluster.queues else None
            is_leaf = row is not None and not cluster.ledger.queues.tree.has_children(name)
            self._between_queues.put(name, row.bars if row and is_leaf else ())
            part = [Part(("queue", *row.above, name), "queue", row, row_of="queues")] if row else []
            yield from self._queues.of(name, part)
            self._names.discard(name)

    def _waiting_in(self, queue: str) -> int:
        """Returns the number of pods that wait for a queue or any below it."""
        by_queue = self._crowds.by_queue
        if queue == ROOT:
            return by_queue.total()
        tree = self._store.cluster.ledger.queues.tree
        return sum(by_queue[each] for each in tree.inside(queue))
