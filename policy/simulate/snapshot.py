"""A cluster as it stands at one moment, and copies of it. A trial on a copy never touches the cluster itself.

The objects of a cluster never change, they are replaced; so a snapshot is a few lists of them. A copy is built by
showing these objects to a new cluster. So there is only one way in which its sums come about.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.cluster.gang_holds import HOLD_TIME, Hold
from policy.cluster.quota_manager import Limit
from policy.cluster.unschedulable import PATIENCE
from policy.objects.batch_job import BatchJob
from policy.objects.device import DeviceClaim, DeviceClass, DeviceRequests, DeviceSlice
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import MilliResources, Pod
from policy.objects.pod_template import PriorityClass
from policy.objects.queue import Queue
from policy.objects.queued_job import QueuedJob
from policy.objects.reservation import Reservation
from policy.objects.run_time import Key
from policy.quota.admission import Rules
from policy.quota.elastic_quota import ElasticQuota
from policy.stepwise import Steps

T = TypeVar("T")

SLICE = 2
"""Objects that are copied between two pauses: in no more time than a slice takes (app.pause)."""
FREED = 100
"""Objects of a copy that are freed between two pauses."""


@dataclass(frozen=True, slots=True)
class Granted:
    """A pod that was let through and is not on a node yet, and what is held for it as a member of a gang."""

    pod: Pod
    hold: Hold | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a cluster consists of, at ``now`` on its clock, and ``epoch`` seconds since the epoch.

    ``without_claim``: UIDs of pods that lost their claim. ``counted``: UIDs of pods that count in another queue than
    the one that they name, with that queue. ``overdue_after`` and ``stuck_after``: see policy.cluster.overdue.
    """

    rules: Rules
    now: float
    pods: tuple[Pod, ...]
    without_claim: frozenset[str]
    granted: tuple[Granted, ...]
    nodes: tuple[Node, ...]
    quotas: tuple[ElasticQuota, ...]
    queues: tuple[Queue, ...]
    namespaces: tuple[Namespace, ...]
    groups: tuple[Group, ...]
    weights: tuple[tuple[tuple[str, str], int], ...]
    limits: tuple[tuple[str, Limit], ...]
    budgets: tuple[Budget, ...]
    batch_jobs: tuple[BatchJob, ...]
    stayed: frozenset[str]
    other_jobs: tuple[BatchJob, ...]
    queued_jobs: tuple[QueuedJob, ...]
    priority_classes: tuple[tuple[str, PriorityClass], ...]
    runtime_classes: tuple[tuple[str, MilliResources], ...]
    limit_ranges: tuple[tuple[str, str, MilliResources], ...]
    device_classes: tuple[tuple[str, DeviceClass], ...]
    device_slices: tuple[DeviceSlice, ...]
    device_claims: tuple[DeviceClaim, ...]
    claim_templates: tuple[tuple[tuple[str, str], DeviceRequests], ...]
    reservations: tuple[Reservation, ...]
    counted: tuple[tuple[str, str], ...]
    epoch: float
    protected_now: float
    min_run_times: tuple[tuple[Key, float], ...]
    protected_since: tuple[tuple[str, float], ...]
    max_run_times: tuple[tuple[Key, int], ...]
    overdue_after: float
    stuck_after: float


