"""Next steps of a waiting pod, and when: what is under way for it, what is planned, what it waits for.

Each sentence comes from the code that will decide it, as things stand now. So it foretells nothing that no controller
would do.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from policy.cluster.cluster import Cluster
from policy.explain import gang_hints
from policy.explain.node_taints import taints_text
from policy.explain.remedy import first_of, listed, names_of
from policy.explain.run_time_remedies import why_too_long
from policy.explain.unanswered import unanswered_in
from policy.nodes import fit
from policy.objects.job import job_name, short
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import plan_text, preemptors, reclaim, victims
from policy.preemption.foreseen import foreseen_steps, time_text
from policy.preemption.plans import NoPlan, Plan
from policy.queueing import positions
from policy.reserve import node_reservation, starving
from policy.reserve.starving import Terms
from policy.stepwise import Steps

MOMENT = 0.001
"""Seconds past the threshold at which a job is taken to starve."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """Something under way or to come. ``step`` names it; ``after`` is in seconds from now, None: not known."""

    step: str
    text: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """``now`` is on the cluster's clock; ``now + epoch`` is in seconds since the epoch.

    ``delay``: seconds that a pod waits until victims are evicted for it. ``notice``: seconds for which victims are told
    beforehand.
    """

    now: float
    epoch: float
    delay: float
    notice: float = 0.0


NOT_JUDGED = "not-judged"
"""The step of a pod that has more constraints than are judged."""
NOT_ELASTIC = "not-elastic"
"""The step of a Job whose minimum cannot be read."""

WhyIdle = Callable[[str], str]
"""Tells people why a controller (by its name) does not act; empty if it does."""


def acts(_: str) -> str:
    """Says that every controller acts."""
    return ""


def next_steps(
    cluster: Cluster, pod: Pod, terms: Terms, times: Times, why_idle: WhyIdle = acts
) -> Steps[list[NextStep]]:
    """Returns the next steps in order; none for a pod that does not wait. Iterate to the end; it may pause."""
    if not pod.pending or pod.terminating:
        return []
    if pod.gated:
        return [NextStep("gated", "a scheduling gate keeps the scheduler from looking at it")]
    if too_long := why_too_long(cluster, pod):
        return [NextStep("run-time-limit", f"a limit on run times refuses it: {too_long}")]
    of_reclaim = yield from _of_reclaim_steps(cluster, pod, times, why_idle("reclaim"))
    of_reserving = yield from _of_reserving_steps(cluster, pod, terms, times, why_idle("reserve"))
    steps = [
        *_of_gate(cluster, pod, why_idle("gates")),
        *_of_no_answer(pod),
        *_of_taints(cluster, pod, of_reclaim),
        *of_reclaim,
        *_of_gang(cluster, pod, times),
        *_of_kept_nodes(cluster, pod, times),
        *of_reserving,
    ] or [_to_be_tried(cluster, pod)]
    return [*steps, *_of_excess(cluster, pod), *_of_elasticity(cluster, pod)]


def notice_on(cluster: Cluster, pod: Pod, times: Times) -> list[NextStep]:
    """Returns when a pod on a node is evicted, and for whom, while the notice of a plan runs; else nothing."""
    now = times.now + times.epoch
    if not times.notice or pod.terminating or pod.finished or cluster.leaving.has_been_asked(pod.uid):
        return []
    plans = [each for each in cluster.reservations.plans.values() if each.since + times.notice > now]
    for plan in sorted(plans, key=lambda each: each.since):
        if cluster.reservations.is_in_force(plan) and reclaim.takes(cluster, plan, pod):
            at = plan.since + times.notice
            text = f"it will be evicted at {time_text(at, now)} for {plan.pod.namespace}/{plan.pod.name}"
            return [NextStep("to-be-evicted", text, at - now)]
    return []


def unjudged_text(what: str) -> str:
    """Returns what it means for a pod to have more of something than is judged."""
    return f"{what}: it is let in by numbers, nobody is evicted for it, and its anti-affinity keeps nobody away here"


def _of_excess(cluster: Cluster, pod: Pod) -> Iterator[NextStep]:
    """Tells that its demands are not judged, as there are too many of them."""
    what = fit.unjudged(cluster.table, pod)
    if what:
        yield NextStep(NOT_JUDGED, unjudged_text(what))


def _of_elasticity(cluster: Cluster, pod: Pod) -> Iterator[NextStep]:
    """Tells why a Job that is to be elastic is not."""
    job = cluster.batch_jobs.of_stand_in(pod)
    if job is not None and job.problem:
        yield NextStep(NOT_ELASTIC, job.problem)


def _of_gate(cluster: Cluster, pod: Pod, idle: str) -> Iterator[NextStep]:
    """Tells its position in the line, and what it waits for."""
    text = positions.position_text(cluster, pod)
    if text:
        nobody = "no Job is started" if pod.stands_for is not None else "nobody is ungated"
        yield NextStep("at-gate", f"{text}; {nobody}: {idle}" if idle else text)


def _of_reclaim_steps(cluster: Cluster, pod: Pod, times: Times, idle: str) -> Steps[list[NextStep]]:
    for reservation in cluster.reservations.plans.values():
        if reservation.pod.uid == pod.uid:
            return [_progress(cluster, reservation, times)]
    since = preemptors.waits_since(cluster, pod)
    if since is None or not cluster.is_governed(pod) or cluster.gangs.is_waiting(pod):
        return []
    if preemptors.is_shut_out(cluster, pod):
        return []
    result = yield from victims.search_steps(cluster, pod)
    if not isinstance(result, NoPlan):
        return [_planned(cluster, pod, result, since + times.delay, times.now, idle)]
    return (yield from _without_plan_steps(cluster, pod, result, times, idle))


def _without_plan_steps(cluster: Cluster, pod: Pod, result: NoPlan, times: Times, idle: str) -> Steps[list[NextStep]]:
    if result.reason == "waiting":
        return [NextStep("room-coming", f"node {result.node} will have room for it when pods that are going are gone")]
    later = yield from foreseen_steps(cluster, pod, result.moments)
    if later is not None:
        return [_foreseen(*later, times, idle)]
    roomy = result.reason == "undecidable" and fit.fits(cluster.table, pod).any()
    if result.reason == "room" or (roomy and not fit.unlisted(cluster.table, pod)):
        return []  # a node has room, as far as is known
    step = "undecidable" if result.reason == "undecidable" else "nobody-to-evict"
    return [NextStep(step, f"nobody is evicted for it: {result.text}")]


def _planned(cluster: Cluster, pod: Pod, plan: Plan, at: float, now: float, idle: str) -> NextStep:
    """Tells which victims would be evicted for it, if no other pod comes first and room is made at all."""
    who = f"{names_of(plan.victims)} on node {plan.node}"
    price = f"; {plan.lost.text}" if plan.lost.text else ""
    if idle:
        return NextStep("nobody-to-evict", f"nobody is evicted for it: {idle}; else it would be {who}")
    if (until := cluster.in_vain.waits_until(pod)) > now:
        why = "others went in vain for pods of its namespace, so that it takes a while until somebody goes again"
        return NextStep("reclaim-planned", f"{who} would be evicted for it; {why}{price}", until - now)
    if reason := cluster.failed_evictions.reason(pod.uid):
        are = "is" if len(plan.victims) == 1 else "are"
        return NextStep("evictions-failing", f"{who} {are} to be evicted for it, which fails so far: {reason}")
    if failures := reclaim.failures(cluster, pod):
        again = "1 time" if failures == 1 else f"{failures} times"
        text = f"{who} would be evicted for it; that was given up {again} already, and is tried again later{price}"
        return NextStep("reclaim-planned", text)
    if first := preemptors.others_first(cluster, pod):
        before = "1 pod has its turn" if first == 1 else f"{first} pods have their turn"
        return NextStep("reclaim-planned", f"{who} would be evicted for it; {before} before it{price}")
    return NextStep("reclaim-planned", f"{who} will be evicted for it{price}", max(0.0, at - now))


def _foreseen(at: float, plan: Plan, times: Times, idle: str) -> NextStep:
    """Tells from when on victims would be evicted for it, which min-run-time protects until then."""
    now = times.now + times.epoch
    who, when = f"{names_of(plan.victims)} on node {plan.node}", time_text(at, now)
    if idle:
        text = f"nobody is evicted for it: {idle}; else it would be {who}, from {when} on"
        return NextStep("nobody-to-evict", text)
    price = f"; {plan.lost.text}" if plan.lost.text else ""
    text = f"from {when} on {who} may be evicted for it; until then min-run-time protects what is needed{price}"
    return NextStep("victims-protected", text, max(0.0, at - now))


def _progress(cluster: Cluster, reservation: Reservation, times: Times) -> NextStep:
    node, there = reservation.node, [each for each in reservation.victims if each.uid in cluster.pods]
    leaving = [cluster.pods[victim.uid] for victim in there]
    if reclaim.is_lost(cluster, reservation):
        return NextStep("node-lost", f"node {node} cannot take it any more, so room is made elsewhere if it can be")
    if protected := reclaim.protected_victims(cluster, reservation):
        text = f"room is being made on node {node}, but a disruption budget does not let go now: {names_of(protected)}"
        return NextStep("budget", f"{text}{plan_text.kept_for_good(cluster, protected)}")
    if leaving and plan_text.evictions_fail(cluster, reservation):
        return NextStep("evictions-failing", plan_text.failing(cluster, reservation, names_of(leaving)))
    if leaving and reservation.since + times.notice > (now := times.now + times.epoch):
        at = reservation.since + times.notice
        text = f"{names_of(leaving)} on node {node} were told that they are evicted for it at {time_text(at, now)}"
        return NextStep("notice-given", text, at - now)
    if leaving:
        text = f"room is being made on node {node}: {names_of(leaving)} are on their way out"
        price = reclaim.lost_by(cluster, reservation).text
        return NextStep("victims-leaving", f"{text}; {price}" if price else text)
    return NextStep("to-be-bound", f"room was made on node {node}; the scheduler has to bind it there")


def _of_gang(cluster: Cluster, pod: Pod, times: Times) -> Iterator[NextStep]:
    gangs = cluster.gangs
    group = gangs.gated(pod)
    if group is None or not gangs.is_waiting(pod):
        return
    ready, waiting, name = len(gangs.ready(group)), len(gangs.pending(group)), group.name.rpartition("/")[2]
    text = f"PodGroup {name} starts with {group.minimum} members: {ready} are ready, {waiting} wait"
    if gangs.lacks_members(pod):
        yield NextStep("gang-incomplete", f"{text}; the others are still to be created")
    elif until := gangs.backs_off_until(group.key):
        text = f"{text}; it was not complete in time, and others go first for a while"
        yield NextStep("gang-backs-off", text, max(0.0, until - times.now))
    elif (most := gang_hints.most_if_empty(cluster, pod)) < (missing := gangs.missing(pod)):
        why = f"it lacks {missing} members, and the nodes have room for {most} of them even if they were empty"
        yield NextStep("gang-too-large", f"{text}; it cannot start: {why}")
    elif refused := gang_hints.refused_together(cluster, pod):
        yield NextStep("gang-refused", f"{text}; all together they would be refused: {refused.message}")
    else:
        yield NextStep("gang-waiting", f"{text}; it starts as soon as there is room for all of them at once")


def _of_kept_nodes(cluster: Cluster, pod: Pod, times: Times) -> Iterator[NextStep]:
    """Tells which jobs the nodes are reserved for, if all nodes with room for the pod are."""
    if not len(cluster.reservations.reserved) or pod.uid in cluster.grants:
        return
    fitting = {cluster.table.names[row] for row in np.flatnonzero(fit.fits(cluster.table, pod))}
    if fitting and fitting <= cluster.reservations.nodes_reserved_from(pod):
        promised = dict[str, float]()
        for each in cluster.reservations.reserved:
            if each.node in fitting:
                promised[f"{each.pod.namespace}/{short(each.job)}"] = each.promised_start
        now = times.now + times.epoch
        until = {
            job: f", which has room by {time_text(at, now)} at the latest" if at else "" for job, at in promised.items()
        }
        jobs = listed([f"{job}{until[job]}" for job in sorted(until)])
        text = f"the nodes that have room are reserved for {jobs}, and free for all again once that has started"
        yield NextStep("nodes-reserved", text)


def _of_taints(cluster: Cluster, pod: Pod, of_reclaim: list[NextStep]) -> Iterator[NextStep]:
    """Tells which taints keep it off nodes, if it has room nowhere else and gets none by evictions."""
    nobody_goes = all(each.step == "nobody-to-evict" for each in of_reclaim)
    if nobody_goes and pod.uid not in cluster.grants and (text := taints_text(cluster, pod)):
        yield NextStep("nodes-tainted", text)


def _of_no_answer(pod: Pod) -> Iterator[NextStep]:
    """Tells that its scheduler got no answer from an extender when it last tried it."""
    found = unanswered_in(pod.unschedulable.message) if pod.unschedulable is not None else None
    if found is not None:
        places = "places no pod that this extender has to be asked about"
        remedy = "if the address is wrong, correct urlPrefix in the scheduler's configuration"
        yield NextStep("no-answer", f"its scheduler got no answer from {found.url}, and {places}: {remedy}")


def _of_reserving_steps(cluster: Cluster, pod: Pod, terms: Terms, times: Times, idle: str) -> Steps[list[NextStep]]:
    own, now = cluster.reservations.reserved.of_pod(pod.uid), times.now + times.epoch
    if own is not None and cluster.reservations.is_in_force(own):
        nodes = cluster.reservations.reserved.nodes_of(pod.uid)
        there = [
            each
            for node in nodes
            for each in cluster.table.pods_on(node).values()
            if each.assigned and each.request.keys() != {"pods"}
        ]
        many = f"nodes {first_of(nodes)} are" if len(nodes) > 1 else f"node {own.node} is"
        text = f"{many} reserved for it, and others may not take the room that it needs there"
        if there:
            text = f"{text}; it waits until enough of these have ended: {names_of(there)}"
        if own.promised_start:
            text = f"{text}; its reserved nodes have room by {time_text(own.promised_start, now)} at the latest"
        return [NextStep("node-draining", text)]
    job = cluster.job_members.find(pod.namespace, job_name(cluster.membership.groups, pod))
    tried = pod.uid in cluster.attempts.unschedulable_since or pod.stands_for is not None
    waits = tried and pod.created and terms.max_nodes_percent and not idle
    if job is None or not waits or job.ready >= job.minimum:
        return []
    if starving.is_starving(cluster, job, terms, now):
        decision = yield from node_reservation.decide_steps(cluster, job, terms, now)
        return [NextStep("nothing-reserved", f"no node is reserved for it: {decision.text}")] if decision.text else []
    then = starving.since(job) + terms.starving_after
    if then <= now:
        return []
    decision = yield from node_reservation.decide_steps(cluster, job, terms, then + MOMENT)
    if not decision.places:
        return []
    text = "nodes will be reserved for it if it waits until then, and things stand as they do now"
    return [NextStep("reservation-planned", text, then - now)]


def _to_be_tried(cluster: Cluster, pod: Pod) -> NextStep:
    if pod.stands_for is not None and pod.uid in cluster.grants:
        return NextStep("to-be-bound", "it is being started, and the scheduler is to bind its pods")
    if pod.stands_for is not None:
        return NextStep("at-gate", "the API server has not let it be started, and is asked again before long")
    if pod.uid in cluster.grants:
        return NextStep("to-be-bound", "it was let through; the scheduler is to bind it")
    if pod.unschedulable is None:
        return NextStep("to-be-tried", "the scheduler has not tried it yet")
    return NextStep("to-be-tried", "the scheduler tries it again as soon as something changes that could help")
