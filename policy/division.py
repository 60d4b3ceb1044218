"""Dividing the cluster: what queues deserve of it, and then what namespaces are entitled to of that.

Work that grows with queues and namespaces, and so is never done where the scheduler waits; it can pause in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy import queues, quota_manager, shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policy.cluster import Cluster
    from policy.resources import Resources

BATCH = 100
"""Queues whose namespaces are looked at together, before it pauses."""


def divide(cluster: Cluster) -> Iterator[None]:
    """Brings everything up to date; to be used up, and in between others may do their work.

    What is left in the middle is done anew.
    """
    ledger = cluster.ledger.queues
    ledger.stale = False
    try:
        yield from _divide(cluster)
    except BaseException:
        ledger.stale = True
        for account in ledger.accounts.values():
            account.stale, account.rows = True, None
            for tenant in account.tenants.values():
                ledger.claim_anew(account, tenant)
        raise


def _divide(cluster: Cluster) -> Iterator[None]:
    ledger = cluster.ledger.queues
    capacity = cluster.table.capacity()
    pool = cluster.ledger.pool
    available = {r: max(0, amount - ledger.outside.get(r, 0)) for r, amount in capacity.items()}
    if capacity != pool.capacity:
        pool.capacity = capacity
        cluster.ledger.eased += 1
    if available != ledger.available:
        ledger.available = available
        cluster.ledger.eased += 1
        for account in ledger.accounts.values():
            account.stale = account.stale or account.contended  # shares of what there is matter only where some lack it
    known = ledger.columns = dict(ledger.columns)
    divisions = yield from queues.divisions(available, cluster.queues, _requests(cluster), known)
    if ledger.columns is not known:
        return  # in a pause a queue has changed, and all is to be done anew, or it was
    for name, division in divisions.items():
        cluster.ledger.eased += ledger.set_division(ledger.account(name), division)
    yield
    stale = [account for account in ledger.accounts.values() if account.queue is not None and account.stale]
    for start in range(0, len(stale), BATCH):
        weights = cluster.membership.weight_by_namespace()  # anew: it may have changed in a pause
        cluster.ledger.eased += shares.entitle(ledger, stale[start : start + BATCH], weights)
        yield


def _requests(cluster: Cluster) -> dict[str, Resources]:
    ledger = cluster.ledger.queues
    requests: dict[str, Resources] = {name: ledger.account(name).request for name in cluster.queues}
    if cluster.rules.quota_manager:
        for name, asked in quota_manager.demands(cluster, requests):
            ledger.account(name).unbounded = asked is not requests[name]
            requests[name] = asked
    return requests
