"""Health, readiness and metrics."""

import asyncio
from collections import Counter

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from app.api.models import HealthModel
from app.observability import metrics
from app.observability.queue_metrics import label_of, queue_lines
from app.observability.quota_metrics import base_unit, quota_lines
from app.observability.wait_times import WAIT_TIMES
from app.observability.waiting_metrics import waiting_lines
from app.problems import Problem
from app.readiness import Readiness
from app.store.store import Store
from policy.cluster.cluster import Cluster
from policy.explain.reasons import NO_ROOM, OTHER, UNTRIED, reason_in
from policy.objects.pod import Pod
from policy.objects.reservation import RECLAIM, STARVING
from policy.quota import rules

SLICE = 500
RULES = (*(rule.name for rule in rules.RULES), NO_ROOM, OTHER, UNTRIED)
"""Reasons for which pods are pending, as labels."""

router = APIRouter()
probes = APIRouter()


@probes.get("/healthz")
async def alive() -> HealthModel:
    """Says that the process is alive, whatever it knows of the cluster."""
    return HealthModel(status="ok")


@probes.get("/readyz", response_model_exclude_none=True)
async def ready(request: Request) -> HealthModel:
    """Says that the state is complete and fresh and this replica may be asked; else answers 503 with the reason.

    With ``?verbose`` it also lists what is wrong although this replica may be asked.
    """
    readiness: Readiness = request.app.state.readiness
    reason = readiness.unready()
    if reason:
        raise Problem(503, reason, retry_after=1)
    return HealthModel(status="ok", warnings=readiness.store.warnings if "verbose" in request.query_params else None)


@router.get("/metrics", response_class=Response)
async def prometheus(request: Request) -> Response:
    """Returns metrics in Prometheus' text format."""
    store: Store = request.app.state.store
    _refresh(store)
    metrics.OBSERVING.set(request.app.state.settings.observes)
    await _count_pending(store.cluster)
    text = generate_latest() + await quota_lines(store.cluster.ledger) + await queue_lines(store.cluster)
    text += await waiting_lines(store.cluster) + await WAIT_TIMES.lines()
    return Response(text, media_type=CONTENT_TYPE_LATEST)


async def _count_pending(cluster: Cluster) -> None:
    """Sets the number of pending pods by rule, and of Jobs that wait as a whole.

    Works in slices, between which the loop answers the scheduler.
    """
    waiting, jobs = dict.fromkeys(RULES, 0), Counter[tuple[str, str]]()
    for index, pod in enumerate(list(cluster.pods.values()), start=1):
        if pod.stands_for is not None:
            waits = pod.uid not in cluster.grants and not pod.stands_for.grows
            jobs[label_of(cluster, pod), pod.namespace] += waits
        elif _is_before_the_scheduler(cluster, pod):
            waiting[_waits_for(pod)] += 1
        if index % SLICE == 0:
            await asyncio.sleep(0)
    for rule, number in waiting.items():
        metrics.PENDING.labels(rule).set(number)
    metrics.PENDING_JOBS.clear()  # a namespace whose Jobs have all started is gone
    for (queue, namespace), number in (+jobs).items():
        metrics.PENDING_JOBS.labels(queue, namespace).set(number)


def _is_before_the_scheduler(cluster: Cluster, pod: Pod) -> bool:
    """Whether a scheduler has to place a pod: it waits at no gate, and was not admitted yet."""
    waits = pod.pending and not pod.terminating
    return waits and not pod.gated and not pod.at_gate and pod.uid not in cluster.grants


def _waits_for(pod: Pod) -> str:
    return UNTRIED if pod.unschedulable is None else reason_in(pod.unschedulable.message)


def _refresh(store: Store) -> None:
    """Sets the gauges that are cheaper to compute on request than to maintain."""
    now = store.clock()
    cluster = store.cluster
    for kind in store.kinds:
        metrics.OBJECTS.labels(kind.label).set(len(store.known(kind)))
        metrics.WATCH_LAG.labels(kind.label).set(store.staleness(kind.label, now))
        metrics.DEFINITION_GONE.labels(kind.label).set(store.lacks(kind))
    metrics.SYNCED.set(0 if store.unready() else 1)
    starting = sum(pod.uid in cluster.grants for pod in cluster.queued_jobs.starting())  # no pods, though they count
    metrics.GRANTS.set(len(cluster.grants) - starting)
    metrics.GATED.set(cluster.gates.pods)
    metrics.UNGATED.set(len(cluster.gates.ungated) - starting)
    metrics.RESERVATIONS.labels(RECLAIM).set(len(cluster.reservations.plans))
    metrics.RESERVATIONS.labels(STARVING).set(len(cluster.reservations.reserved))
    metrics.OVERDUE.clear()
    for namespace, number in cluster.leaving.overdue.namespaces().items():
        metrics.OVERDUE.labels(namespace).set(number)
    metrics.UNJUDGED.clear()
    for namespace, uids in cluster.table.demanding.unjudged().items():
        metrics.UNJUDGED.labels(namespace).set(len(uids))
    for gauge in (metrics.ALLOCATABLE, metrics.REQUESTED):
        gauge.clear()  # a resource that no node names any more is gone
    for resource, (allocatable, requested) in cluster.table.totals().items():
        metrics.ALLOCATABLE.labels(resource).set(base_unit(resource, allocatable))
        metrics.REQUESTED.labels(resource).set(base_unit(resource, requested))
