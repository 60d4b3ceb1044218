"""Jobs as REST shows them: pod groups, and reservations for starving jobs."""

from app.api.models import ConditionModel, PodGroupModel, ReservationModel
from app.times import rfc3339, rfc3339_or_empty
from policy.cluster.cluster import Cluster
from policy.objects.job import Job, job_name, short
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.reserve import node_reservation, starving
from policy.reserve.node_reservation import ReserveDecision
from policy.reserve.starving import Terms
from policy.stepwise import Steps


def reservation_model(reservation: Reservation) -> ReservationModel:
    """Shows a reservation of either reason."""
    pod = reservation.pod
    return ReservationModel(
        name=reservation.name,
        reason=reservation.reason,
        pod=f"{pod.namespace}/{pod.name}",
        job=f"{pod.namespace}/{short(reservation.job) or pod.name}",
        node=reservation.node,
        victims=[f"{victim.namespace}/{victim.name}" for victim in reservation.victims],
        since=rfc3339(reservation.since),
        promised_start=rfc3339_or_empty(reservation.promised_start),
        moved=reservation.moved,
    )


def group_model_steps(cluster: Cluster, namespace: str, name: str, terms: Terms, now: float) -> Steps[PodGroupModel]:
    """Shows a pod group that exists. ``now`` is in seconds since the epoch."""
    job = cluster.groups.job(namespace, name)
    assert job is not None, "a group is a job"  # noqa: S101
    decision = yield from _decision_steps(cluster, job, terms, now)
    why_not = decision if decision is not None and decision.reason not in ("", node_reservation.READY) else None
    reserved = cluster.reservations.reserved.of_job(namespace, name)
    return PodGroupModel(
        namespace=namespace,
        name=short(name),
        kind=name.partition("/")[0],
        minimum=job.minimum,
        ready=job.ready,
        pending=len(job.waiting),
        reserved=len(reserved),
        nodes=sorted({each.node for each in reserved}),
        conditions=[ConditionModel(type=why_not.reason, reason=why_not.reason, message=why_not.text)]
        if why_not
        else [],
    )


def reservation_text_steps(cluster: Cluster, pod: Pod, terms: Terms, now: float) -> Steps[str]:
    """Says what is reserved for a pod's job, or why nothing is although it starves; empty if it does not starve."""
    own = cluster.reservations.reserved.of_pod(pod.uid)
    if own is not None and cluster.reservations.is_in_force(own):
        others = "no other pod may start" if cluster.rules.whole_nodes else "other pods may start only beside its room"
        start = f"; its nodes have room by {rfc3339(own.promised_start)} at the latest" if own.promised_start else ""
        moved = f" (moved: {own.moved})" if own.moved else ""
        return f"node {own.node} is reserved for it since {rfc3339(own.since)}: {others} there{start}{moved}"
    job = cluster.job_members.find(pod.namespace, job_name(cluster.membership.groups, pod))
    decision = (yield from _decision_steps(cluster, job, terms, now)) if job else None
    if decision is None or not pod.pending:
        return ""
    if decision.text:
        return f"it starves, and no node is reserved for it: {decision.text}"
    nodes = {place.pod.uid: place.node for place in decision.places}
    return f"it starves; to be reserved for it: node {nodes[pod.uid]}" if pod.uid in nodes else ""


def _decision_steps(cluster: Cluster, job: Job, terms: Terms, now: float) -> Steps[ReserveDecision | None]:
    """Decides what to reserve for a job, if it starves or has a reservation."""
    own = cluster.reservations.reserved.of_job(job.namespace, job.name)
    if not (own or starving.is_starving(cluster, job, terms, now)):
        return None
    decision = yield from node_reservation.decide_steps(cluster, job, terms, now)
    return decision
