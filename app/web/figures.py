"""The figures on the page of quotas, queues and the cluster: plain numbers that can be compared with earlier ones."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import allocated, shown
from policy.explain.terminating import conditions_of_queue, conditions_of_quota
from policy.objects.conditions import Condition
from policy.objects.queue import ROOT
from policy.objects.resources import Resources
from policy.quota import elastic_quota, fair_share, queue_rules
from policy.quota.elastic_quota import ElasticQuota
from policy.quota.queue_account import Tenant

NAMED = 8
"""Maximum number of lenders and borrowers of a resource that are named."""
TENANTS = 50
"""Maximum number of namespaces of a queue that are shown."""
MEANINGS = {
    "request": "asked for by the pod",
    "used": "used under its quota",
    "max": "most that its quota allows",
    "min": "guaranteed by its quota",
    "poolUsed": "used under all quotas",
    "poolMin": "guaranteed by all quotas: as much can be lent and used in all",
    "poolAhead": "kept for pods that go first, of all quotas",
    "claimedByOthers": "left of other quotas' min, and waited for",
    "poolCapacity": "what nodes have for pods under quotas",
    "ahead": "kept for pods that go first, of its own quota",
    "allocated": "used in its queue",
    "deserved": "deserved by its queue",
    "realCapability": "most that its queue can have",
    "guarantee": "guaranteed to its queue",
    "total": "shared by all queues",
    "allocatedInAllQueues": "used in all queues",
    "claimedByOtherQueues": "deserved by other queues, and waited for",
    "allocatedInNamespace": "used by its namespace in the queue",
    "entitled": "its namespace's share of the queue",
    "claimedByOtherNamespaces": "other namespaces' shares of the queue, and waited for",
    "minimum": "members that its group starts with",
    "ready": "members that run or may start",
    "pending": "members that wait",
}
"""Meanings of the figures of an explanation."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One resource, in amounts: what is used, what its owner is sure of, and the limit.

    ``own`` is None if nothing is lent, so that nothing can be borrowed; ``most`` is None if there is no limit. ``kept``
    is the part of ``own`` that nobody may borrow; ``wanted`` is the request of all pods, running or waiting.
    """

    resource: str
    used: int
    own: int | None = None
    most: int | None = None
    kept: int = 0
    wanted: int | None = None

    @property
    def borrowed(self) -> int:
        """The amount used beyond ``own``."""
        return 0 if self.own is None else max(0, self.used - self.own)

    @property
    def full(self) -> bool:
        """Whether even the smallest pod gets nothing more."""
        return self.most is not None and self.used >= self.most > 0

    @property
    def beyond(self) -> int:
        """The amount used beyond the limit, which was lowered, or which pods that no rule had admitted pass."""
        return 0 if self.most is None else max(0, self.used - self.most)

    @property
    def scarcity(self) -> float:
        """How much is used or asked for, as a part of the limit, or else of what its owner is sure of."""
        bound = self.own if self.most is None else self.most
        return max(self.used, self.wanted or 0) / bound if bound else float(self.used > 0)

    @property
    def scale(self) -> int:
        """The amount that the full width stands for.

        A queue's limit is often the whole cluster; what is used, asked for and its own would be a sliver of that.
        """
        open_end = (max(self.used, self.own or 0, self.wanted or 0) * 5 + 3) // 4
        if self.most is None or (self.wanted is not None and self.most > open_end > 0):
            return max(1, open_end)
        return max(1, self.most, self.used, self.own or 0)


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """An elastic quota. One that is not in force shows its spec, and uses and lends nothing."""

    namespace: str
    name: str
    in_force: bool
    bars: tuple[Bar, ...]
    waiting: int
    conditions: tuple[Condition, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which it can be found."""
        return self.namespace, self.name

    @property
    def states(self) -> tuple[str, ...]:
        """The states by which it can be filtered."""
        return _states(self.bars, self.waiting, self.conditions)


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A namespace of a queue; ``share`` is the largest part of any one resource that it uses."""

    namespace: str
    weight: int
    share: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue with its namespaces; ``unnamed`` counts the namespaces that are not listed.

    ``above`` are the queues above it from the root down, ``children`` those right below it.
    """

    name: str
    state: str
    weight: int
    priority: int
    reclaimable: bool
    above: tuple[str, ...]
    children: tuple[str, ...]
    bars: tuple[Bar, ...]
    tenants: tuple[TenantRow, ...]
    unnamed: int
    waiting: int
    conditions: tuple[Condition, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which it can be found."""
        return self.name, *self.above, *(tenant.namespace for tenant in self.tenants)

    @property
    def states(self) -> tuple[str, ...]:
        """The states by which it can be filtered."""
        return _states(self.bars, self.waiting, self.conditions)


@dataclass(frozen=True, slots=True)
class Loan:
    """One resource, its lenders, who leave part of theirs unused, and its borrowers, the largest first.

    Nobody borrows from a particular lender: all that is unused is one pool.
    """

    resource: str
    unused: int
    borrowed: int
    lenders: tuple[tuple[str, int], ...]
    borrowers: tuple[tuple[str, int], ...]
    unnamed_lenders: int
    unnamed_borrowers: int


class Ranking:
    """Amounts by name: their sum, and the largest, kept in order while single amounts change."""

    def __init__(self) -> None:
        """Starts empty."""
        self.total = 0
        self._ordered: list[tuple[int, str]] = []

    def __len__(self) -> int:
        """Returns the number of names."""
        return len(self._ordered)

    def add(self, name: str, amount: int) -> None:
        """Adds a name. A name that is there must be removed first."""
        self.total += amount
        insort(self._ordered, (-amount, name))

    def remove(self, name: str, amount: int) -> None:
        """Removes a name that has this amount."""
        self.total -= amount
        del self._ordered[bisect_left(self._ordered, (-amount, name))]

    def largest(self) -> tuple[tuple[str, int], ...]:
        """Returns the largest amounts with their names."""
        return tuple((name, -amount) for amount, name in self._ordered[:NAMED])


class Loans:
    """Sums up the bars of quotas or queues, and is updated for each that changes."""

    def __init__(self) -> None:
        """Starts empty."""
        self._lenders: defaultdict[str, Ranking] = defaultdict(Ranking)
        self._borrowers: defaultdict[str, Ranking] = defaultdict(Ranking)
        self._bars: dict[str, tuple[Bar, ...]] = {}

    @property
    def names(self) -> Collection[str]:
        """Names that have bars."""
        return self._bars.keys()

    def put(self, name: str, bars: tuple[Bar, ...]) -> None:
        """Sets the bars of a quota or queue; no bars remove it."""
        for bar in self._bars.pop(name, ()):
            for rankings, amount in self._parts(bar):
                rankings[bar.resource].remove(name, amount)
                if not len(rankings[bar.resource]):
                    del rankings[bar.resource]
        if bars:
            self._bars[name] = bars
        for bar in bars:
            for rankings, amount in self._parts(bar):
                rankings[bar.resource].add(name, amount)

    def result(self) -> tuple[Loan, ...]:
        """Returns the resources of which somebody has borrowed."""
        return tuple(self._loan(resource) for resource in sorted(self._borrowers))

    def _parts(self, bar: Bar) -> Iterator[tuple[defaultdict[str, Ranking], int]]:
        if bar.own is None:
            return
        if bar.borrowed:
            yield self._borrowers, bar.borrowed
        elif bar.own > bar.used:
            yield self._lenders, bar.own - bar.used

    def _loan(self, resource: str) -> Loan:
        lenders, borrowers = self._lenders.get(resource, Ranking()), self._borrowers[resource]
        return Loan(
            resource,
            unused=lenders.total,
            borrowed=borrowers.total,
            lenders=lenders.largest(),
            borrowers=borrowers.largest(),
            unnamed_lenders=max(0, len(lenders) - NAMED),
            unnamed_borrowers=max(0, len(borrowers) - NAMED),
        )


def quota_rows(cluster: Cluster, namespace: str, waiting: int) -> Iterator[QuotaRow]:
    """Yields the elastic quotas of a namespace, of which ``waiting`` pods wait for a node."""
    quotas = cluster.quotas.get(namespace, {})
    governing = elastic_quota.in_force(quotas.values())
    for _, quota in sorted(quotas.items()):
        in_force = quota is governing
        used = cluster.ledger.account(namespace).used if in_force else {}
        bars = _quota_bars(quota, used, cluster.ledger.pool.min)
        conditions = tuple(conditions_of_quota(cluster, quota, governing)) if governing else ()
        yield QuotaRow(namespace, quota.name, in_force, bars, waiting if in_force else 0, conditions)


def queue_row(cluster: Cluster, name: str, waiting: int) -> QueueRow:
    """Returns the row of a queue that exists, for which ``waiting`` pods wait."""
    queue, account = cluster.queues[name], cluster.ledger.queues.account(name)
    tree = cluster.ledger.queues.tree
    tenants = sorted(account.tenants)
    return QueueRow(
        name,
        queue.state,
        queue.weight,
        queue.priority,
        queue.reclaimable,
        tuple(reversed(list(tree.above(name)))),
        tuple(tree.children_of(name)) if name != ROOT else (),
        _queue_bars(cluster, name),
        tuple(tenant_row(cluster, each, account.tenants[each]) for each in tenants[:TENANTS]),
        max(0, len(tenants) - TENANTS),
        waiting,
        tuple(conditions_of_queue(cluster, queue.name)),
    )


def cluster_bars(cluster: Cluster) -> tuple[Bar, ...]:
    """Returns the allocatable amounts of all nodes, and the requests of the pods on them."""
    return tuple(
        Bar(resource, requested, most=allocatable)
        for resource, (allocatable, requested) in sorted(cluster.table.totals().items())
        if allocatable
    )


def _quota_bars(quota: ElasticQuota, used: Resources, lent: Resources) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            resource,
            used.get(resource, 0),
            own=quota.min.get(resource, 0) if resource in lent else None,
            most=quota.max.get(resource),
        )
        for resource in sorted({**quota.min, **quota.max})
    )


def _queue_bars(cluster: Cluster, name: str) -> tuple[Bar, ...]:
    """Returns the bars of a queue with all below it.

    A resource that no node lists is not divided, so none of it is borrowed.
    """
    ledger, node = cluster.ledger.queues, cluster.ledger.queues.node(name)
    division, capability = node.division, queue_rules.capability_of(node)
    used, request = allocated(cluster, name), shown(cluster, ledger.requested(name))
    return tuple(
        Bar(
            resource,
            used.get(resource, 0),
            own=division.deserved.get(resource, 0) if ledger.lists(resource) else None,
            most=queue_rules.bound(ledger, node, resource) if division.known else capability.get(resource),
            kept=division.guarantee.get(resource, 0),
            wanted=request.get(resource, 0),
        )
        for resource in sorted({**division.deserved, **used, **request})
    )


def tenant_row(cluster: Cluster, namespace: str, tenant: Tenant) -> TenantRow:
    """Returns the row of a namespace of a queue."""
    bars = tuple(
        Bar(resource, tenant.taken.get(resource, 0), own=tenant.entitled.get(resource, 0))
        for resource in sorted({**tenant.entitled, **shown(cluster, tenant.taken)})
    )
    share = round(fair_share.share(tenant.taken, cluster.ledger.queues.available), 3)
    return TenantRow(namespace, tenant.weight, share, bars)


def _states(bars: tuple[Bar, ...], waiting: int, conditions: tuple[Condition, ...]) -> tuple[str, ...]:
    found = {
        "waiting": waiting > 0,
        "borrowing": any(bar.borrowed for bar in bars),
        "full": any(bar.full for bar in bars),
        "beyond": any(bar.beyond for bar in bars),
        "problem": bool(conditions),
    }
    return tuple(state for state, holds in found.items() if holds)
