"""Which waiting pods somebody has to go for, in which order, and what is done about each.

Seed: capacity scheduling, PostFilter; for what the scheduler never asks an extender: borrowers of the same or a higher
priority, quotas that are in the way on free nodes, victims on several nodes.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import inf

from policy.cluster.cluster import Cluster
from policy.cluster.gates import GatedJob
from policy.nodes import fit
from policy.objects import signature
from policy.objects.batch_job import BatchJob
from policy.objects.constraints import Constraints
from policy.objects.group import Key
from policy.objects.pod import Pod, turn
from policy.objects.reservation import RECLAIM, PodName, Reservation
from policy.preemption import victims
from policy.preemption.foreseen import foreseen_steps, time_text
from policy.preemption.losses import LostJobs, lost_jobs
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.ranking import importance
from policy.stepwise import Steps, within_steps

AHEAD = 100
"""For how many pods that the scheduler has not tried yet room is made at a time: as many as it binds in good time."""
FEW = 20
"""Plans that are assumed for the next one as quickly as a node is searched."""
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


def waiting(cluster: Cluster, now: float, delay: float) -> list[Pod]:
    """Returns pods that the scheduler has found no place for since ``delay`` seconds, by priority and then creation.

    A pod that it has not tried in all that time is among them if it found no place for one that is alike. The more pods
    wait, the longer it takes until it has tried all, and each victim that goes makes it try all of them anew. The first
    pods at gates to ask for what they ask are among them, too, once they have waited for as long.

    Pods are left out that room is kept for, that were admitted meanwhile, or that are on their way out. So are pods
    that no quota or queue says anything about, as the scheduler's own preemption does all there is to do for them. Such
    a pod stays if it can start only together with others, or if borrowers are to leave a node that is reserved for it.
    Of a gang no more are returned than it takes to start; one that has started and lost members goes first among its
    like.
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
    pods = [pod for pod in tried if pod.uid not in reserved_for and not cluster.is_expected(pod.uid)]
    in_turn = sorted(
        (pod for pod in pods if not pod.terminating and _may_have_victims(cluster, pod)),
        key=lambda pod: (cluster.priority_of_queue(pod), *turn(pod)),
    )
    return list(_without_those_beyond_a_minimum(cluster, cluster.gangs.incomplete_first(in_turn), reserved_for))


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


def plans_for_all_steps(
    cluster: Cluster, members: Iterable[Pod], planned: Iterable[Reservation] = ()
) -> Steps[list[Plan] | NoPlan]:
    """Returns a plan for each member of a gang, or why there is none for all of them. Iterate to the end; it may pause.

    A plan without victims keeps room that is free already.
    """
    assumed = list(planned)

    def search_steps(pod: Pod, beside: Sequence[Pod]) -> Steps[Plan | NoPlan]:
        return _search_after_steps(cluster, pod, assumed, beside)

    return (yield from _plans_one_by_one_steps(members, search_steps, assumed.append))


def plans_for_all_of_a_copy_steps(cluster: Cluster, members: Iterable[Pod]) -> Steps[list[Plan] | NoPlan]:
    """Plans for a whole gang, as ``plans_for_all_steps``, but in a copy of the cluster that nobody else reads.

    Each plan stays assumed until the last one is made, also in pauses, so each member costs as much as the first.
    A caller that gives up before the end throws the copy away.
    """
    assumed: list[AbstractContextManager[None]] = []

    def assume(reservation: Reservation) -> None:
        assumed.append(_assumed(cluster, [reservation]))
        assumed[-1].__enter__()

    answer = yield from _plans_one_by_one_steps(members, partial(victims.search_steps, cluster), assume)
    while assumed:
        assumed.pop().__exit__(None, None, None)
        yield
    return answer


def _plans_one_by_one_steps(
    members: Iterable[Pod],
    search_steps: Callable[[Pod, Sequence[Pod]], Steps[Plan | NoPlan]],
    assume: Callable[[Reservation], None],
) -> Steps[list[Plan] | NoPlan]:
    """A plan for each member, of which each counts for the next; to the search they are there once they are assumed."""
    plans, members = list[Plan](), list(members)
    for pod in members:
        beside = [other for other in members if other.uid != pod.uid]
        takes = _takes(pod, (yield from search_steps(pod, beside)))
        if isinstance(takes, NoPlan):
            text = f"there is no room for all of its group: {pod.name}: {takes.text}"
            return NoPlan("gang", text, moments=takes.moments)
        plans.append(takes)
        assume(_assumption(takes))
        yield
    if not plans:
        return NoPlan("gang", "not all that its group takes to start have been tried yet")
    if not any(plan.victims for plan in plans):
        return NoPlan("room", "nodes have room for all of its group, or will have")
    return plans


