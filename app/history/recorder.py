"""Records what happens to queues and quotas: amounts once a minute, and answers and evictions as they were noted.

Nothing here is on the way of an answer to kube-scheduler. Answers are taken from the list of the latest decisions,
evictions from the list of the latest evictions, both of which are kept anyway.

The memory is bounded. Queues, and namespaces with a quota, have rows; pods that name other queues, and namespaces
without a quota, have none. Rows are of resources that quotas and queues name, and of our rules.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any

import numpy as np
import structlog

from app.history.rows import LIMIT, MINUTES, Rows, Values
from app.observability.evictions import Evicted
from app.observability.queue_metrics import label_of
from app.observability.wait_times import WAIT_TIMES
from app.observability.waiting_metrics import waiting_steps
from app.pause import at_leisure
from app.store.store import TICK, Store
from policy.cluster.shown_resources import allocated, shown
from policy.objects.quantity import LARGEST
from policy.quota import queue_rules
from policy.stepwise import Steps

log = structlog.get_logger(__name__)

QUOTA, QUEUE = "quota", "queue"
USED, DESERVED, MIN, MAX = "used", "deserved", "min", "max"
WAITING, ADMITTED, REFUSED, EVICTED, RESERVED = "waiting", "admitted", "refused", "evicted", "reserved"
RESOURCES = 8
"""Maximum number of resources of a queue or quota that are recorded."""
HIGHEST = 1000 * LARGEST
"""The largest value that a quantity can have, in millicores."""
CHANGES = 96
"""Maximum number of changes of a bound that are remembered, as bounds seldom change."""
BACK = 5
"""Minutes by which the clock may go back; if it goes further, the history begins anew."""
ADMITTED_AT_ONCE = 10_000
"""Maximum number of admitted pods of which it is noted when that was, until they are bound."""
FEW = 20
"""Decisions that are counted between two pauses."""

Name = tuple[str, str]
"""A recorded queue or quota: ``quota`` and a namespace, or ``queue`` and its name."""
Figure = tuple[str, str]
"""A kind of row: ``used`` and a resource, ``refused`` and a rule, ``admitted`` and nothing."""


@dataclass(slots=True)
class Recorded:
    """The rows of a queue or quota, and the minute in which it was there last.

    ``bounds`` has changes of limits: the minute and the new value, None for no limit. ``title`` is a quota's own name.
    """

    seen: int
    title: str = ""
    rows: dict[Figure, Values] = field(default_factory=dict)
    bounds: dict[Figure, deque[tuple[int, int | None]]] = field(default_factory=dict)


class Recorder:
    """The history of a day. ``since`` is the first minute that is known, in minutes since the epoch; 0 before it.

    ``counted_since`` is the first minute in which answers were counted. ``left_out``: there was no memory for all.
    ``sampled``: the amounts of all that is there were recorded at least once.
    ``lacking`` says why nothing is known of the time before the start, if somebody is asked for that, and
    ``evictions_lacking`` why not all evictions are. ``evictions_since`` is the minute of the first one that is known.
    """

    def __init__(self, store: Store, decisions: Iterable[Any], limit: int = LIMIT) -> None:
        """Records what the store sees, and these decisions, the latest first. ``limit``: bytes of all rows."""
        self.since = self.counted_since = self.evictions_since = 0
        self.lacking = self.evictions_lacking = ""
        self.sampled = False
        self.left_out = False
        self.recorded: dict[Name, Recorded] = {}
        self.known = np.zeros(MINUTES, dtype=np.bool_)
        self.minute = 0
        self.rows = Rows(limit)
        self._store = store
        self._decisions = decisions
        self._decided: Any = None
        self._evicted: Evicted | None = None
        self._reserved: frozenset[str] | None = None
        self._admitted: dict[str, float] = {}

    async def run(self) -> None:
        """Records for ever."""
        while not self._store.synced:
            await asyncio.sleep(TICK)
        while True:
            await self.record()
            await asyncio.sleep(TICK)

    async def record(self) -> None:
        """Records what has happened since the last time, and once in a minute how much everybody has."""
        before = self.minute
        self._move_on(int(self._store.clock() + self._store.cluster.epoch) // 60)
        await at_leisure(self._count_steps())
        if self.minute != before:
            await at_leisure(self._sample_steps())

    @property
    def nbytes(self) -> int:
        """The bytes of all rows, which are nearly all that is kept."""
        return self.rows.nbytes

    def _move_on(self, minute: int) -> None:
        """Begins a minute, and forgets those that are older than a day."""
        if minute < self.minute - BACK:
            log.warning("the clock went back: the history begins anew", minutes=self.minute - minute)
            self.recorded.clear()
            self.rows, self.since, self.counted_since, self.minute = Rows(LIMIT), 0, 0, 0
            self.evictions_since = 0
            self.known[:] = False
        if minute <= self.minute:
            return
        for passed in range(max(self.minute + 1, minute - MINUTES + 1), minute + 1):
            self.rows.forget(passed)
            self.known[passed % MINUTES] = False
        self.known[minute % MINUTES] = True
        self.minute = minute
        self.since = self.since or minute
        self.counted_since = self.counted_since or minute
        self.evictions_since = self.evictions_since or minute

    @property
    def all_lacking(self) -> list[str]:
        """Sentences, without a full stop, on the time before the start that is not known."""
        return [text for text in (self.lacking, self.evictions_lacking) if text]

    def restore(self, name: Name, figure: Figure, values: Mapping[int, int], step: int) -> None:
        """Fills in values of the time before the start, by minute, each for ``step`` minutes; events for the last one.

        Only figures that are recorded are filled in, and evictions. Values that no quantity can have are left out.
        """
        each = self.recorded.get(name)
        if each is None:
            return
        oldest = self.minute - MINUTES + 1
        earlier = [each for each in sorted(values.items()) if oldest <= each[0] < self.counted_since]
        known = {minute: value for minute, value in earlier if 0 <= value <= HIGHEST}
        if figure[0] in (MIN, MAX):
            self._restore_bound(each, figure, known)
        elif figure in each.rows or (figure == (EVICTED, "") and any(known.values())):
            row = self._row(name, figure)
            if row is None:
                return
            for minute, value in known.items():
                for column in range(max(oldest, minute - step + 1), minute + 1):
                    row[column % MINUTES] = value if column == minute or figure[0] != EVICTED else 0
        else:
            return
        self.since = min([self.since, *known])

    def _restore_bound(self, each: Recorded, figure: Figure, known: Mapping[int, int]) -> None:
        changes = each.bounds.get(figure)
        if not changes:
            return
        earlier = [(minute, value) for minute, value in known.items() if minute < changes[0][0]]
        for (minute, value), before in reversed(list(zip(earlier, [None, *earlier], strict=False))):
            if (before is None or before[1] != value) and len(changes) < CHANGES:
                changes.appendleft((minute, value))

    def restore_evictions_steps(self, earlier: Sequence[Evicted]) -> Steps[None]:
        """Takes over evictions from before the start, the latest first; counts them where no Prometheus has."""
        if not earlier:
            return
        self._store.evictions.remember(earlier)
        self._evicted = self._evicted or earlier[0]
        numbers, oldest = Counter[tuple[Name, int]](), self.minute - MINUTES + 1
        for gone in earlier:
            minute = int(gone.at) // 60
            if minute >= oldest:
                self.evictions_since = min(self.evictions_since, minute)
                numbers.update((name, minute) for name in self._concerned(gone.namespace, gone.queue))
            yield
        for (name, minute), number in numbers.items():
            row, column = self._row(name, (EVICTED, "")), minute % MINUTES
            if row is not None and (minute >= self.counted_since or np.isnan(row[column])):
                row[column] = number if np.isnan(row[column]) else row[column] + number
            yield

    # What happened

    def _count_steps(self) -> Steps[None]:
        cluster = self._store.cluster
        yield from self._wait_steps()
        decisions = list(takewhile(lambda each: each is not self._decided, self._decisions))
        evictions = list(takewhile(lambda each: each is not self._evicted, self._store.evictions))
        self._decided = decisions[0] if decisions else self._decided
        self._evicted = evictions[0] if evictions else self._evicted
        for index, decision in enumerate(decisions, start=1):
            if index % FEW == 0:
                yield
            pod = cluster.pods.get(decision.uid)
            queue = cluster.queue_of(pod) if pod is not None else self._queue_of(decision.namespace)
            refused = decision.refused
            figure = (ADMITTED, "") if refused is None else (REFUSED, refused.rule)
            if refused is None and len(self._admitted) < ADMITTED_AT_ONCE:
                self._admitted.setdefault(decision.uid, decision.at)
            self._count(decision.namespace, queue, figure)
        for index, gone in enumerate(evictions, start=1):
            if index % FEW == 0:
                yield
            self._count(gone.namespace, gone.queue, (EVICTED, ""))
        self._count_reservations()

    def _wait_steps(self) -> Steps[None]:
        """Observes how long pods had waited that were admitted, once they are bound."""
        cluster = self._store.cluster
        for index, (uid, at) in enumerate(list(self._admitted.items()), start=1):
            if index % FEW == 0:
                yield
            pod = cluster.pods.get(uid)
            if pod is not None and pod.assigned and pod.created:
                WAIT_TIMES.observe(label_of(cluster, pod), pod.namespace, at - pod.created)
            if pod is None or pod.assigned or uid not in cluster.grants:  # it may be admitted again
                del self._admitted[uid]

    def _count_reservations(self) -> None:
        cluster = self._store.cluster
        there = {each.name: each for each in chain(cluster.reservations.plans.values(), cluster.reservations.reserved)}
        before = self._reserved if self._reserved is not None else frozenset(there)  # not those of an earlier process
        self._reserved = frozenset(there)
        for name in self._reserved - before:
            of = there[name].pod
            pod = cluster.pods.get(of.uid)
            queue = cluster.queue_of(pod) if pod is not None else self._queue_of(of.namespace)
            self._count(of.namespace, queue, (RESERVED, ""))

    def _queue_of(self, namespace: str) -> str:
        known = self._store.cluster.membership.namespaces.get(namespace)
        return known.queue if known is not None else ""

    def _count(self, namespace: str, queue: str, figure: Figure) -> None:
        for name in self._concerned(namespace, queue):
            row = self._row(name, figure)
            if row is not None:
                column = self.minute % MINUTES
                row[column] = 1 if np.isnan(row[column]) else row[column] + 1

    def _concerned(self, namespace: str, queue: str) -> Iterator[Name]:
        """Yields the quota of a namespace, the queue and those above it, as far as they exist."""
        cluster = self._store.cluster
        account = cluster.ledger.accounts.get(namespace)
        if account is not None and account.quota is not None:
            yield QUOTA, namespace
        if queue in cluster.queues:
            yield QUEUE, queue
            for above in cluster.ledger.queues.tree.above(queue):
                yield QUEUE, above

    # How much everybody has

    def _sample_steps(self) -> Steps[None]:
        """Records amounts, one queue or quota between two pauses, and forgets who has been gone for a day."""
        cluster, waiting = self._store.cluster, Counter[Name]()
        by_names = yield from waiting_steps(cluster)
        for (queue, namespace), number in by_names.items():
            for name in self._concerned(namespace, queue):
                waiting[name] += number
            yield
        for namespace, quota, account in list(cluster.ledger.quotas()):
            name = (QUOTA, namespace)
            self._seen(name, quota.name)
            for resource in sorted({**quota.min, **quota.max})[:RESOURCES]:
                self._put(name, (USED, resource), account.used.get(resource, 0))
                self._bound(name, (MIN, resource), quota.min.get(resource))
                self._bound(name, (MAX, resource), quota.max.get(resource))
            self._put(name, (WAITING, ""), waiting[name])
            yield
        for queue in list(cluster.queues):
            if queue in cluster.queues:
                self._sample_queue(queue, waiting[QUEUE, queue])
            yield
        for name, each in list(self.recorded.items()):
            if each.seen <= self.minute - MINUTES:
                self._drop(name)
        self.sampled = True

    def _sample_queue(self, queue: str, waiting: int) -> None:
        cluster, name = self._store.cluster, (QUEUE, queue)
        ledger, node = cluster.ledger.queues, cluster.ledger.queues.node(queue)
        used, wanted = allocated(cluster, queue), shown(cluster, ledger.requested(queue))
        capability, division = queue_rules.capability_of(node), node.division
        self._seen(name, queue)
        for resource in sorted({**division.deserved, **used, **wanted})[:RESOURCES]:
            self._put(name, (USED, resource), used.get(resource, 0))
            self._put(name, (DESERVED, resource), division.deserved.get(resource, 0))
            most = queue_rules.bound(ledger, node, resource) if division.known else capability.get(resource)
            self._bound(name, (MAX, resource), most)
            self._bound(name, (MIN, resource), division.guarantee.get(resource))
        self._put(name, (WAITING, ""), waiting)

    def _seen(self, name: Name, title: str) -> None:
        each = self.recorded.setdefault(name, Recorded(self.minute))
        each.seen, each.title = self.minute, title

    def _put(self, name: Name, figure: Figure, value: int) -> None:
        row = self._row(name, figure)
        if row is not None:
            row[self.minute % MINUTES] = value

    def _bound(self, name: Name, figure: Figure, value: int | None) -> None:
        changes = self.recorded[name].bounds.get(figure)
        if changes is None:
            if value is None:
                return
            changes = self.recorded[name].bounds[figure] = deque(maxlen=CHANGES)
        if not changes or changes[-1][1] != value:
            changes.append((self.minute, value))

    def _row(self, name: Name, figure: Figure) -> Values | None:
        """Returns a row, a new one for what has happened for the first time; None if there is no room."""
        each = self.recorded.setdefault(name, Recorded(self.minute))
        row = each.rows.get(figure)
        if row is None:
            row = self.rows.take()
            if row is None and self._drop_gone():
                row = self.rows.take()
            if row is None:
                self.left_out = True
            else:
                each.rows[figure] = row
        return row

    def _drop_gone(self) -> bool:
        """Drops the queue or quota that has been gone for longest, if one is gone; returns whether that gave room."""
        gone = [name for name, each in self.recorded.items() if each.rows and each.seen < self.minute - 1]
        if not gone:
            return False
        self._drop(min(gone, key=lambda name: self.recorded[name].seen))
        return True

    def _drop(self, name: Name) -> None:
        for row in self.recorded.pop(name).rows.values():
            self.rows.give_back(row)


def bound_at(changes: Iterable[tuple[int, int | None]], minutes: Iterable[int]) -> list[int | None]:
    """Returns a bound at each of these minutes, in their order, given its changes."""
    left, value, found = deque(changes), None, list[int | None]()
    for minute in minutes:
        while left and left[0][0] <= minute:
            value = left.popleft()[1]
        found.append(value)
    return found
