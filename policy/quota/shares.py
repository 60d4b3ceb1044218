"""The namespaces of a queue as rows of numbers, kept between divisions, so that only changed ones are read again.

There may be ten thousand of them. Their fair shares and claims are computed for all at once. Only tenants whose share
has changed are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policy.objects.quantity import LARGEST
from policy.quota import fair_share
from policy.stepwise import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from policy.objects.resources import Resources
    from policy.quota.fair_share import Amounts
    from policy.quota.queue_account import QueueAccount, Tenant
    from policy.quota.queue_ledger import QueueLedger

WANTED, TAKEN, PENDING, SMALLEST, CLAIM, ENTITLED = range(6)
"""Kinds of numbers in the rows: fields of a tenant by name, and the smallest amount that one of its pods waits for."""
FEW = 50
"""Namespaces that are read between two pauses."""


@dataclass(slots=True)
class Rows:
    """A row for each namespace of a queue, by name. ``numbers`` are by kind, row and resource.

    It has only resources that nodes have: tenants make up names, and nobody gets anything of those. ``alike``: its
    waiting pods all request the same, or there are none.
    """

    resources: list[str]
    index: dict[str, int]
    tenants: list[Tenant]
    numbers: Amounts
    weights: NDArray[np.longdouble]
    alike: NDArray[np.bool_]

    def entitled(self, at: int) -> Resources:
        """Returns the fair share in a row, by resource name."""
        named = zip(self.resources, self.numbers[ENTITLED, at].tolist(), strict=True)
        return {resource: amount for resource, amount in named if amount}

    def read(self, at: int, tenant: Tenant, weight: int) -> None:
        """Reads one namespace again."""
        parts = tenant.request, tenant.taken, tenant.pending, tenant.waiting.smallest_of_all(), tenant.claim
        rows = [[part.get(resource, 0) for resource in self.resources] for part in (*parts, tenant.entitled)]
        try:
            self.numbers[:, at] = rows
        except OverflowError:
            self.numbers[:, at] = [[min(amount, LARGEST) for amount in row] for row in rows]
        self.tenants[at], self.weights[at], self.alike[at] = tenant, weight, tenant.waiting.alike
        tenant.stands_in(self, at, weight)


def read_steps(
    ledger: QueueLedger, accounts: Sequence[QueueAccount], weights: Callable[[], Mapping[str, int]]
) -> Steps[None]:
    """Reads the changed namespaces of these queues, in steps. ``entitle`` reads those that change in a pause.

    ``weights`` returns those of all namespaces; it is asked again after each pause, as they may have changed in it.
    """
    resources, known = _resources(ledger, accounts), weights()
    for account in accounts:
        rows = _rows(account, resources)
        for number, name in enumerate(list(account.unread), start=1):
            if account.rows is rows and name in account.unread and name in account.tenants:
                account.unread.discard(name)
                rows.read(rows.index[name], account.tenants[name], known.get(name, 1))
            if number % FEW == 0:
                yield
                known = weights()


def entitle(ledger: QueueLedger, accounts: Sequence[QueueAccount], weights: Mapping[str, int]) -> int:
    """Computes anew the fair shares of the namespaces of these queues; returns how many have changed."""
    for account in accounts:
        account.stale = False
        ledger.touch(account)
    accounts = [account for account in accounts if account.tenants]
    there = {resource: amount for resource, amount in ledger.available.items() if amount}
    resources = _resources(ledger, accounts)
    if not accounts or not resources:
        return 0
    found = [_read(account, resources, weights) for account in accounts]
    sizes = [len(rows.tenants) for rows in found]
    numbers = np.concatenate([rows.numbers for rows in found], axis=1)
    whose = np.repeat(np.arange(len(found)), sizes)
    deserved = np.array([[min(a.division.deserved.get(r, 0), LARGEST) for r in resources] for a in accounts], np.int64)
    whole = np.array([there.get(r, np.inf) for r in resources], np.longdouble)  # a resource that is gone: no shares
    parts = fair_share.divided(
        numbers[WANTED], deserved, whole, np.concatenate([rows.weights for rows in found]), whose
    )
    changed = (parts != numbers[ENTITLED]).any(axis=1)
    claims = _claims(parts, numbers)
    unsure = ~np.concatenate([rows.alike for rows in found])
    claims_change = changed & (unsure | (claims != numbers[CLAIM]).any(axis=1))
    short = (parts != numbers[WANTED]).any(axis=1)
    starts = np.cumsum([0, *sizes[:-1]])
    contended = np.logical_or.reduceat(short, starts).tolist()
    for account, rows, start, size, lacking in zip(accounts, found, starts.tolist(), sizes, contended, strict=True):
        own = slice(start, start + size)
        account.contended = lacking
        rows.numbers[ENTITLED], rows.numbers[CLAIM] = parts[own], claims[own]
        for tenant in compress(rows.tenants, changed[own].tolist()):
            tenant.told()
        for name, differs in zip(rows.index, claims_change[own].tolist(), strict=True):
            if differs:
                ledger.claim_anew(account, account.tenants[name])
    return int(changed.sum())


def _entitled_to(accounts: Sequence[QueueAccount], there: set[str]) -> set[str]:
    """Returns resources that some tenant was entitled to, if not only those there: their last node may be gone."""
    known = [each.rows for each in accounts if each.rows is not None and not there.issuperset(each.rows.resources)]
    return {each for rows in known for each in compress(rows.resources, rows.numbers[ENTITLED].any(axis=0).tolist())}


def _resources(ledger: QueueLedger, accounts: Sequence[QueueAccount]) -> list[str]:
    """Returns the resources that nodes have, and those that tenants of these queues were entitled to."""
    there = {resource for resource, amount in ledger.available.items() if amount}
    return sorted(there | _entitled_to(accounts, there))


def _read(account: QueueAccount, resources: list[str], weights: Mapping[str, int]) -> Rows:
    """Returns the rows of a queue as its namespaces are now."""
    rows = _rows(account, resources)
    for name in account.unread:
        rows.read(rows.index[name], account.tenants[name], weights.get(name, 1))
    account.unread = set()
    return rows


def _rows(account: QueueAccount, resources: list[str]) -> Rows:
    """Returns the rows of a queue, with one for each of its namespaces. Those that are unread are still to be read."""
    rows, tenants = account.rows, account.tenants
    if rows is None or rows.resources != resources or account.unread - (rows.index.keys() & tenants.keys()):
        names = sorted(tenants)
        numbers = np.zeros((6, len(names), len(resources)), np.int64)
        rows = Rows(
            resources,
            {name: at for at, name in enumerate(names)},
            [tenants[name] for name in names],
            numbers,
            np.ones(len(names), np.longdouble),
            np.ones(len(names), np.bool_),
        )
        account.rows, account.unread = rows, set(names)
    return rows


def _claims(entitled: Amounts, numbers: Amounts) -> Amounts:
    """Returns the claims of tenants whose waiting pods are all alike (see Tenant.claims). Other rows mean nothing.

    A tenant that asks for what no node has claims nothing, whatever stands here. Once a node has it, all is read again.
    """
    unfilled, waits = np.maximum(entitled - numbers[TAKEN], 0), numbers[PENDING] > 0
    enough = unfilled >= numbers[SMALLEST]
    fits = waits.any(axis=1) & (enough | ~waits).all(axis=1)
    return np.where(fits[:, None] & waits, np.minimum(unfilled, numbers[PENDING]), 0)