def _takes(pod: Pod, result: Plan | NoPlan) -> Plan | NoPlan:
    """Returns the result, or a plan without victims for a pod that has room, or will have."""
    return Plan(pod, result.node, (), 0) if isinstance(result, NoPlan) and result.node else result


def preview(cluster: Cluster, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Plan | NoPlan] | None]:
    """Yields the plan for each of these pods, one after the other. The cluster is as it was whenever it yields.

    Each plan counts for the next: its victims are going, and their room is kept. So does room that is there already, or
    is coming: the first takes it. None stands for a pause within one answer, in which the cluster may change.
    """
    planned: list[Reservation] = []
    without_plan: dict[Shape, NoPlan] = {}
    known: dict[str, Plan | NoPlan] = {}
    pods = list(pods)
    for pod in pods:
        if pod.uid not in known and cluster.gangs.is_waiting(pod):
            members = together_with(cluster, pod, pods)
            answer = yield from plans_for_all_steps(cluster, members, planned)
            uids = [member.uid for member in members or [pod]]
            known.update(zip(uids, answer, strict=True) if isinstance(answer, list) else dict.fromkeys(uids, answer))
        shape = shape_of(pod, cluster)
        result = (
            known.get(pod.uid) or without_plan.get(shape) or (yield from _search_after_steps(cluster, pod, planned))
        )
        takes = _takes(pod, result)
        if isinstance(takes, Plan):
            planned.append(_assumption(takes))
        elif pod.uid not in known:
            without_plan[shape] = takes
        yield pod, result


