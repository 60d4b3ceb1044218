"""Who uses what of which queue: an account per queue, a tenant per namespace in it, and the claims of each.

Like the ledger that it is a part of, it changes by differences, so that reading it costs nothing that grows with pods
or queues. What a queue deserves and a tenant is entitled to is computed beside it, now and then, and put in here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.objects.resources import Resources, add, count_names, is_extended, largest, replace_part, subtract
from policy.quota.changes import Touched
from policy.quota.queues import Columns, Division
from policy.quota.sizes import Waiting

if TYPE_CHECKING:
    from policy.quota.ledger import Entry
    from policy.quota.queues import Queue
    from policy.quota.shares import Rows

Listed = Callable[[str], bool]
"""Says of a resource whether there is anything of it to divide (QueueLedger.lists)."""
TAKING = frozenset({"assigned", "granted", "held"})
"""How a pod stands that takes something of its queue; a pod that stands otherwise waits."""


@dataclass(slots=True)
class Tenant:
    """What the pods of one namespace use of a queue, and what it is entitled to; ``waiting`` are those of ``pending``.

    ``taken`` by pods on nodes, admitted ones and those that room is held for; ``pending`` is requested by the waiting
    ones that have a chance, ``request`` by both. ``claim`` is what it is entitled to, has not taken, and has pods
    waiting for. ``weight`` is what it weighed when ``entitled`` was computed.
    """

    taken: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    request: dict[str, int] = field(default_factory=dict)
    waiting: Waiting = field(default_factory=Waiting)
    weight: int = 1
    claim: dict[str, int] = field(default_factory=dict)
    _entitled: Resources | None = field(default_factory=dict)
    _rows: Rows | None = None
    _at: int = 0

    @property
    def entitled(self) -> Resources:
        """What it is entitled to."""
        if self._entitled is None:
            assert self._rows is not None, "whoever was told something stands somewhere"  # noqa: S101
            self._entitled = self._rows.entitled(self._at)
        return self._entitled

    def stands_in(self, rows: Rows, at: int, weight: int) -> None:
        """What it will be entitled to by this weight will stand there."""
        self._rows, self._at, self.weight = rows, at, weight

    def told(self) -> None:
        """What it is entitled to has changed."""
        self._entitled = None

    def claims(self, listed: Listed) -> dict[str, int]:
        """What the claim has to be."""
        return _wanted(_unfilled(self.entitled, self.taken), self.pending, self.waiting, listed) if self.pending else {}

    @property
    def empty(self) -> bool:
        """Whether the namespace has no pods in the queue."""
        return not self.taken and not self.pending


@dataclass(slots=True)
class QueueAccount:
    """What the pods of one queue use, by namespace and together.

    ``held`` is the part of ``taken`` by pods that room is held for, ``running`` the part by pods on nodes, and
    ``pinned`` the part by pods that may not be evicted. ``waiting`` are those of ``pending``. ``in_flight`` is what may
    have been admitted before this process started.
    ``unbounded``: what it asks for is not seen, and taken to be all there is. ``stale``: the tenants' parts are to be
    computed anew; ``contended``: some of them got less than they request. ``rows`` are the tenants as they were then;
    ``unread`` names those that have changed since. ``lent`` is how much of it is lent, None if that was not asked for
    since it changed (see policy.quota.entitlement).
    """

    queue: Queue | None = None
    division: Division = field(default_factory=Division)
    taken: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    pinned: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    request: dict[str, int] = field(default_factory=dict)
    waiting: Waiting = field(default_factory=Waiting)
    in_flight: dict[str, int] = field(default_factory=dict)
    claim: dict[str, int] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    tenant_claims: dict[str, int] = field(default_factory=dict)
    unbounded: bool = False
    stale: bool = True
    contended: bool = True
    rows: Rows | None = None
    unread: set[str] = field(default_factory=set)
    lent: float | None = field(default=None, compare=False)

    def claims(self, listed: Listed) -> dict[str, int]:
        """What the claim has to be: what it deserves and has pods waiting for, and its guarantee in any case."""
        kept = _unfilled(self.division.guarantee, self.taken) if self.division.guarantee else {}
        if not self.pending and not self.unbounded:
            return kept
        unfilled = _unfilled(self.division.deserved, self.taken)
        wanted = unfilled if self.unbounded else _wanted(unfilled, self.pending, self.waiting, listed)
        return largest(wanted, kept) if kept else wanted


class QueueLedger:
    """Accounts by name of queue, and the sums over all queues that exist.

    ``available`` is what all queues share, ``listed`` the resources of which nodes have something, ``outside`` what
    pods use that are in no queue. ``over_deserved`` are the names of queues that have taken more than they deserve;
    ``pending`` is what pods wait for in all queues. ``stale``: what queues deserve is to be computed anew,
    ``unfinished``: it is being computed; ``columns``: how it was last. ``turned_away``: somebody was refused because it
    was not known yet. ``named`` says by how many queues a resource is named.
    """

    def __init__(self, touched: Touched) -> None:
        """Nobody uses anything. What changes is noted in ``touched``."""
        self._touched = touched
        self.accounts: dict[str, QueueAccount] = {}
        self.available: Resources = {}
        self.listed: frozenset[str] = frozenset()
        self.outside: dict[str, int] = {}
        self.taken: dict[str, int] = {}
        self.claims: dict[str, int] = {}
        self.pending: dict[str, int] = {}
        self.in_flight: dict[str, int] = {}
        self.over_deserved: set[str] = set()
        self.stale = self.unfinished = self.turned_away = False
        self.columns: Columns = {}
        self.named: dict[str, int] = {}

    def lists(self, resource: str) -> bool:
        """Whether there is anything of a resource to divide: nobody is refused for an extended one that no node lists.

        See NodeTable.lists; this is as it was when it was divided.
        """
        return resource in self.listed or not is_extended(resource)

    def see_listed(self, listed: frozenset[str]) -> None:
        """Nodes list these resources from now on."""
        if listed != self.listed:
            self.listed = listed
            for account in self.accounts.values():
                self.touch(account)
                self._compare(account)
                self._claim(account)
                for tenant in account.tenants.values():
                    self.claim_anew(account, tenant)

    def account(self, name: str) -> QueueAccount:
        """The queue's account, opened where there is none yet."""
        account = self.accounts.get(name)
        if account is None:
            account = self.accounts[name] = QueueAccount()
        return account

    def known(self, name: str) -> QueueAccount:
        """The queue's account; where nothing stands in it, an empty one that is not kept."""
        return self.accounts.get(name) or QueueAccount()

    def set_queue(self, name: str, queue: Queue | None) -> None:
        """A queue exists, has changed, or is gone: its pods are then in no queue, and stay."""
        account = self.account(name)
        if queue is None:
            self.set_division(account, Division())
        if (account.queue is None) != (queue is None):
            change = add if account.queue is None else subtract
            change(self.taken, account.taken)
            change(self.claims, account.claim)
            change(self.pending, account.pending)
            change(self.in_flight, account.in_flight)
            (subtract if account.queue is None else add)(self.outside, account.taken)
        count_names(self.named, _names_of(account.queue), _names_of(queue))
        account.queue = queue
        self.over_deserved.discard(name)
        self._compare(account)
        self._drop_if_unused(name, account)
        self.columns = {}
        self.stale = account.stale = True

    def set_division(self, account: QueueAccount, division: Division) -> bool:
        """What the queue gets from now on; whether that is something else than before."""
        if division == account.division:
            return False
        account.stale = account.stale or division.deserved != account.division.deserved
        account.division = division
        self.touch(account)
        self._compare(account)
        self._claim(account)
        return True

    def apply(self, entry: Entry, change: Callable[[dict[str, int], Resources], None]) -> None:
        """Adds what a pod stands for, or takes it out."""
        self.apply_to_sums(entry, change)
        if entry.queue and _asks(entry):
            account = self.accounts[entry.queue]
            if entry.kind in TAKING:
                self._compare(account)
            self._claim(account)
            self.claim_anew(account, account.tenants[entry.namespace])

    def apply_to_sums(self, entry: Entry, change: Callable[[dict[str, int], Resources], None]) -> None:
        """The same, without what follows for the claims of its queue and namespace, and whether they borrow."""
        if not entry.queue:
            if entry.kind in TAKING:
                change(self.outside, entry.request)
            return
        if not _asks(entry) and entry.kind != "in_flight":
            return
        account = self.account(entry.queue)
        if entry.kind == "in_flight":
            change(account.in_flight, entry.request)
            if account.queue is not None:
                change(self.in_flight, entry.request)
        if not _asks(entry):
            return
        tenant = account.tenants.get(entry.namespace)
        if tenant is None:
            tenant = account.tenants[entry.namespace] = Tenant()
        change(account.request, entry.request)
        change(tenant.request, entry.request)
        if entry.kind in TAKING:
            self._take(account, tenant, entry, change)
        else:
            _await(account, tenant, entry, change)
            if account.queue is not None:
                change(self.pending, entry.request)

    def _take(
        self,
        account: QueueAccount,
        tenant: Tenant,
        entry: Entry,
        change: Callable[[dict[str, int], Resources], None],
    ) -> None:
        change(account.taken, entry.request)
        change(tenant.taken, entry.request)
        change(self.outside if account.queue is None else self.taken, entry.request)
        if entry.pinned:
            change(account.pinned, entry.request)
        if entry.kind == "assigned":
            change(account.running, entry.request)
        elif entry.kind == "held":
            change(account.held, entry.request)

    def _compare(self, account: QueueAccount) -> None:
        """Notes whether a queue has more than it deserves of something."""
        account.lent = None
        if account.queue is not None:
            deserved = account.division.deserved
            for resource, amount in account.taken.items():
                if amount > deserved.get(resource, 0) and self.lists(resource):
                    self.over_deserved.add(account.queue.name)
                    return
            self.over_deserved.discard(account.queue.name)

    def note(self, before: Entry | None, after: Entry | None) -> bool:
        """A pod stands differently from now on (not only to look at the rest): notes what is stale by that.

        Whether some other pod may be admitted after it that was not before.
        """
        for entry in (before, after):
            if entry is not None:
                self._touched.note(entry.namespace, entry.queue)
        if _asks(before) != _asks(after):
            self.stale = True
            for entry in (before, after):
                if entry is not None and (account := self.accounts.get(entry.queue)) is not None:
                    account.stale = True
        for entry in (before, after):
            if entry is not None and (account := self.accounts.get(entry.queue)) is not None:
                account.unread.add(entry.namespace)
                self.stale = self.stale or account.queue is None  # what it takes is taken off what the others share
        if before is not None:
            self.drop_if_empty(before)
        return before is not None and bool(before.queue) and _weight(after) < _weight(before)

    def touch(self, account: QueueAccount) -> None:
        """Notes that something about a queue, if there is one, is different."""
        if account.queue is not None:
            self._touched.note(queue=account.queue.name)

    def drop_if_empty(self, entry: Entry) -> None:
        """A pod does not stand there any more: its queue and namespace need no account if nobody else does."""
        account = self.accounts.get(entry.queue)
        if account is None:
            return
        tenant = account.tenants.get(entry.namespace)
        if tenant is not None and tenant.empty:
            self.claim_anew(account, tenant)
            del account.tenants[entry.namespace]
        self._drop_if_unused(entry.queue, account)

    def _drop_if_unused(self, name: str, account: QueueAccount) -> None:
        if account.queue is None and not account.tenants and not account.in_flight:
            del self.accounts[name]

    def _claim(self, account: QueueAccount) -> None:
        """Puts the claim right."""
        claims = account.claims(self.lists)
        if account.queue is not None:
            replace_part(self.claims, account.claim, claims)
        account.claim = claims

    def claim_anew(self, account: QueueAccount, tenant: Tenant) -> None:
        """Puts the claim of a tenant right."""
        claims = tenant.claims(self.lists)
        replace_part(account.tenant_claims, tenant.claim, claims)
        tenant.claim = claims


