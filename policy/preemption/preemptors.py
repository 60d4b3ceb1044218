"""For which waiting pods somebody may have to go, and in which order they are looked at.

Beyond those that the scheduler asks an extender about: pods that wait at gates, and pods that it has not tried yet.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import inf
from operator import itemgetter
from typing import Any

from policy.cluster.cluster import Cluster
from policy.cluster.gates import GatedJob
from policy.nodes import fit
from policy.objects import signature
from policy.objects.constraints import Constraints
from policy.objects.group import Key
from policy.objects.pod import Pod, turn
from policy.quota.queue_rules import OF_SHUT
from policy.quota.rules import BY_NAME
from policy.stepwise import Steps, at_once, sorted_steps

SLICE = 50
"""Pods that are looked at between two pauses."""
AHEAD = 100
"""For how many pods that the scheduler has not tried yet room is made at a time: as many as it binds in good time."""
AHEAD_AT_GATES = 10
"""For how many pods that wait at gates and ask the same, in one line, room is made at a time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """All that the answer for a pod depends on: pods of one shape have the same answer."""

    namespace: str
    queue: str
    priority: int
    request: frozenset[tuple[str, int]]
    constraints: Constraints
    labels: frozenset[tuple[str, str]]
    may_preempt: bool
    preemptible: bool


def shape_of(pod: Pod, cluster: Cluster) -> Shape:
    """The shape of a pod. Its labels matter only where pods are spread, or kept near or apart.

    Pods in the table may keep others away that make no demands themselves.
    """
    constraints = pod.constraints
    kept_away = cluster.table.demanding.may_keep_away(pod.namespace)
    by_labels = constraints.affinity or constraints.anti_affinity or constraints.spread or kept_away
    return Shape(
        pod.namespace,
        cluster.queue_of(pod),
        pod.priority,
        frozenset(pod.request.items()),
        constraints,
        frozenset(pod.labels.items() if by_labels else ()),
        pod.may_preempt,
        pod.preemptible,
    )


def waiting_steps(cluster: Cluster, now: float, delay: float) -> Steps[list[Pod]]:
    """Returns pods that the scheduler has found no place for since ``delay`` seconds, by priority and then creation.

    A pod that it has not tried in all that time is among them if it found no place for one that is alike. The more pods
    wait, the longer it takes until it has tried all, and each victim that goes makes it try all of them anew. The first
    pods at gates to ask for what they ask are among them, too, once they have waited for as long.

    Pods are left out that room is kept for, that were admitted meanwhile, or that are on their way out. So are pods
    that no quota or queue says anything about, as the scheduler's own preemption does all there is to do for them. Such
    a pod stays if it can start only together with others, or if borrowers are to leave a node that is reserved for it.
    Of a gang no more are returned than it takes to start; one that has started and lost members goes first among its
    like. Pods that go in a pause are left out, too.
    """
    reserved_for = {reservation.pod.uid for reservation in cluster.reservations.plans.values()}
    tried = [cluster.pods[uid] for uid, since in cluster.attempts.unschedulable_since.items() if now - since >= delay]
    alike = {_kind(pod, cluster) for pod in tried if pod.namespace in cluster.attempts.untried_since}
    untried = [
        pod
        for namespace in {kind[0] for kind in alike}
        for uid, since in cluster.attempts.untried_since[namespace].items()
        if now - since >= delay and _kind(pod := cluster.pods[uid], cluster) in alike and uid not in reserved_for
    ]
    tried += sorted(untried, key=turn)[: max(0, AHEAD - len(reserved_for))]
    tried += (pod for pod in _first_at_gates(cluster, reserved_for) if now - cluster.gates.since(pod.uid) >= delay)
    in_turn = list[tuple[Any, Pod]]()
    for number, uid in enumerate([pod.uid for pod in tried if pod.uid not in reserved_for]):
        if number % SLICE == SLICE - 1:
            yield
        there = cluster.pods.get(uid)  # it may have gone in a pause
        if there is None or not there.pending or there.terminating or cluster.is_expected(uid):
            continue
        if _may_have_victims(cluster, there):
            in_turn.append(((cluster.priority_of_queue(there), *turn(there)), there))
    found = yield from sorted_steps(in_turn, itemgetter(0))
    pods = [pod for _, pod in found if pod.uid in cluster.pending]
    return list(_without_those_beyond_a_minimum(cluster, cluster.gangs.incomplete_first(pods), reserved_for))


def next_due(cluster: Cluster, now: float, delay: float) -> float:
    """Returns when the next pod that no place was found for has waited for ``delay`` seconds; infinite if none will.

    Then ``waiting_steps`` returns it, if no place is found until then.
    """
    since = cluster.attempts.unschedulable_since
    soon = (uid for uid in since if now - since[uid] < delay and _may_have_victims(cluster, cluster.pods[uid]))
    return min((since[uid] + delay for uid in soon), default=inf)


