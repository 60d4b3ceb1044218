"""Divides the cluster: computes what queues deserve of it, and then what namespaces are entitled to of that.

The work grows with queues and namespaces, so it is not done while the scheduler waits. It can pause in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster import quota_manager
from policy.nodes.tolerations import ALL
from policy.objects.queue import ROOT
from policy.objects.verdict import Refusal
from policy.quota import fair_share, proportion, queue_rules, shares
from policy.quota.branches import way_up
from policy.quota.entry import TAKING
from policy.stepwise import Steps

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources
    from policy.quota.queue_account import QueueAccount
    from policy.quota.queue_ledger import QueueLedger

FEW = 50
"""The most queues, and the most namespaces in them, that are divided at once for an answer: in a millisecond."""
BATCH = 100
"""Queues whose namespaces are looked at between two pauses."""


def divide_steps(cluster: Cluster) -> Steps[None]:
    """Brings everything up to date. Iterate to the end; others may work in between.

    A division that is broken off is done anew.
    """
    ledger = cluster.ledger.queues
    ledger.as_of, ledger.unfinished = cluster.generations.shares, True
    try:
        yield from _divide_steps(cluster)
    except BaseException:
        cluster.generations.shares += 1
        for account in ledger.accounts.values():
            account.stale, account.rows = True, None
            for tenant in account.tenants.values():
                ledger.claim_anew(account, tenant)
        raise


def _divide_steps(cluster: Cluster) -> Steps[None]:
    ledger, generations = cluster.ledger.queues, cluster.generations
    ledger.see_listed(cluster.table.listed)
    capacity = {r: amount for r, amount in _capacity(cluster).items() if ledger.lists(r)}
    pool = cluster.ledger.pool
    for_quotas = {r: amount for r, amount in cluster.capacity.for_quotas.items() if ledger.lists(r)}
    available = {r: max(0, amount - ledger.outside.get(r, 0)) for r, amount in capacity.items()}
    if (root := cluster.queues.get(ROOT)) is not None:
        available = {r: min(amount, root.capability.get(r, amount)) for r, amount in available.items()}
    if for_quotas != pool.capacity:
        pool.capacity = for_quotas
        generations.admission += 1
    if available != ledger.available:
        ledger.available = available
        if cluster.queues:  # nothing else is divided
            generations.admission += 1
        for account in ledger.accounts.values():
            account.stale = account.stale or account.contended  # shares matter only where some lack resources
    known = ledger.columns = dict(ledger.columns)
    work = proportion.divisions_steps(available, cluster.queues, ledger.tree, _requests(cluster), known)
    divisions = yield from work
    if ledger.columns is not known:
        return  # a queue has changed in a pause: all is done anew, now or later
    for name, division in divisions.items():
        generations.admission += ledger.set_division(ledger.node(name), division)
    yield
    stale = [account for account in ledger.accounts.values() if account.queue is not None and account.stale]
    for start in range(0, len(stale), BATCH):
        some = [account for account in stale[start : start + BATCH] if account.tenants]
        yield from shares.read_steps(ledger, some, cluster.membership.weight_by_namespace)
        weights = cluster.membership.weight_by_namespace()  # read again: it may have changed in a pause
        generations.admission += shares.entitle(ledger, stale[start : start + BATCH], weights)
        yield
    generations.admission += ledger.turned_away
    ledger.unfinished = ledger.turned_away = False


def make_sure(cluster: Cluster, pod: Pod, queue: str) -> bool:
    """Whether it is known what queues deserve, as far as an answer for a pod depends on it.

    Computes it now if there are few queues. Call this only while nothing is merely assumed.
    """
    if is_sure(cluster, pod, queue):
        return True
    accounts = cluster.ledger.queues.accounts
    few = len(accounts) <= FEW and sum(len(each.tenants) for each in accounts.values()) <= FEW
    if few:
        _divide_at_once(cluster)
    return few


def is_sure(cluster: Cluster, pod: Pod, queue: str) -> bool:
    """Whether it is known what queues deserve, as far as it matters to a pod; computes only the part of a new queue.

    It matters if the pod would exceed the part known last, and there is not enough for all.
    """
    ledger = cluster.ledger.queues
    if not (ledger.stale or ledger.unfinished):
        return True
    account = ledger.accounts.get(queue)
    if account is None or account.queue is None:
        return True
    if not ledger.columns and not all(node.division.known for node in way_up(account)):  # a new queue has no part yet
        _divide_at_once(cluster)
        return True
    entry = cluster.ledger.entries.get(pod.uid)
    asked = dict.fromkeys(pod.request, 0) if entry is not None and entry.kind in TAKING else pod.request
    return _beyond(ledger, account, pod.namespace, asked) is None or _is_enough_for_all(ledger, account, pod.request)


def _divide_at_once(cluster: Cluster) -> None:
    for _ in divide_steps(cluster):
        pass


def refusal_until_known(ledger: QueueLedger, queue: str, namespace: str, request: Resources) -> Refusal | None:
    """Returns why a pod is refused while parts are not known: it would exceed the part that was known last."""
    refused = _beyond(ledger, ledger.accounts[queue], namespace, request)
    ledger.turned_away = ledger.turned_away or refused is not None
    return refused


def _beyond(ledger: QueueLedger, account: QueueAccount, namespace: str, request: Resources) -> Refusal | None:
    """Returns the refusal by the part that a pod would exceed, of those known last; None if it exceeds none."""
    request = {resource: asked for resource, asked in request.items() if ledger.lists(resource)}
    for node in way_up(account):
        taken, deserved = node.taken, node.division.deserved
        beyond = [r for r, asked in request.items() if taken.get(r, 0) + asked > deserved.get(r, 0)]
        if beyond:
            return queue_rules.DESERVED.refusal(beyond)
        if ledger.fits_above(account):
            break
    if len(account.tenants) > 1 and not fair_share.is_entitled(account.tenants.get(namespace), request):
        return fair_share.RULE.refusal([*request])
    return None


def _is_enough_for_all(ledger: QueueLedger, account: QueueAccount, request: Resources) -> bool:
    """Whether there is room for a pod beside all waiting pods, in all queues and in its own.

    In queues above its own, pods that wait elsewhere count as well: nobody counts those that wait there alone.
    """
    for node in way_up(account):
        most, pending = node.division.real_capability, account.pending if node is account else ledger.pending
        for r, asked in request.items():
            if ledger.lists(r) and node.taken.get(r, 0) + pending.get(r, 0) + asked > most.get(r, 0):
                return False
    return all(
        ledger.taken.get(r, 0) + ledger.pending.get(r, 0) + asked <= ledger.available.get(r, 0)
        for r, asked in request.items()
        if ledger.lists(r)
    )


def _capacity(cluster: Cluster) -> Resources:
    """Returns the capacity of all nodes for pods in queues.

    For a resource that no pod in queues requests, all nodes count: nobody knows yet which taints later pods will
    tolerate, and a guarantee is kept for them meanwhile.
    """
    capacity = dict(cluster.capacity.for_queues)
    for resource, amount in cluster.table.capacity(ALL).items():
        accounts = cluster.ledger.queues.accounts.values()
        if capacity.get(resource) != amount and not any(account.request.get(resource) for account in accounts):
            capacity[resource] = amount
    return capacity


def _requests(cluster: Cluster) -> dict[str, Resources]:
    ledger = cluster.ledger.queues
    requests: dict[str, Resources] = {name: ledger.account(name).request for name in cluster.queues}
    if cluster.rules.quota_manager:
        for name, asked in quota_manager.demands(cluster, requests):
            ledger.account(name).unbounded = asked is not requests[name]
            requests[name] = asked
    return requests