def _names_of(queue: Queue | None) -> Resources:
    """The resources that a queue names, whatever it says of them."""
    return {**queue.capability, **queue.guarantee} if queue is not None else {}


def _await(
    account: QueueAccount, tenant: Tenant, entry: Entry, change: Callable[[dict[str, int], Resources], None]
) -> None:
    change(account.pending, entry.request)
    change(tenant.pending, entry.request)
    for waiting in (account.waiting, tenant.waiting):
        waiting.change(entry.of_one, entry.number if change is add else -entry.number)


def _unfilled(bound: Resources, taken: Resources) -> dict[str, int]:
    """By resource what is left of a bound; resources of which nothing is left are left out."""
    return {resource: left for resource, most in bound.items() if (left := most - taken.get(resource, 0)) > 0}


def _wanted(unfilled: Resources, pending: Resources, waiting: Waiting, listed: Listed) -> dict[str, int]:
    """What of an unfilled part waiting pods could use: nothing, if none of them fits into it.

    Else fractions of a pod that every queue is left with, or what is left of one resource where another is used up,
    would keep whole pods of room idle. Of what no node lists there is enough for all, for all we know.
    """
    if not waiting.any_fits(unfilled):
        enough = {resource: amount for resource, amount in pending.items() if not listed(resource)}
        if not enough or not waiting.any_fits({**unfilled, **enough}):
            return {}
    return {
        resource: min(left, pending[resource])
        for resource, left in unfilled.items()
        if resource in pending and left >= waiting.smallest(resource)
    }


def _asks(entry: Entry | None) -> tuple[str, str, Resources] | None:
    """What a pod asks of which queue, be it taken already or not: admitting it changes nobody's part."""
    if entry is None or not (entry.kind in TAKING or (entry.claims and entry.queue)):
        return None
    return entry.queue, entry.namespace, entry.request


def _weight(entry: Entry | None) -> int:
    """How much a pod keeps from others, in steps: what it has taken, what it claims, nothing."""
    if entry is None:
        return 0
    return 2 if entry.kind in TAKING else 1 if entry.claims else 0