def _kind(pod: Pod, cluster: Cluster) -> tuple[str, Hashable]:
    """The namespace, and all that the answer of a scheduler depends on: for pods alike it is the same."""
    return pod.namespace, (pod.scheduler, pod.group, signature.by_rules_and_nodes(pod, cluster.queue_of(pod)))


def _first_at_gates(cluster: Cluster, reserved_for: set[str]) -> Iterator[Pod]:
    """Of each kind of jobs in each line at the gates the first few: somebody may have to go before they are opened."""
    for (_, namespace), line in cluster.gates.lines.items():
        turns = line.kinds().values() if cluster.gate_admission.is_gated(namespace) else ()
        for jobs in turns:
            if line.jobs[jobs[0][2]].first().stands_for is not None:
                continue  # no node has room for all pods of a Job: others go for these, once they exist
            waiting = (pod for at in jobs for pod in sorted(line.jobs[at[2]].members.values(), key=turn))
            yield from islice((pod for pod in waiting if pod.uid not in reserved_for), _enough(line.jobs[jobs[0][2]]))


def _enough(job: GatedJob) -> int:
    """How many pods of its kind are looked at together with a job: all that a gang has, as it takes many to start."""
    return max(AHEAD_AT_GATES, len(job.members))


def _may_have_victims(cluster: Cluster, pod: Pod) -> bool:
    """Whether there may be somebody who has to go for a pod, beside those that the scheduler's own preemption finds."""
    if cluster.ledger.runs_too_long(pod):
        return False  # it would be refused whoever goes
    ruled = cluster.is_governed(pod) or cluster.gangs.is_waiting(pod)
    return ruled or bool(cluster.reservations.node_to_empty_for(pod))


def _without_those_beyond_a_minimum(cluster: Cluster, pods: list[Pod], reserved_for: set[str]) -> Iterator[Pod]:
    wanted: dict[Key, int] = {}
    for pod in pods:
        group = cluster.gangs.gang_of(pod)
        if group is None:
            yield pod
            continue
        if group.key not in wanted:
            members = {member.uid for member in cluster.groups.members(group.key)}
            provided = cluster.gangs.ready(group) | members & reserved_for
            wanted[group.key] = group.minimum - len(provided)
        if wanted[group.key] > 0:
            wanted[group.key] -= 1
            yield pod


def together_with(cluster: Cluster, pod: Pod, waiting: Iterable[Pod]) -> list[Pod]:
    """Those of the waiting pods that one can start only together with, itself among them; the pod alone if with none.

    Empty where not all of them are waiting yet, or not all may be: then nobody is to be evicted for some of them.
    """
    group = cluster.gangs.gated(pod)
    if group is None or not cluster.gangs.is_waiting(pod):
        return [pod]
    members = [other for other in waiting if (other.namespace, other.group) == group.key]
    reserved = {reservation.pod.uid for reservation in cluster.reservations.plans.values()}
    provided = cluster.gangs.ready(group) | {member.uid for member in cluster.groups.members(group.key)} & reserved
    return members if len(members) + len(provided) >= group.minimum else []


def has_room(cluster: Cluster, pod: Pod) -> bool:
    """Whether a waiting pod could run now without anybody going for it."""
    return cluster.check(pod) is None and bool(fit.fits(cluster.table, pod).any())


def waits_since(cluster: Cluster, pod: Pod) -> float | None:
    """Since when a pod waits for room to be made for it, on the cluster's clock; None if it is not looked at for that.

    Those are pods that the scheduler found no place for, and the first ones at gates; see ``waiting_steps``. A Job that
    waits as a whole is not one of them.
    """
    if cluster.is_expected(pod.uid) or pod.stands_for is not None:
        return None
    stands = cluster.gates.line_of(pod.uid)
    if stands is None:
        return cluster.attempts.unschedulable_since.get(pod.uid)
    (_, namespace), line, job = stands
    first = line.kinds()[job.kind][: _enough(job)] if cluster.gate_admission.is_gated(namespace) else ()
    return cluster.gates.since(pod.uid) if any(job.name == name for *_, name in first) else None


def is_shut_out(cluster: Cluster, pod: Pod) -> bool:
    """Whether the pod's queue takes no pods at all, so that it is of no use to evict anybody."""
    refused = cluster.check(pod)
    return refused is not None and BY_NAME[refused.rule] in OF_SHUT


def others_first(cluster: Cluster, pod: Pod) -> int:
    """How many other pods that room may have to be made for are looked at before one, as things stand."""
    in_turn = at_once(waiting_steps(cluster, inf, 0.0))
    return next((place for place, other in enumerate(in_turn) if other.uid == pod.uid), 0)
