"""The consequences of a changed bound: of an elastic quota, a queue, or a namespace's weight; or of a Job's run time.

Counts sums anew, and gives pods that may fit now their claim again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.objects.membership import DEFAULT
from policy.objects.queue import is_raised
from policy.objects.queued_job import uid_of_stand_in
from policy.quota import elastic_quota

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.cluster.cluster import Cluster
    from policy.objects.batch_job import BatchJob
    from policy.objects.group import Group
    from policy.objects.pod import Pod
    from policy.objects.queue import Queue
    from policy.quota.elastic_quota import ElasticQuota


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
    if _times(before) != _times(quota):
        _run_times_changed(cluster, cluster.pending_in(namespace))


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
    limits = cluster.ledger.run_time_limits.most
    moved = bool(limits) and before is not None and queue is not None and before.parent != queue.parent
    if _times(before) != _times(queue) or moved:
        _run_times_changed(cluster, [pod for pod in cluster.pending.values() if cluster.queue_of(pod) in inside])


def job_changed(cluster: Cluster, before: BatchJob | None, job: BatchJob | None) -> None:
    """Asks anew about the waiting pods of a Job that says another run time, is new, or is gone (None)."""
    known = job or before
    if not cluster.ledger.run_time_limits.most or known is None or _said(before) == _said(job):
        return
    cluster.changes.note(known.namespace)
    uids = (uid_of_stand_in(known.uid), *cluster.batch_jobs.pods.of(known.namespace, known.uid))
    _run_times_changed(cluster, [cluster.pending[uid] for uid in uids if uid in cluster.pending])


def group_changed(cluster: Cluster, before: Group | None, group: Group | None) -> None:
    """Asks anew about the waiting members of a group that says another run time, is new, or is gone (None)."""
    known = group or before
    said, says = (each.run_time if each is not None else 0 for each in (before, group))
    if cluster.ledger.run_time_limits.most and known is not None and said != says:
        cluster.changes.note(known.namespace)
        _run_times_changed(cluster, [pod for pod in cluster.groups.members(known.key) if pod.pending])


def _said(job: BatchJob | None) -> tuple[str, int, int] | None:
    """Returns whose pods run for how long by a Job; None for one that says nothing of that."""
    if job is None:
        return None
    deadline = job.deadline if job.ours else 0  # others may let it run for longer
    return (job.uid, job.run_time, deadline) if job.run_time or deadline else None


def _times(of: ElasticQuota | Queue | None) -> tuple[int, int, str]:
    """Returns all that says how long pods may run, or do by default, under a quota or a queue."""
    return (of.run_time, of.max_run_time, of.name if of.max_run_time else "") if of is not None else (0, 0, "")


def _run_times_changed(cluster: Cluster, pods: Iterable[Pod]) -> None:
    """Asks the rules anew about waiting pods that may run for as long as they say now, or no longer."""
    uids = [pod.uid for pod in pods]
    if uids:
        cluster.generations.admission += 1
        cluster.hints.help(uids)
        cluster.states.assign_again(uids)


def weight_changed(cluster: Cluster, namespace: str) -> None:
    """Has the parts within a namespace's queues computed anew, as the namespace's weight in them has changed."""
    for account in cluster.ledger.queues.accounts.values():
        if namespace in account.tenants:
            account.stale = True
            cluster.generations.shares += 1
            account.unread.add(namespace)
