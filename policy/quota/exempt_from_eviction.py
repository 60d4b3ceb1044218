"""Pods that nobody may evict, whatever they use: critical ones, and those that may opt out of being evicted."""

from policy.objects.pod import Pod
from policy.quota import exempt
from policy.quota.ledger import Ledger

SYSTEM_OWNERS = frozenset({"DaemonSet", "Node"})


def exempt_from_eviction(ledger: Ledger, victim: Pod) -> bool:
    """Whether a pod may never be evicted for another, whatever is lent to it. True also while it is being deleted."""
    if not victim.assigned or victim.terminating or victim.owner in SYSTEM_OWNERS or exempt.is_critical(victim):
        return True
    return not victim.preemptible and _may_opt_out(ledger, victim)


def _may_opt_out(ledger: Ledger, victim: Pod) -> bool:
    """Whether pods that may not be evicted stay within their namespace's min, and within what their queue deserves.

    Each bound protects only what it gives: a quota that does not name a resource does not keep it from a queue that is
    owed it. A running pod can be annotated later; that does not make its own what it had borrowed by then.
    """
    return _is_within_min(ledger, victim) and _is_within_deserved(ledger, victim)


def _is_within_min(ledger: Ledger, victim: Pod) -> bool:
    """Whether the namespace's pods that may not be evicted stay within its min, in the resources that any min names."""
    account = ledger.accounts.get(victim.namespace)
    if account is None or account.quota is None:
        return True
    least = account.quota.min
    return all(account.pinned.get(r, 0) <= least.get(r, 0) for r in victim.request if r in ledger.pool.min)


def _is_within_deserved(ledger: Ledger, victim: Pod) -> bool:
    """Whether the queue's pods that may not be evicted stay within what it deserves; true where that is not known."""
    account = ledger.queues.accounts.get(ledger.queue_of(victim))
    if account is None or account.queue is None or not account.division.known:
        return True
    deserved, listed = account.division.deserved, ledger.queues.lists
    return all(account.pinned.get(r, 0) <= deserved.get(r, 0) for r in victim.request if listed(r))
