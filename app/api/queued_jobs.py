"""Jobs that wait as a whole, as REST shows them."""

import asyncio

from app.api import gates
from app.api.models import QueuedJobList, QueuedJobModel
from app.shapes import quantities
from app.times import rfc3339_or_empty
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import shown
from policy.objects.job_kind import JOB
from policy.objects.pod import Pod
from policy.objects.verdict import Refusal, Verdict
from policy.queueing import positions
from policy.quota.closed_queues import shortened

WAITING, STARTING, GROWING = "waiting", "starting", "growing"
"""The states of a Job that waits as a whole."""


async def queued(cluster: Cluster, namespace: str | None, limit: int) -> QueuedJobList:
    """Returns the first ``limit`` Jobs of a namespace or of all: those that are starting, and those that wait."""
    first = [pod for pod in cluster.queued_jobs.starting() if namespace in (None, pod.namespace)]
    first.sort(key=lambda pod: (cluster.queue_of(pod), pod.namespace, pod.name))
    total, items, refusals = len(first), list[QueuedJobModel](), gates.Refusals(cluster)
    for pod in first[:limit]:
        items.append(_in_no_line(cluster, pod))
        if len(items) % gates.SLICE == 0:
            await asyncio.sleep(0)
    async for queue, place, job in gates.in_order(cluster, namespace):
        pod = job.first()
        if pod.stands_for is not None:
            total += 1
            if len(items) < limit:
                items.append(_in_line(cluster, pod, place, refusals.of(queue, job)))
    return QueuedJobList(total=total, items=items)


def stand_in_of(cluster: Cluster, namespace: str, kind: str, name: str) -> Pod | None:
    """Returns the stand-in of a job of a kind in lower case, for as few pods as are enough; None if there is none."""
    pod = cluster.pod(namespace, f"{kind}/{name}")
    return cluster.queued_jobs.at_least(pod) if pod is not None and pod.stands_for is not None else None


def verdict_on_other(cluster: Cluster, namespace: str, kind: str, name: str) -> Verdict:
    """Returns what is said of a job that does not wait as a whole."""
    jobs = cluster.batch_jobs
    job = jobs.get((namespace, name)) if kind == JOB.name.lower() else jobs.others.named(kind, namespace, name)
    if job is not None:
        why = "it runs, has ended, or is suspended by its owner: explain its pods, if there are any"
        what = f"{job.kind.name} {name} in namespace {namespace}"
        return Verdict("unknown", message=f"{what} does not wait as a whole; {why}")
    what = JOB.name if kind == JOB.name.lower() else kind
    return Verdict("unknown", message=f"no {what} {name} in namespace {namespace} is known")


def _in_line(cluster: Cluster, pod: Pod, place: int, refused: Refusal | None) -> QueuedJobModel:
    """Shows a Job that stands in a line."""
    of_turn = refused.message if refused else f"it {positions.when_ungated(cluster, pod)}"
    why = positions.let_go_text(cluster, pod) or of_turn
    state = GROWING if pod.stands_for is not None and pod.stands_for.grows else WAITING
    return _model(cluster, pod, state, place, refused, why)


def _in_no_line(cluster: Cluster, pod: Pod) -> QueuedJobModel:
    """Shows a Job that is being started, or that could not be."""
    if pod.uid in cluster.gates.ungated:
        return _model(cluster, pod, STARTING, 0, None, "room is kept for its pods until they have come")
    again = "the API server has not let it be started, and is asked again before long"
    return _model(cluster, pod, WAITING, 0, None, positions.let_go_text(cluster, pod) or again)


def _model(cluster: Cluster, pod: Pod, state: str, place: int, refused: Refusal | None, message: str) -> QueuedJobModel:
    job = pod.stands_for
    assert job is not None, "it is a stand-in"  # noqa: S101
    known = cluster.queued_jobs.of(pod)
    return QueuedJobModel(
        namespace=pod.namespace,
        name=job.name,
        kind=job.kind.name,
        queue=shortened(cluster.queue_of(pod)),
        state=state,
        place=place,
        pods=job.pods,
        min_pods=job.least,
        asked_parallelism=job.asked if job.least else 0,
        demand=quantities(shown(cluster, pod.request)),
        priority=pod.priority,
        since=rfc3339_or_empty(known.since) if known is not None else "",
        rule=refused.rule if refused else "",
        message=message,
    )
