"""Namespaces within a queue: what each is entitled to of what the queue deserves, and whom that admits.

Seed: namespace fair share. Weighted dominant-resource fairness: all namespaces rise together, in the proportions of
their requests and as fast as their weights say, measured by their dominant share; a resource that is used up stops
those who want more of it in that resource alone. So for each resource the namespaces share by weighted max-min, where
one weighs as much as its weight times what it asks of the resource per dominant share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.resources import Resources, total
from policy.verdict import Refusal, Remedy
from policy.water_level import Bid, divide

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policy.pod import Pod
    from policy.queue_ledger import QueueAccount, QueueLedger, Tenant

FAIR_SHARE = "namespace-fair-share"
TEXT = "Namespace fair share exceeded"
PRECISION = 20  # bits: a weight that is a fraction is counted in these parts


def entitlements(
    deserved: Resources, available: Resources, requests: Mapping[str, Resources], weights: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """What each namespace is entitled to of what its queue deserves: nothing that it does not request.

    ``available`` is what shares are shares of; a namespace without a weight has weight 1.
    """
    names = sorted(requests)
    entitled: dict[str, dict[str, int]] = {name: {} for name in names}
    dominant: dict[str, tuple[int, int]] | None = None
    for resource, wanted in total(requests.values()).items():
        amount = deserved.get(resource, 0)
        if wanted <= amount:  # enough for all
            for name in names:
                if asked := requests[name].get(resource, 0):
                    entitled[name][resource] = asked
            continue
        if dominant is None:
            dominant = {name: _dominant(requests[name], available) for name in names}
        bids = []
        for name in names:
            asked, there = dominant[name]
            most = requests[name].get(resource, 0)
            weight = (weights.get(name, 1) * most * there << PRECISION) // asked
            bids.append(Bid(max(1, weight), 0, most))
        for name, share in zip(names, divide(amount, bids), strict=True):
            if share:
                entitled[name][resource] = share
    return entitled


def _dominant(request: Resources, available: Resources) -> tuple[int, int]:
    """The dominant share of a request, as a fraction: what is asked of the resource, and what there is of it."""
    best = 1, 1
    for index, (resource, asked) in enumerate(request.items()):
        there = max(1, available.get(resource, 0))
        if index == 0 or asked * best[1] > best[0] * there:
            best = max(1, asked), there
    return best


def share(taken: Resources, available: Resources) -> float:
    """The dominant share of what a namespace has taken: the largest part of any one resource."""
    return max((amount / available[r] for r, amount in taken.items() if available.get(r, 0) > 0), default=0.0)


def room(ledger: QueueLedger, account: QueueAccount, resource: str) -> int:
    """What the namespaces of a queue may take together: what it deserves, or more where nobody else has a claim."""
    elsewhere = ledger.taken.get(resource, 0) - account.taken.get(resource, 0)
    claimed = ledger.claims.get(resource, 0) - account.claim.get(resource, 0)
    unclaimed = ledger.available.get(resource, 0) - elsewhere - claimed
    return max(account.division.deserved.get(resource, 0), unclaimed)


def refusal(
    ledger: QueueLedger, queue: str, namespace: str, request: Resources, *, with_in_flight: bool = False
) -> Refusal | None:
    """Why a pod's share of its queue refuses it, or None. The pod itself must not stand in the ledger.

    A namespace may go past what it is entitled to as far as what the others are entitled to still fits.
    """
    account = ledger.accounts.get(queue)
    if account is None or (len(account.tenants) == 1 and namespace in account.tenants):
        return None
    tenant = account.tenants.get(namespace)
    exceeded = []
    for resource, asked in request.items():
        mine = tenant.taken.get(resource, 0) + asked if tenant else asked
        if tenant and mine <= tenant.entitled.get(resource, 0):
            continue
        others = account.tenant_claims.get(resource, 0) - (tenant.claim.get(resource, 0) if tenant else 0)
        together = account.taken.get(resource, 0) + asked + others
        if with_in_flight:
            together += account.in_flight.get(resource, 0)
        if together > room(ledger, account, resource):
            exceeded.append(resource)
    return Refusal(FAIR_SHARE, TEXT, tuple(sorted(exceeded))) if exceeded else None


def is_entitled(tenant: Tenant | None, request: Resources) -> bool:
    """Whether a pod with this request would leave its namespace within what it is entitled to."""
    return tenant is not None and all(
        tenant.taken.get(r, 0) + asked <= tenant.entitled.get(r, 0) for r, asked in request.items()
    )


def numbers(ledger: QueueLedger, queue: str, namespace: str, request: Resources) -> dict[str, dict[str, int]]:
    """By resource of the request, what the rule compares; empty for a namespace that is alone in its queue."""
    account = ledger.accounts.get(queue)
    if account is None or set(account.tenants) <= {namespace}:
        return {}
    tenant = account.tenants.get(namespace)
    return {
        r: {
            "allocatedInNamespace": tenant.taken.get(r, 0) if tenant else 0,
            "entitled": tenant.entitled.get(r, 0) if tenant else 0,
            "claimedByOtherNamespaces": account.tenant_claims.get(r, 0) - (tenant.claim.get(r, 0) if tenant else 0),
        }
        for r in sorted(request)
    }


def remedies(ledger: QueueLedger, queue: str, pod: Pod, refused: Refusal) -> tuple[Remedy, ...]:
    """What would let a refused pod in, as far as its namespace's share is concerned."""
    account = ledger.accounts[queue]
    found = []
    for resource in refused.resources:
        waiting = sorted(
            name for name, tenant in account.tenants.items() if name != pod.namespace and tenant.claim.get(resource)
        )
        whose = f" (entitled and waiting: {', '.join(waiting)})" if waiting else ""
        text = f"wait until pods of queue {queue} release {resource}{whose}, or raise the weight of the namespace"
        found.append(Remedy(text, f"Namespace {pod.namespace}", "volcano.sh/namespace.weight"))
    return tuple(found)
