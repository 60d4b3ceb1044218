"""How a plan is recorded and carried out: who goes next, who has to stay, and when it is given up.

Seed: capacity scheduling, PostFilter; for what the scheduler never asks an extender: borrowers of the same or a higher
priority, quotas that are in the way on free nodes, victims on several nodes.
"""

from collections.abc import Iterable
from functools import partial
from itertools import islice

from policy.cluster.cluster import Cluster
from policy.nodes import fit
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod
from policy.objects.reservation import RECLAIM, PodName, Reservation
from policy.preemption import victims
from policy.preemption.losses import LostJobs, lost_jobs
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.ranking import importance
from policy.stepwise import Steps, within_steps


def still_planned_steps(cluster: Cluster, reservation: Reservation, staying: Iterable[Pod]) -> Steps[bool]:
    """Whether a plan still holds: the victims that have not gone may all still be evicted for it, and have to.

    Others may be cheaper by now: that alone ends no plan, as owners of pods could else put off their eviction for ever.
    If the rules do not allow it any more, or a budget is in the way, a new plan has to take the same pods.
    Iterate to the end. It may pause, and the cluster may change then; in pauses the reservation exists.
    """
    without, staying = partial(cluster.reservations.without, reservation.name), list(staying)
    only = frozenset(victim.uid for victim in staying)
    pod, node = cluster.pods[reservation.pod.uid], reservation.node
    kept = yield from within_steps(without, victims.plan_with_steps(cluster, pod, node, only))
    if kept is not None and not kept.violations and _uids_of(kept.victims) == _uids_there(cluster, staying):
        return True
    again = cluster.pods.get(reservation.pod.uid)
    if again is None:
        return False
    plan = yield from within_steps(without, victims.search_steps(cluster, again))
    if isinstance(plan, NoPlan) or plan.node != node:
        return False
    return _uids_there(cluster, staying) <= _uids_of(plan.victims)


def _uids_there(cluster: Cluster, pods: Iterable[Pod]) -> set[str]:
    """The UIDs of those of some pods that are still there, and do not end yet."""
    return {pod.uid for pod in pods if pod.uid in cluster.pods and not cluster.pods[pod.uid].terminating}


def _uids_of(pods: Iterable[Pod]) -> set[str]:
    return {pod.uid for pod in pods}


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


def without_failing_jobs(cluster: Cluster, pods: Iterable[Pod]) -> list[Pod]:
    """Those of some pods whose eviction, each alone, fails no Job."""
    going = [cluster.pods[uid] for uid in cluster.leaving.uids]
    return [pod for pod in pods if not lost_jobs(cluster.batch_jobs, [pod], going).failing]


def running_pods(cluster: Cluster, job: BatchJob, most: int | None = None) -> list[Pod]:
    """The pods of a Job that are on nodes, so many at most; without those that stayed when it was suspended before."""
    known = cluster.batch_jobs
    there = (cluster.pods[uid] for uid in known.may_own(job) if uid not in known.stayed)
    return list(islice((pod for pod in there if pod.assigned and known.is_of(pod, job)), most))


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


def with_jobs(cluster: Cluster, reservation: Reservation, most: int) -> list[tuple[Pod, list[Pod]]]:
    """The victims of a plan that have not gone, and with the first one of each Job the pods that go along.

    Those are the pods of the Job on nodes, if it is to be suspended: at most so many.
    """
    known, found = set[str](), list[tuple[Pod, list[Pod]]]()
    for victim in staying(cluster, reservation):
        whole, along = cluster.batch_jobs.whole(victim), list[Pod]()
        if whole is not None and whole.uid not in known:
            known.add(whole.uid)
            if lowering(cluster, reservation, whole) is None:
                along = running_pods(cluster, whole, most)
        found.append((victim, along))
    return found


def takes(cluster: Cluster, reservation: Reservation, pod: Pod) -> bool:
    """Whether a pod on a node goes for a plan: as a victim, or with its Job, which is suspended as a whole."""
    if any(victim.uid == pod.uid for victim in reservation.victims):
        return True
    whole = cluster.batch_jobs.whole(pod)
    if whole is None or lowering(cluster, reservation, whole) is not None:
        return False
    wholes = map(cluster.batch_jobs.whole, staying(cluster, reservation))
    return any(each is not None and each.uid == whole.uid for each in wholes)


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


def failures(cluster: Cluster, pod: Pod) -> int:
    """How many plans for a pod were given up, as far as that is remembered."""
    given_up = cluster.reservations.given_up.values()
    of_pod = (each for each in given_up if each.pod.uid == pod.uid and each.reason == RECLAIM)
    return max((each.failures + 1 for each in of_pod), default=0)


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
