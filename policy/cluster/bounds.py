"""The consequences of a changed bound: of an elastic quota, a queue, or a namespace's weight.

Counts sums anew, and gives pods that may fit now their claim again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.objects.membership import DEFAULT
from policy.objects.queue import is_raised
from policy.quota import elastic_quota

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.queue import Queue


def quotas_changed(cluster: Cluster, namespace: str) -> None:
    """Puts the oldest of a namespace's quotas in force, by creation and then name."""
    cluster.changes.note(namespace)
    cluster.generations.plans += 1
    before = cluster.ledger.account(namespace).quota
    quota = elastic_quota.in_force(cluster.quotas.get(namespace, {}).values())
    cluster.ledger.set_quota(namespace, quota)
    if elastic_quota.is_raised(before, quota):
        cluster.hints.help([pod.uid for pod in cluster.pending_in(namespace)])
    if before is not None and elastic_quota.is_raised(quota, before):
        cluster.hints.may_be_lent(lambda pod: pod.namespace == namespace)
    if bool(before and before.min) != bool(quota and quota.min):
        stand = cluster.ledger.entries
        waiting = [pod.uid for pod in cluster.pending_in(namespace)]
        cluster.states.assign_again([uid for uid in waiting if uid not in stand or stand[uid].kind == "pending"])


def queue_changed(cluster: Cluster, name: str, queue: Queue | None) -> None:
    """Puts a queue in force; None lifts it."""
    cluster.changes.note(queue=name)
    cluster.generations.plans += 1
    cluster.generations.admission += 1
    membership = cluster.membership
    had_default, membership.has_default = membership.has_default, DEFAULT in cluster.queues
    before = cluster.ledger.queues.account(name).queue
    changed = cluster.ledger.queues.set_queue(name, queue)
    inside = cluster.ledger.queues.tree.with_all_below(name)
    if is_raised(before, queue):
        cluster.hints.help([uid for uid, pod in cluster.pending.items() if cluster.queue_of(pod) in inside])
    if before is not None and (is_raised(queue, before) or not before.reclaimable):
        cluster.hints.may_be_lent(lambda pod: cluster.queue_of(pod) in inside)
    first_or_last = len(cluster.queues) == (queue is not None)
    if first_or_last or had_default != membership.has_default:
        cluster.states.assign_again(list(cluster.pods))
    elif changed:
        cluster.states.assign_again([uid for uid, pod in cluster.pending.items() if cluster.queue_of(pod) in changed])


def weight_changed(cluster: Cluster, namespace: str) -> None:
    """Has the parts within a namespace's queues computed anew, as the namespace's weight in them has changed."""
    for account in cluster.ledger.queues.accounts.values():
        if namespace in account.tenants:
            account.stale = True
            cluster.generations.shares += 1
            account.unread.add(namespace)
