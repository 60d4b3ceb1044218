"""Decides which jobs starve: they wait for so long that nodes are reserved for them.

Seed: reserve action (Job starving, Reserve logic). A job waits from the time when enough members to start were there.
So a tenant who keeps an old group and puts new pods into it does not starve earlier.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from operator import itemgetter

import numpy as np

from policy.cluster.cluster import Cluster
from policy.cluster.gates import Where
from policy.cluster.job_ages import waits_since
from policy.cluster.job_members import WHOLE
from policy.nodes import fit
from policy.objects import signature
from policy.objects.job import Job, job_name
from policy.objects.pod import Pod, turn
from policy.objects.queued_job import is_member
from policy.objects.reservation import STARVING, Reservation
from policy.objects.verdict import Refusal
from policy.quota import admission
from policy.reserve.first_of_lines import AT_A_TIME, FirstOfLines, Key, Smallest
from policy.stepwise import Steps, sorted_steps

UNTRIED = 60.0
"""Seconds after which a pod that no scheduler has judged is not expected to be placed any more."""
MOST_KINDS = 50
"""The most kinds of waiting pods that are tried, to see if one comes first: those of highest priority."""
MOST_AHEAD = 10
"""The most jobs of a queue for which nodes may be reserved before they starve.

Those with reserved nodes are looked at twice a second.
"""
OF_A_LINE = 10
"""The most Jobs of a line (a namespace in a queue) that wait as a whole and are taken to starve: the first ones."""
OLD_AT_A_TIME = 500
"""Waiting pods of which the age is looked at between two pauses."""

Rank = tuple[bool, tuple[int, ...], int, float, str, str]
"""The order of jobs: the one that sorts first comes first. Those that do not starve yet come last."""


@dataclass(frozen=True, slots=True)
class Terms:
    """An operator's choices about reserving: seconds to starve and to reserve at most, and a share of nodes.

    ``max_jobs``: how many jobs of a queue have reserved nodes at a time. ``ahead``: for how many of the first jobs of a
    line nodes are reserved before they starve, if their start can be promised.
    """

    starving_after: float = 172_800.0
    max_nodes_percent: int = 50
    max_duration: float = inf
    max_jobs: float = inf
    ahead: int = 0


def in_turn_steps(
    cluster: Cluster, terms: Terms, now: float, first: FirstOfLines | None = None, later: Collection[Key] = ()
) -> Steps[list[Job]]:
    """Returns the jobs that starve or have reserved nodes, by priority and then by waiting time.

    ``now`` is in seconds since the epoch. A job may change in a pause, so find it again before use. Of a Job that waits
    as a whole it may have the stand-in alone. ``first`` keeps the first of each line from one look to the next. Of Jobs
    that wait as a whole those in ``later`` are behind the others of their line: nothing could be reserved for them now.
    """
    reserved = {(each.pod.namespace, each.job) for each in cluster.reservations.reserved}
    tried = (*cluster.attempts.unschedulable_since, *cluster.gates.in_groups())
    old = yield from _old_steps(cluster, terms, now, tried, later)
    ahead = set[Key]()
    if terms.ahead:
        first = first or FirstOfLines()
        yield from first.find_steps(cluster, tried, terms.ahead, now)
        ahead.update(first.jobs)
    found = list[tuple[Rank, Job]]()
    for key in reserved | old | ahead:
        yield
        job = cluster.groups.job(*key)
        if job is None or key in reserved:
            job = cluster.job_members.find(*key)
        if job is None:
            continue
        if key in reserved or is_starving(cluster, job, terms, now) or (key in ahead and waits(cluster, job, now)):
            early = is_early(job, terms, now)
            found.append(((early, *_rank(cluster, job), since(job), *key), job))
    ranked = yield from sorted_steps(found, itemgetter(0))
    return [job for _, job in ranked]


def _old_steps(
    cluster: Cluster, terms: Terms, now: float, tried: Iterable[str], later: Collection[Key]
) -> Steps[set[Key]]:
    """Returns the jobs that have waited for long, among these pods (by UID) and those that wait as a whole."""
    groups = cluster.membership.groups
    old = set[Key]()
    for count, uid in enumerate(tried):
        if not count % OLD_AT_A_TIME:
            yield
        pod = cluster.pods.get(uid)  # it may have gone in a pause
        if pod is not None and is_older(pod, terms.starving_after, now):
            old.add((pod.namespace, job_name(groups, pod)))
    had_their_time = {
        (each.pod.namespace, each.job)
        for each in cluster.reservations.given_up.values()
        if now - each.failed_at <= terms.starving_after
    }
    first = dict[Where, Smallest[Key]]()
    for count, key_of_job in enumerate(cluster.queued_jobs.ages.older_than(terms.starving_after, now)):
        if not count % AT_A_TIME:
            yield
        whole = cluster.queued_jobs.get(key_of_job)  # it may have gone or begun to wait anew in a pause
        if whole is None or now - waits_since(whole) <= terms.starving_after:
            continue
        key = whole.namespace, f"{WHOLE}{whole.name}"
        if key not in had_their_time and (where := cluster.job_members.waits_in(whole)):
            rank = key in later, -whole.pod_sets[0].pod.priority, whole.created, whole.name
            first.setdefault(where, Smallest(OF_A_LINE)).add(key, rank)
    return old.union(key for line in first.values() for key, _ in line.in_order())


def is_early(job: Job, terms: Terms, now: float) -> bool:
    """Whether nodes may be reserved for a job only as it is one of the first of its line: it does not starve yet."""
    return terms.ahead > 0 and now - since(job) <= terms.starving_after


def is_older(pod: Pod, seconds: float, now: float) -> bool:
    """Whether a pod has been there for longer than so many seconds; false if its creation is not known."""
    return pod.created > 0 and now - pod.created > seconds


def is_starving(cluster: Cluster, job: Job, terms: Terms, now: float) -> bool:
    """Whether a job is not ready, has waited for too long, and nothing else is being done for it."""
    return _waits_for_longer(cluster, job, terms.starving_after, now) and all(
        now - each.failed_at > terms.starving_after for each in _given_up(cluster, job)
    )  # it had its time, and waits again


def waits(cluster: Cluster, job: Job, now: float) -> bool:
    """Whether a job is not ready, enough members have been tried in vain, and nothing else is or was done for it."""
    return _waits_for_longer(cluster, job, 0.0, now) and not any(_given_up(cluster, job))


def _waits_for_longer(cluster: Cluster, job: Job, seconds: float, now: float) -> bool:
    missing = job.minimum - job.ready
    if missing <= 0 or now - job.created <= seconds:
        return False
    members = members_waiting(cluster, job, seconds, now)
    return len(members) >= missing and not any(cluster.reservations.is_held_for(pod.uid) for pod in members)


def _given_up(cluster: Cluster, job: Job) -> Iterator[Reservation]:
    for each in cluster.reservations.given_up.values():
        if each.reason == STARVING and (each.pod.namespace, each.job) == (job.namespace, job.name):
            yield each


def members_waiting(cluster: Cluster, job: Job, seconds: float, now: float) -> list[Pod]:
    """Returns the members, in order, that are unschedulable or at gates, and are older than so many seconds.

    Members at gates count, as a gang is ungated only once there is room for all of it.
    """
    judged, gates = cluster.attempts.unschedulable_since, cluster.gates
    tried = (pod for pod in job.waiting if pod.uid in judged or pod.uid in gates or is_member(pod.uid))
    return [pod for pod in tried if not pod.gated and is_older(pod, seconds, now)]


def since(job: Job) -> float:
    """Returns when a job began to wait: seconds since the epoch at which it and enough members to start were there."""
    missing = job.waiting[: max(0, job.minimum - job.ready)]
    return max((job.created, *(pod.created for pod in missing)))


def refused_together(cluster: Cluster, pods: Collection[Pod], beside: Collection[Pod] = ()) -> Refusal | None:
    """Returns the refusal of these pods, all together, by the rules of quotas and queues, or None. Changes nothing.

    ``beside`` are others that run with them, about whom nobody asks.
    """
    return admission.refusal_of_all(cluster.ledger, pods, cluster.rules, beside)


def goes_first_steps(cluster: Cluster, job: Job, now: float) -> Steps[Job | None]:
    """Returns a waiting job of higher priority that could be scheduled now, or None. Nothing is reserved before it."""
    rank = _rank(cluster, job)
    kinds = Smallest[Hashable](MOST_KINDS)
    for count, pod in enumerate(list(cluster.pending.values())):
        if not count % AT_A_TIME:
            yield
        if cluster.pending.get(pod.uid) is not pod or pod.stands_for is not None:
            continue  # it has changed in a pause, or no scheduler places it
        if (theirs := _rank_of(cluster, pod)) < rank and _is_to_be_tried(cluster, pod, now):
            kinds.add(_kind(cluster, pod), (theirs, turn(pod), pod.uid))
    for _, (_, _, uid) in kinds.in_order():
        yield
        there = cluster.pending.get(uid)
        if there is None:
            continue
        other = cluster.groups.job(there.namespace, job_name(cluster.membership.groups, there))
        if other is not None and other.ready < other.minimum and _could_start(cluster, other, now):
            return other
    return None


def _kind(cluster: Cluster, pod: Pod) -> Hashable:
    """Returns a key for pods of which one could start if another could: a group, or all that matters to a pod alone."""
    if (pod.namespace, pod.group) in cluster.membership.groups:
        return pod.namespace, pod.group
    return kind_alone(cluster, pod)


def kind_alone(cluster: Cluster, pod: Pod) -> Hashable:
    """Returns a key for pods in no group that rules, nodes and promised starts treat alike, as things are now."""
    too_long = cluster.ledger.runs_too_long(pod)
    until = cluster.reservations.nodes.first_start_after(pod)
    return signature.by_rules_and_nodes(pod, pod.queue), too_long, until


def _could_start(cluster: Cluster, job: Job, now: float) -> bool:
    """Whether the missing members of a job have room now, one after the other, and the rules let them in together."""
    members = [pod for pod in job.waiting if _is_to_be_tried(cluster, pod, now)][: job.minimum - job.ready]
    if len(members) < job.minimum - job.ready or refused_together(cluster, members) is not None:
        return False
    table = cluster.table
    free = table.free.copy()
    for pod in members:
        kept = table.mask_of(cluster.reservations.nodes_reserved_from(pod) | cluster.reservations.nodes_held_from(pod))
        mask = fit.fits(table, pod) & ~kept
        if not mask.any():
            return False  # it may request what no node has
        columns = [(table.columns[resource], amount) for resource, amount in pod.request.items() if amount]
        for column, amount in columns:
            mask &= free[:, column] >= amount
        rows = np.flatnonzero(mask)
        if not len(rows):
            return False
        for column, amount in columns:
            free[rows[0], column] -= amount
    return True


def _is_to_be_tried(cluster: Cluster, pod: Pod, now: float) -> bool:
    """Whether the scheduler may still place a waiting pod, as far as is known here."""
    if pod.gated or pod.terminating or pod.uid in cluster.grants or fit.undecidable(cluster.table, pod):
        return False
    if pod.unschedulable is None:
        return now - pod.created < UNTRIED
    return cluster.attempts.keeps_claim(pod)


def _rank(cluster: Cluster, job: Job) -> tuple[tuple[int, ...], int]:
    """Returns the order of a job by the priority of its queue, then by its own; the higher comes first."""
    return min((_rank_of(cluster, pod) for pod in job.waiting + job.granted), default=((), 0))


def _rank_of(cluster: Cluster, pod: Pod) -> tuple[tuple[int, ...], int]:
    return cluster.priority_of_queue(pod), -pod.priority