def snapshot(cluster: Cluster, now: float) -> Snapshot:
    """Returns the cluster as it stands. Takes no more than some milliseconds, whatever its size."""
    holds = cluster.gangs.holds
    return Snapshot(
        rules=cluster.rules,
        now=now,
        pods=tuple(pod for pod in cluster.pods.values() if pod.stands_for is None),
        without_claim=frozenset(
            uid for uid in cluster.attempts.unschedulable_since if not cluster.attempts.keeps_claim(cluster.pods[uid])
        ),
        granted=tuple(Granted(pod, holds.get(pod.uid)) for pod in cluster.grants.pods() if pod.stands_for is None),
        nodes=tuple(cluster.table.nodes()),
        quotas=tuple(chain.from_iterable(quotas.values() for quotas in cluster.quotas.values())),
        queues=tuple(cluster.queues.values()),
        namespaces=tuple(cluster.membership.namespaces.values()),
        groups=tuple(cluster.membership.groups.values()),
        weights=tuple(cluster.membership.weights.items()),
        limits=tuple(cluster.limits.items()),
        budgets=tuple(cluster.budgets.values()),
        batch_jobs=tuple(cluster.batch_jobs),
        stayed=frozenset(cluster.batch_jobs.stayed),
        other_jobs=tuple(cluster.batch_jobs.others),
        queued_jobs=tuple(job for job in cluster.queued_jobs if job.suspended or job.least),
        priority_classes=tuple(cluster.pod_defaults.priority_classes.items()),
        runtime_classes=tuple(cluster.pod_defaults.runtime_classes.items()),
        limit_ranges=tuple(
            (namespace, name, requests)
            for namespace, ranges in cluster.pod_defaults.limit_ranges.items()
            for name, requests in ranges.items()
        ),
        device_classes=tuple(cluster.device_names.classes.items()),
        device_slices=tuple(cluster.devices.pools.slices.values()),
        device_claims=tuple(cluster.devices.claims.values()),
        claim_templates=tuple(cluster.devices.templates.items()),
        reservations=tuple(cluster.reservations.all()),
        counted=tuple(cluster.queue_changes.moving.counted.items()),
        epoch=cluster.leaving.deletions.now,
        protected_now=cluster.protection.now,
        min_run_times=tuple(cluster.protection.least.items()),
        protected_since=tuple(cluster.protection.since.items()),
        max_run_times=tuple(cluster.ledger.run_time_limits.most.items()),
        overdue_after=cluster.leaving.deletions.after,
        stuck_after=cluster.leaving.deletions.stuck_after,
    )


def copy_steps(taken: Snapshot, copies: list[Cluster] | None = None) -> Steps[Cluster]:
    """Returns a cluster of its own that stands as the snapshot does. It pauses after some pods.

    It is appended to ``copies`` at once, so that it can be discarded if it is never completed. Pods that an earlier
    process may have admitted count as waiting: in a copy nothing is on its way.
    """
    cluster = Cluster(taken.rules, settle_time=0, overdue_after=taken.overdue_after, stuck_after=taken.stuck_after)
    if copies is not None:
        copies.append(cluster)
    cluster.leaving.pass_time(taken.epoch)
    cluster.protection.pass_time(taken.protected_now)
    cluster.protection.least.update(taken.min_run_times)
    cluster.protection.since.update(taken.protected_since)
    cluster.ledger.run_time_limits.most.update(taken.max_run_times)
    yield from _copy_bounds_steps(cluster, taken)
    yield from _each_steps(taken.device_slices, cluster.devices.upsert_slice)
    yield from _each_steps(taken.nodes, cluster.upsert_node)
    yield from _copy_pods_steps(cluster, taken)
    yield from _each_steps(taken.reservations, cluster.upsert_reservation)
    yield from _each_steps(taken.granted, partial(_grant, cluster, taken.now))
    # ``begin`` does both without a pause, as far as they are still to be done.
    yield from cluster.devices.renew_steps()
    yield from cluster.states.catch_up_steps()
    cluster.begin()
    yield from cluster.queue_changes.count_steps(dict(taken.counted))
    yield from cluster.divide_steps()
    return cluster


def _each_steps(objects: Iterable[T], take_in: Callable[[T], None]) -> Steps[None]:
    """Takes in each of these objects, with a pause after some."""
    for number, each in enumerate(objects, start=1):
        take_in(each)
        if number % SLICE == 0:
            yield


def _grant(cluster: Cluster, now: float, granted: Granted) -> None:
    pod, hold = replace(granted.pod, gate=-1), granted.hold  # its gate was opened, if it had one
    cluster.upsert_pod(pod, now)
    cluster.states.keep_all([cluster.devices.charged(pod)], now, now + HOLD_TIME)
    if hold is not None:
        cluster.gangs.holds.give(pod.uid, Hold(hold.key, hold.node, hold.asked), now + HOLD_TIME)
        cluster.table.add(pod, hold.node)