def _search_after_steps(
    cluster: Cluster, pod: Pod, planned: Iterable[Reservation], beside: Sequence[Pod] = ()
) -> Steps[Plan | NoPlan]:
    """The best plan for a pod once these are carried out; where it pauses they are not there.

    ``beside``: see ``victims.search_steps``.
    """
    planned = list(planned)
    work = victims.search_steps(cluster, pod, beside)
    return (yield from within_steps(partial(_assumed, cluster, planned), work, at_a_time=1 + len(planned) // FEW))


def _assumed(cluster: Cluster, planned: Iterable[Reservation]) -> AbstractContextManager[None]:
    reservations = cluster.reservations
    return reservations.assumed([each for each in planned if not reservations.is_held_for(each.pod.uid)])


def _assumption(plan: Plan) -> Reservation:
    """Keeps the room of a plan, as if it was begun. By a name of its own, as the pod's first may have been given up."""
    return replace(reservation_of(plan, 0.0), name=f"assumed-{plan.pod.uid}")


def has_room(cluster: Cluster, pod: Pod) -> bool:
    """Whether a waiting pod could run now without anybody going for it."""
    return cluster.check(pod) is None and bool(fit.fits(cluster.table, pod).any())


def still_planned_steps(cluster: Cluster, reservation: Reservation, staying: Iterable[Pod]) -> Steps[bool]:
    """Whether a new plan would take the same pods from the same node: those of the victims that have not gone.

    Iterate to the end. It may pause, and the cluster may change then; in pauses the reservation exists.
    """
    work = victims.search_steps(cluster, cluster.pods[reservation.pod.uid])
    plan = yield from within_steps(partial(cluster.reservations.without, reservation.name), work)
    if isinstance(plan, NoPlan) or plan.node != reservation.node:
        return False
    there = {
        victim.uid for victim in staying if victim.uid in cluster.pods and not cluster.pods[victim.uid].terminating
    }
    return there <= {victim.uid for victim in plan.victims}


def is_lost(cluster: Cluster, reservation: Reservation) -> bool:
    """Whether the node of a plan cannot take the pod any more, however empty: it is gone, cordoned, tainted or smaller.

    False for a pod that is not there any more.
    """
    pod = cluster.pods.get(reservation.pod.uid)
    return pod is not None and not fit.fits_if_empty_on(cluster.table, pod, reservation.node)


def is_room_taken(cluster: Cluster, reservation: Reservation) -> bool:
    """Whether others have the room that was made, so that the pod cannot come though all its victims have gone.

    An exempt pod may have taken it, a pod of another scheduler, or one that was let through before the plan was made.
    """
    pod = cluster.pods[reservation.pod.uid]
    without = cluster.leaving.uids | cluster.reservations.behind(pod)
    return bool(fit.lacking_on(cluster.table, pod, reservation.node, without))


def stuck_victims(cluster: Cluster, reservation: Reservation) -> list[Pod]:
    """The victims of a plan that should have ended, so that nobody waits for them any more."""
    there = (cluster.pods.get(victim.uid) for victim in reservation.victims)
    return [victim for victim in there if victim is not None and victim.uid in cluster.leaving.deletions.stuck]


def still_has_to_go(cluster: Cluster, reservation: Reservation, victim: Pod, evicted: Iterable[Pod]) -> bool:
    """Whether a victim is to be evicted after these: not if the room is not needed any more, or of no use.

    But what is left of a gang goes, once it cannot do without those who went.
    """
    if cluster.reservations.is_in_force(reservation) and not is_lost(cluster, reservation):
        return True
    gone = {pod.uid for pod in evicted if (pod.namespace, pod.group) == (victim.namespace, victim.group)}
    group = cluster.gangs.gang_of(victim)
    return bool(gone) and group is not None and len(cluster.gangs.ready(group) - gone) < group.minimum


def why_evicted(cluster: Cluster, reservation: Reservation, victim: Pod) -> str:
    """By which rule a victim goes, for people; as long as it is there."""
    if victim.namespace == reservation.pod.namespace:
        return "its priority is lower"
    pod, queue = cluster.pods.get(reservation.pod.uid), cluster.queue_of(victim)
    account, rules = cluster.ledger.accounts.get(victim.namespace), list[str]()
    if account is not None and account.quota is not None:
        rules.append(f"ElasticQuota {victim.namespace}/{account.quota.name} borrows")
    if queue in cluster.queues and pod is not None and cluster.queue_of(pod) != queue:
        rules.append(f"Queue {queue} has more than it deserves")
    elif queue in cluster.queues and not rules:
        rules.append(f"namespace {victim.namespace} has more than its share of Queue {queue}")
    return " and ".join(rules) or "its priority is lower"


def without_failing_jobs(cluster: Cluster, pods: Iterable[Pod]) -> list[Pod]:
    """Those of some pods whose eviction, each alone, fails no Job."""
    going = [cluster.pods[uid] for uid in cluster.leaving.uids]
    return [pod for pod in pods if not lost_jobs(cluster.batch_jobs, [pod], going).failing]


def running_pods(cluster: Cluster, job: BatchJob) -> list[Pod]:
    """The pods of a Job that are on nodes; without those that have stayed when it was suspended before."""
    there, known = (placed.pod for placed in cluster.table.in_namespaces([job.namespace])), cluster.batch_jobs
    return [pod for pod in there if pod.assigned and pod.uid not in known.stayed and known.is_of(pod, job)]


def lowering(cluster: Cluster, reservation: Reservation, job: BatchJob) -> tuple[list[Pod], int] | None:
    """Returns the victims of a plan for which a Job is lowered, and to how many pods; None if it is to be suspended.

    Pods of it that are on no node yet go first. So it is lowered by as many more as have none.
    """
    asked = cluster.leaving.has_been_asked
    victims = [
        pod for pod in staying(cluster, reservation) if cluster.batch_jobs.is_of(pod, job) and not asked(pod.uid)
    ]
    if not victims or len(victims) > job.spare:
        return None
    running = sum(not (pod.terminating or asked(pod.uid)) for pod in running_pods(cluster, job))
    return victims, max(job.least, min(job.runs, running) - len(victims))


def _is_lowered_for(cluster: Cluster, uid: str) -> bool:
    """Whether the Job of a victim has been lowered so that it goes."""
    whole = cluster.batch_jobs.whole(cluster.pods[uid])
    return whole is not None and whole.least > 0 and cluster.leaving.has_been_asked(uid)


def lost_by(cluster: Cluster, reservation: Reservation) -> LostJobs:
    """The Jobs that the victims of a plan cost."""
    named = {victim.uid for victim in reservation.victims}
    there = [cluster.pods[uid] for uid in named if uid in cluster.pods and not _is_lowered_for(cluster, uid)]
    return lost_jobs(cluster.batch_jobs, there, (cluster.pods[uid] for uid in cluster.leaving.uids - named))


def waits_for_others(cluster: Cluster, reservation: Reservation) -> bool:
    """Whether room is still being made for others of the same gang: until then the pod cannot be bound."""
    pod = cluster.pods.get(reservation.pod.uid)
    if pod is None or not cluster.gangs.gated(pod):
        return False
    for other in cluster.reservations.plans.values():
        peer = cluster.pods.get(other.pod.uid)
        if peer is not None and peer.uid != pod.uid and (peer.namespace, peer.group) == (pod.namespace, pod.group):
            there = (cluster.pods.get(victim.uid) for victim in other.victims)
            if any(victim is not None and victim.assigned for victim in there):
                return True
    return False


def waits_since(cluster: Cluster, pod: Pod) -> float | None:
    """Since when a pod waits for room to be made for it, on the cluster's clock; None if it is not looked at for that.

    Those are pods that the scheduler found no place for, and the first ones at gates; see ``waiting``. A Job that waits
    as a whole is not one of them.
    """
    if cluster.is_expected(pod.uid) or pod.stands_for is not None:
        return None
    stands = cluster.gates.line_of(pod.uid)
    if stands is None:
        return cluster.attempts.unschedulable_since.get(pod.uid)
    (_, namespace), line, job = stands
    first = line.kinds()[job.kind][: _enough(job)] if cluster.gate_admission.is_gated(namespace) else ()
    return cluster.gates.since(pod.uid) if any(job.name == name for *_, name in first) else None


def failures(cluster: Cluster, pod: Pod) -> int:
    """How many plans for a pod were given up, as far as that is remembered."""
    given_up = cluster.reservations.given_up.values()
    of_pod = (each for each in given_up if each.pod.uid == pod.uid and each.reason == RECLAIM)
    return max((each.failures + 1 for each in of_pod), default=0)


def others_first(cluster: Cluster, pod: Pod) -> int:
    """How many other pods that room may have to be made for are looked at before one, as things stand."""
    in_turn = waiting(cluster, inf, 0.0)
    return next((place for place, other in enumerate(in_turn) if other.uid == pod.uid), 0)


def plan_text_steps(cluster: Cluster, pod: Pod) -> Steps[str]:
    """Returns what is or will be done for a waiting pod, or why nobody is evicted for it; empty if it does not wait.

    Iterate to the end; it may pause.
    """
    for reservation in cluster.reservations.plans.values():
        if reservation.pod.uid == pod.uid and pod.pending:
            return _progress(cluster, reservation)
    if waits_since(cluster, pod) is None:
        return ""
    if not cluster.is_governed(pod) and not cluster.reservations.node_to_empty_for(pod):
        return ""
    if cluster.gangs.is_waiting(pod):
        return "somebody is evicted for all that its group takes to start, or nobody: see the plan"
    return _why_given_up(cluster, pod) + (yield from _search_text_steps(cluster, pod))


def _search_text_steps(cluster: Cluster, pod: Pod) -> Steps[str]:
    result = yield from victims.search_steps(cluster, pod)
    if isinstance(result, NoPlan):
        later = yield from foreseen_steps(cluster, pod, result.moments)
        if later is not None:
            at = time_text(later[0], cluster.protection.now)
            return f"to be evicted for it from {at} on, on node {later[1].node}: {_names(later[1].victims)}"
        return f"nobody is evicted for it: {result.text}"
    text = f"to be evicted for it on node {result.node}: {_names(result.victims)}"
    return _and_its_price(text, result.lost)


def _and_its_price(text: str, lost: LostJobs) -> str:
    """A sentence, and which Jobs it costs, if any."""
    return "; ".join(filter(None, (text, lost.text)))


def _why_given_up(cluster: Cluster, pod: Pod) -> str:
    """That room was made for the pod before, and who does not end for it; empty if there is nobody."""
    for reservation in cluster.reservations.given_up.values():
        if reservation.pod.uid == pod.uid and (stuck := stuck_victims(cluster, reservation)):
            return f"room was being made on node {reservation.node}, but these do not end: {_names(stuck)}; "
    return ""


def mates(cluster: Cluster, reservation: Reservation) -> list[Reservation]:
    """Plans for other pods that can start only together with this one's: they stand or fall together."""
    pod = cluster.pods.get(reservation.pod.uid)
    return mates_of(cluster, pod) if pod is not None else []


def mates_of(cluster: Cluster, pod: Pod) -> list[Reservation]:
    """Plans for other members of a waiting pod's gang; none if it can start without them."""
    group = cluster.gangs.gated(pod) if cluster.gangs.is_waiting(pod) else None
    if group is None:
        return []
    members = cluster.groups.members(group.key)
    waiting = sorted(member.uid for member in members if member.pending and member.uid != pod.uid)
    return [plan for uid in waiting if (plan := cluster.reservations.held_for(uid)) is not None]


def held_back(cluster: Cluster, reservation: Reservation) -> list[Pod]:
    """Victims of a plan, or of its mates, that a budget does not let go together with the others; then none may go.

    A budget that lets nobody go is not among them: pods that are not ready it may let go all the same, which only the
    API server knows.
    """
    those = [victim for each in (reservation, *mates(cluster, reservation)) for victim in staying(cluster, each)]
    beyond = cluster.budgets.violating(sorted(those, key=importance), with_exhausted=False)
    return [victim for victim in those if victim.uid in beyond]


def in_order_of_eviction(cluster: Cluster, reservation: Reservation) -> list[Pod]:
    """The victims of a plan that have not been evicted: first those whose budgets let nobody go, as far as we know.

    Nobody else goes until they have gone, be it for this plan or for one of its mates.
    """
    allowed, own = cluster.budgets.left(), staying(cluster, reservation)
    first = [victim for victim in own if not allowed.allows(victim)]
    others = (victim for each in mates(cluster, reservation) for victim in staying(cluster, each))
    if not first and not all(map(allowed.allows, others)):
        return []
    return first + [victim for victim in own if victim not in first]


def staying(cluster: Cluster, reservation: Reservation) -> list[Pod]:
    """The victims of a plan that have not been evicted yet."""
    there = (cluster.pods.get(victim.uid) for victim in reservation.victims)
    return [victim for victim in there if victim is not None and not (victim.terminating or victim.finished)]


def protected_victims(cluster: Cluster, reservation: Reservation) -> list[Pod]:
    """The victims that still have to go, and that a disruption budget does not let go now; none once all is over."""
    if not cluster.reservations.is_in_force(reservation):
        return []
    there = [cluster.pods[victim.uid] for victim in reservation.victims if victim.uid in cluster.pods]
    staying = [victim for victim in there if not victim.terminating]
    protected = cluster.budgets.violating(staying)
    return [victim for victim in staying if victim.uid in protected]


def kept_for_good(cluster: Cluster, pods: Iterable[Pod]) -> str:
    """Which budgets will never let some of these pods go, to be put behind a sentence; empty if there are none."""
    budgets = (budget for pod in pods for budget in cluster.budgets.keeping_for_good(pod))
    names = sorted({f"{budget.namespace}/{budget.name}" for budget in budgets})
    return f"; as they are, these will never let them go: {', '.join(names)}" if names else ""


def _progress(cluster: Cluster, reservation: Reservation) -> str:
    there = [cluster.pods[victim.uid] for victim in reservation.victims if victim.uid in cluster.pods]
    where = f"room is being made on node {reservation.node}"
    if is_lost(cluster, reservation):
        return f"room was being made on node {reservation.node}, which cannot take it any more; another place is sought"
    if protected := protected_victims(cluster, reservation):
        by = kept_for_good(cluster, protected)
        return f"{where}, but a disruption budget does not let go now: {_names(protected)}{by}"
    if there:
        return _and_its_price(f"{where}; on their way out: {_names(there)}", lost_by(cluster, reservation))
    return f"room was made on node {reservation.node}; the scheduler has to bind it there"


def _names(pods: Iterable[Pod]) -> str:
    return ", ".join(f"{pod.namespace}/{pod.name}" for pod in pods)


def reservation_of(plan: Plan, since: float, failures: int = 0) -> Reservation:
    """The reservation that records a plan, after so many that have failed.

    Named after the pod and these, so that there is never more than one for it.
    """
    again = f"-{failures + 1}" if failures else ""
    return Reservation(
        name=f"reclaim-{plan.pod.uid}{again}".lower().replace("/", "."),
        pod=name_of(plan.pod),
        node=plan.node,
        victims=tuple(name_of(victim) for victim in plan.victims),
        since=since,
        failures=failures,
    )


def obsolete(cluster: Cluster) -> list[Reservation]:
    """Reservations that were given up and need not be remembered: the pod waits no more, or a later one tells more."""
    most: dict[str, int] = {}
    given_up = [reservation for reservation in cluster.reservations.given_up.values() if reservation.reason == RECLAIM]
    for reservation in given_up:
        most[reservation.pod.uid] = max(reservation.failures, most.get(reservation.pod.uid, 0))
    return [
        reservation
        for reservation in given_up
        if not cluster.reservations.is_in_force(reservation) or reservation.failures < most[reservation.pod.uid]
    ]


def name_of(pod: Pod) -> PodName:
    """Which pod."""
    return PodName(pod.namespace, pod.name, pod.uid)
