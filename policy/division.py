"""Dividing the cluster: what queues deserve of it, and then what namespaces are entitled to of that.

Work that grows with queues and namespaces, and so is never done where the scheduler waits; it can pause in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy import fair_share, queues, quota_manager
from policy.fair_share import Demand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policy.cluster import Cluster
    from policy.queue_ledger import QueueAccount
    from policy.resources import Resources

BATCH = 100
"""Queues whose namespaces are looked at together, before it pauses."""


def divide(cluster: Cluster) -> Iterator[None]:
    """Brings everything up to date; to be used up, and in between others may do their work."""
    ledger = cluster.ledger.queues
    ledger.stale = False
    capacity = cluster.table.capacity()
    available = {r: max(0, amount - ledger.outside.get(r, 0)) for r, amount in capacity.items()}
    if available != ledger.available:
        ledger.available = available
        cluster.ledger.eased += 1
        for account in ledger.accounts.values():
            account.stale = account.stale or account.contended  # shares of what there is matter only where some lack it
    divisions = yield from queues.divisions(available, cluster.queues, _requests(cluster))
    for name, division in divisions.items():
        cluster.ledger.eased += ledger.set_division(ledger.account(name), division)
    yield
    weights = cluster.membership.weight_by_namespace()
    stale = [account for account in ledger.accounts.values() if account.queue is not None and account.stale]
    for start in range(0, len(stale), BATCH):
        _entitle(cluster, stale[start : start + BATCH], weights)
        yield


def _requests(cluster: Cluster) -> dict[str, Resources]:
    ledger = cluster.ledger.queues
    requests: dict[str, Resources] = {name: ledger.account(name).request for name in cluster.queues}
    if cluster.rules.quota_manager:
        for name, asked in quota_manager.demands(cluster, requests):
            ledger.account(name).unbounded = asked is not requests[name]
            requests[name] = asked
    return requests


def _entitle(cluster: Cluster, accounts: list[QueueAccount], weights: dict[str, int]) -> None:
    ledger = cluster.ledger.queues
    demands = []
    for account in accounts:
        account.stale = False
        deserved, wanted = account.division.deserved, {name: each.request for name, each in account.tenants.items()}
        demands.append(Demand(deserved, wanted, weights))
    for account, parts in zip(accounts, fair_share.entitlements(ledger.available, demands), strict=True):
        ledger.touch(account)
        account.contended = any(entitled is not account.tenants[name].request for name, entitled in parts.items())
        for name, entitled in parts.items():
            tenant = account.tenants[name]
            tenant.weight = weights.get(name, 1)
            cluster.ledger.eased += ledger.set_entitled(account, tenant, entitled)