def _copy_bounds_steps(cluster: Cluster, taken: Snapshot) -> Steps[None]:
    """Adds the objects that bound pods."""
    yield from _each_steps(taken.namespaces, cluster.upsert_namespace)
    yield from _each_steps(taken.queues, cluster.upsert_queue)
    yield from _each_steps(taken.groups, cluster.upsert_group)
    yield from _each_steps(taken.weights, lambda each: cluster.upsert_weight(*each[0], each[1]))
    yield from _each_steps(taken.limits, lambda each: cluster.upsert_limit(*each))
    yield from _each_steps(taken.quotas, cluster.upsert_quota)
    yield from _each_steps(taken.budgets, cluster.upsert_budget)
    yield from _copy_defaults_steps(cluster, taken)
    yield from _copy_jobs_steps(cluster, taken)


def _copy_jobs_steps(cluster: Cluster, taken: Snapshot) -> Steps[None]:
    """Adds the jobs that own pods, and those that wait as a whole."""
    yield from _each_steps(taken.batch_jobs, cluster.batch_jobs.upsert)
    cluster.batch_jobs.stayed.update(taken.stayed)
    yield from _each_steps(taken.other_jobs, cluster.batch_jobs.others.upsert)
    yield from _each_steps(taken.queued_jobs, lambda job: cluster.queued_jobs.upsert(job, taken.now))


def _copy_defaults_steps(cluster: Cluster, taken: Snapshot) -> Steps[None]:
    """Adds the objects that say what pods take, and what pods of waiting Jobs will request."""
    devices, defaults = cluster.devices, cluster.pod_defaults
    yield from _each_steps(taken.device_classes, lambda each: devices.upsert_class(*each))
    yield from _each_steps(taken.claim_templates, lambda each: devices.upsert_template(*each[0], each[1]))
    yield from _each_steps(taken.device_claims, devices.upsert_claim)
    yield from _each_steps(taken.priority_classes, lambda each: defaults.upsert_priority_class(*each))
    yield from _each_steps(taken.runtime_classes, lambda each: defaults.upsert_runtime_class(*each))
    yield from _each_steps(taken.limit_ranges, lambda each: defaults.upsert_limit_range(*each))


def _copy_pods_steps(cluster: Cluster, taken: Snapshot) -> Steps[None]:
    """Adds the pods. Those that lost their claim are added so long ago that they have lost it again by now."""
    long_ago = taken.now - PATIENCE - 1
    cluster.tick(long_ago)
    yield from cluster.take_in_steps(
        (pod, long_ago if pod.uid in taken.without_claim else taken.now) for pod in taken.pods
    )
    cluster.tick(taken.now)


def discard_steps(cluster: Cluster) -> Steps[None]:
    """Takes a finished copy apart in steps, so that its objects are freed some at a time.

    The parts of a cluster know each other. So without this the collector of cycles would free all of it at once.
    """
    for held in list(_held_by_parts(cluster)):
        while held:
            for _ in range(min(FREED, len(held))):
                held.popitem()
            yield


def _held_by_parts(cluster: Cluster) -> Iterator[dict[Any, Any]]:
    """Yields the maps of objects that the parts of a cluster hold, and its lines, which a simulation still knows.

    Maps of amounts may belong to others, too.
    """
    parts, seen = deque[object]([*cluster.gates.lines.values(), cluster]), {id(cluster)}
    while parts:
        for value in vars(parts.popleft()).values():
            if isinstance(value, dict):
                if not all(isinstance(each, int) for each in islice(value.values(), 1)):
                    yield value
            elif type(value).__module__.startswith("policy.") and hasattr(value, "__dict__") and id(value) not in seen:
                seen.add(id(value))
                parts.append(value)
