"""Namespaces within a queue: how much each is entitled to of what the queue deserves, and which pods that admits.

Seed: namespace fair share. Weighted dominant-resource fairness: all namespaces rise together, in the proportions of
their requests and at the speed of their weights, measured by their dominant share. A resource that is used up stops
those that want more of it, in that resource alone. So for each resource the namespaces share by weighted max-min. There
a namespace weighs its weight times what it asks of the resource per dominant share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policy.objects.resources import Resources
from policy.objects.verdict import Hint, Refusal, all_of
from policy.quota import queue_rules
from policy.quota.queue_rules import Asking
from policy.quota.rule import QUEUE, Figures, Rule, Use

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policy.objects.pod import Pod
    from policy.quota.ledger import Ledger
    from policy.quota.queue_account import QueueAccount, Tenant
    from policy.quota.queue_ledger import QueueLedger

Amounts = NDArray[np.int64]
Reals = NDArray[np.longdouble]


def divided(wanted: Amounts, deserved: Amounts, there: Reals, weight: Reals, queue: NDArray[np.intp]) -> Amounts:
    """Returns the part of each row (a namespace) in each column (a resource).

    No row gets more than it wants. The rows of a queue together get all that it deserves and they want. ``there`` is
    the total that shares refer to. ``deserved`` has a row for each queue. ``queue`` has the queue's number of each row:
    it never falls from one row to the next. Rows of one queue stand in the order of names.
    """
    satisfied_at = np.maximum((wanted / there).max(axis=1), 1e-30) / weight  # the level at which it has all it wants
    order = np.lexsort((satisfied_at, queue))
    starts = np.flatnonzero(np.diff(queue, prepend=-1))
    rows = _Rows(order, starts, np.cumsum(np.diff(queue, prepend=-1) > 0) - 1)
    parts = wanted.copy()
    for column in range(wanted.shape[1]):
        _divide_column(parts[:, column], deserved[queue[starts], column], satisfied_at[order], rows)
    return parts


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows by queue, in each by the level that satisfies them: row numbers, starts of queues, and queue of each row."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    whose: NDArray[np.intp]


def _divide_column(part: Amounts, amount: Amounts, level: Reals, rows: _Rows) -> None:
    """Divides the amount of each queue: ``part`` holds what its rows want, and is set to what they get."""
    asked = part[rows.order]
    contended = np.add.reduceat(asked.astype(np.longdouble), rows.starts) > amount  # no integer could hold all that
    if not contended.any():
        return
    rate = asked / level  # how fast the part grows with the level
    growing = np.add.reduceat(rate, rows.starts)[rows.whose] - (_running(rate, rows) - rate)
    reached = _running(asked, rows) - asked + level * growing  # by all together, at the level that satisfies this one
    short = contended[rows.whose] & (reached > amount[rows.whose])
    left = amount - np.add.reduceat(np.where(short, 0, asked), rows.starts)
    while (misjudged := contended & ((left < 0) | ~np.logical_or.reduceat(short, rows.starts))).any():
        last = np.flatnonzero(misjudged[rows.whose] & ~short)  # a float called it satisfied too early
        last = last[np.r_[np.diff(rows.whose[last]) > 0, True]]
        short[last] = True
        left = amount - np.add.reduceat(np.where(short, 0, asked), rows.starts)
    rates = np.add.reduceat(np.where(short, rate, 0), rows.starts)[rows.whose]
    exact = np.where(short, left[rows.whose] * rate / np.maximum(rates, 1e-300), 0)
    whole = np.floor(np.minimum(exact, asked)).astype(np.int64)
    missing = left - np.add.reduceat(whole, rows.starts)
    at = np.flatnonzero(short)
    remainder = np.round((exact - whole)[at].astype(float), 6)
    at = at[np.lexsort((rows.order[at], -remainder, rows.whose[at]))]  # largest first, among equals by name
    rank = np.arange(len(at)) - np.searchsorted(rows.whose[at], rows.whose[at])
    whole[at[rank < missing[rows.whose[at]]]] += 1
    part[rows.order] = np.where(short, whole, asked)


def _running(values: NDArray[Any], rows: _Rows) -> NDArray[Any]:
    """Returns the running sum within each queue."""
    sums = np.cumsum(values)
    within: NDArray[Any] = sums - (sums - values)[rows.starts][rows.whose]
    return within


def share(taken: Resources, available: Resources) -> float:
    """Returns the dominant share of what a namespace has taken: the largest part of any one resource."""
    return max((amount / available[r] for r, amount in taken.items() if available.get(r, 0) > 0), default=0.0)


def over_share(asking: Asking) -> list[str] | None:
    """Returns the resources in which a namespace would exceed its share of a queue, though others have a claim to them.

    It may exceed its fair share as long as the fair shares of the others still fit.
    """
    account, namespace = asking.account, asking.namespace
    if len(account.tenants) == 1 and namespace in account.tenants:
        return None
    ledger, taken, tenant = asking.ledger, asking.taken(account), account.tenants.get(namespace)
    exceeded = []
    for resource, asked in asking.request.items():
        mine = tenant.taken.get(resource, 0) + asked if tenant else asked
        if tenant and mine <= tenant.entitled.get(resource, 0):
            continue
        others = account.tenant_claims.get(resource, 0) - (tenant.claim.get(resource, 0) if tenant else 0)
        together = taken.get(resource, 0) + asked + others
        if together > queue_rules.room(ledger, account, resource) and ledger.lists(resource):
            exceeded.append(resource)
    return exceeded or None


def refusal_to_move(ledger: QueueLedger, account: QueueAccount, namespace: str, request: Resources) -> Refusal | None:
    """Returns why its share of this queue refuses a pod that runs in another, or None. It must not be in the ledger.

    It may take everything but the resources that pods of other namespaces wait for within their fair shares, and that
    fit beside it.
    """
    tenant = account.tenants.get(namespace)
    exceeded = []
    for resource, asked in request.items():
        others = account.tenant_claims.get(resource, 0) - (tenant.claim.get(resource, 0) if tenant else 0)
        bound = queue_rules.room(ledger, account, resource)
        together = account.taken.get(resource, 0) + asked + others
        if others and together > bound and ledger.lists(resource) and not is_entitled(tenant, {resource: asked}):
            exceeded.append(resource)
    return RULE.refusal(exceeded) if exceeded else None


def is_entitled(tenant: Tenant | None, request: Resources) -> bool:
    """Whether a pod with this request would leave its namespace within its fair share."""
    return tenant is not None and all(
        tenant.taken.get(r, 0) + asked <= tenant.entitled.get(r, 0) for r, asked in request.items()
    )


def numbers(ledger: Ledger, pod: Pod) -> Figures:
    """Returns the figures that the rule compares, by requested resource; none for a namespace alone in its queue."""
    account = ledger.queues.known(ledger.queue_of(pod))
    if set(account.tenants) <= {pod.namespace}:
        return {}
    tenant = account.tenants.get(pod.namespace)
    return {
        r: {
            "allocatedInNamespace": tenant.taken.get(r, 0) if tenant else 0,
            "entitled": tenant.entitled.get(r, 0) if tenant else 0,
            "claimedByOtherNamespaces": account.tenant_claims.get(r, 0) - (tenant.claim.get(r, 0) if tenant else 0),
        }
        for r in sorted(pod.request)
    }


def users(ledger: Ledger, pod: Pod, resource: str) -> Iterator[Use]:
    """Yields the namespaces of the pod's queue, by their fair shares."""
    queue = ledger.queue_of(pod)
    for namespace, tenant in ledger.queues.known(queue).tenants.items():
        used, entitled = tenant.taken.get(resource, 0), tenant.entitled.get(resource, 0)
        yield Use("Namespace", namespace, used, entitled, (namespace,), queue)


def _to_wait_for_others(ledger: Ledger, pod: Pod, refused: Sequence[str], _asked: Resources) -> tuple[Hint, ...]:
    queue = ledger.queue_of(pod)
    tenants, found = ledger.queues.known(queue).tenants, []
    for resource in refused:
        waiting = sorted(
            name for name, tenant in tenants.items() if name != pod.namespace and tenant.claim.get(resource)
        )
        whose = f" (entitled and waiting: {', '.join(waiting)})" if waiting else ""
        text = f"wait until pods of queue {queue} release {resource}{whose}, or raise the weight of the namespace"
        found.append(Hint(text, f"Namespace {pod.namespace}", "volcano.sh/namespace.weight"))
    return all_of(found)


RULE: Rule[Asking] = Rule(
    "namespace-fair-share",
    "Namespace fair share exceeded",
    QUEUE,
    refuses=over_share,
    numbers=numbers,
    figures=("request", "allocatedInNamespace", "entitled", "deserved", "claimedByOtherNamespaces"),
    bound="entitled",
    users=users,
    hints=_to_wait_for_others,
)
