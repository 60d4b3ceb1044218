"""The usage of one queue, and of each namespace in it (a tenant), with what they claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.objects.resources import Resources, largest
from policy.quota.branches import Branch, unfilled_part
from policy.quota.proportion import Division
from policy.quota.sizes import WaitingRequests

if TYPE_CHECKING:
    from policy.objects.queue import Queue
    from policy.quota.shares import Rows

Listed = Callable[[str], bool]
"""Tells of a resource whether there is anything of it to divide (QueueLedger.lists)."""


@dataclass(slots=True)
class Tenant:
    """The usage of a queue by one namespace, and its fair share (``entitled``). ``waiting``: the pods of ``pending``.

    ``taken`` is requested by pods on nodes, admitted pods, and pods that room is held for. ``pending`` is requested by
    the waiting ones that can be placed, ``request`` by both. ``claim`` is the part of the fair share that it has not
    taken and has pods waiting for. ``weight`` is its weight when ``entitled`` was computed.
    """

    taken: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    request: dict[str, int] = field(default_factory=dict)
    waiting: WaitingRequests = field(default_factory=WaitingRequests)
    weight: int = 1
    claim: dict[str, int] = field(default_factory=dict)
    _entitled: Resources | None = field(default_factory=dict)
    _rows: Rows | None = None
    _at: int = 0

    @property
    def entitled(self) -> Resources:
        """Its fair share of the queue."""
        if self._entitled is None:
            assert self._rows is not None, "whoever was told something stands somewhere"  # noqa: S101
            self._entitled = self._rows.entitled(self._at)
        return self._entitled

    def stands_in(self, rows: Rows, at: int, weight: int) -> None:
        """Notes the row that will hold its fair share, and the weight that it is computed by."""
        self._rows, self._at, self.weight = rows, at, weight

    def told(self) -> None:
        """Notes that its fair share has changed."""
        self._entitled = None

    def claims(self, listed: Listed) -> dict[str, int]:
        """Returns what the claim has to be."""
        return (
            _wanted(unfilled_part(self.entitled, self.taken), self.pending, self.waiting, listed)
            if self.pending
            else {}
        )

    @property
    def empty(self) -> bool:
        """Whether the namespace has no pods in the queue."""
        return not self.taken and not self.pending


@dataclass(slots=True)
class QueueAccount:
    """The usage of one queue, by namespace and together, without the queues below it.

    ``parent`` is the branch that it counts in: of a queue with children its own. ``invalid`` says why it has no place
    in the tree, ``inner`` that it has children: no pod of its own is entitled to anything then. ``opened``: neither it
    nor a queue above it is closed. ``shut``: it exists and admits no pod, for one of these reasons.
    ``above`` are the branches above it without the root, ``counted`` the sums elsewhere that ``taken`` is a part of.
    ``over``: it has taken more than it deserves of some resource.

    ``held`` is the part of ``taken`` by pods that room is held for. ``running`` is the part by pods on nodes, and
    ``pinned`` the part by pods that may not be evicted. ``waiting`` are the pods of ``pending``. ``in_flight`` is what
    may have been admitted before this process started. ``unbounded``: its demand is not seen, and taken to be all there
    is. ``stale``: the tenants' parts have to be computed anew; ``contended``: some of them got less than they request.
    ``rows`` are the tenants as they were then; ``unread`` names those that have changed since. ``lent`` is how much of
    it is lent, None if nobody has asked since it changed (see policy.quota.entitlement).
    """

    queue: Queue | None = None
    parent: Branch | None = field(default=None, compare=False)
    invalid: str = ""
    inner: bool = False
    opened: bool = False
    shut: bool = False
    over: bool = False
    above: tuple[Branch, ...] = field(default=(), compare=False)
    counted: list[dict[str, int]] = field(default_factory=list, compare=False)
    division: Division = field(default_factory=Division)
    taken: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    pinned: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    request: dict[str, int] = field(default_factory=dict)
    waiting: WaitingRequests = field(default_factory=WaitingRequests)
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
        """Returns what the claim has to be: what it deserves and pods wait for, and its guarantee in any case."""
        kept = unfilled_part(self.division.guarantee, self.taken) if self.division.guarantee else {}
        if not self.pending and not self.unbounded:
            return kept
        unfilled = unfilled_part(self.division.deserved, self.taken)
        wanted = unfilled if self.unbounded else _wanted(unfilled, self.pending, self.waiting, listed)
        return largest(wanted, kept) if kept else wanted


def _wanted(unfilled: Resources, pending: Resources, waiting: WaitingRequests, listed: Listed) -> dict[str, int]:
    """Returns the part of an unfilled bound that waiting pods could use: nothing, if none of them fits into it.

    Without that check, whole pods of room would stay idle: for the fractions of a pod that every queue is left with, or
    for the rest of one resource where another is used up. Of a resource that no node lists there may be enough for all.
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
