"""REST for people and scripts: quotas and explanations."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from app.api import expected, gates, history, jobs, queued_jobs, queues, waiting
from app.api.evictions import evicted_model, evicted_sentence
from app.api.explanations import explanation, holders_of
from app.api.history import HistoryList
from app.api.models import (
    ConditionModel,
    DecisionList,
    DecisionModel,
    ElasticQuotaList,
    ElasticQuotaModel,
    EvictedList,
    EvictionModel,
    ExplanationModel,
    GatedList,
    NominationModel,
    PlanModel,
    PodGroupList,
    ProblemModel,
    QueuedJobList,
    QueueList,
    QueueModel,
    ReservationList,
    WaitingList,
    WaitingModel,
)
from app.api.run_times import run_times_of
from app.api.waiting import Wanted
from app.ending import end_of_job
from app.extender.decisions import MOST, Decision
from app.observability.evictions import MOST as EVICTIONS
from app.pause import Pause, at_leisure
from app.problems import MEDIA_TYPE, Problem
from app.settings import Settings
from app.shapes import quantities, used_of
from app.store.store import Store
from app.times import rfc3339
from app.whatif.expected_starts import ExpectedStarts
from app.whatif.missing_claims import missing_claim
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import shown
from policy.explain.next_steps import NextStep, Times, next_steps, notice_on
from policy.explain.remedy import listed
from policy.explain.terminating import conditions_of_quota, late_beside, sentences
from policy.explain.unforeseen import unforeseen
from policy.explain.verdicts import verdict_on
from policy.objects.job import short
from policy.objects.job_kind import JOB
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation
from policy.objects.verdict import Verdict
from policy.preemption import joint_plans, plan_text, preemptors, reclaim
from policy.preemption.losses import LostJobs
from policy.preemption.plans import NoPlan
from policy.queueing import positions
from policy.quota import elastic_quota, queue_rules
from policy.quota.closed_queues import near
from policy.quota.elastic_quota import ElasticQuota
from policy.reserve import node_reservation, starving
from policy.reserve.starving import Terms

_PROBLEM = {"content": {MEDIA_TYPE: {"schema": ProblemModel.model_json_schema()}}, "description": "A problem document"}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describes errors with these statuses."""
    return dict.fromkeys(statuses, _PROBLEM)


router = APIRouter(prefix="/api/v1", responses=problems(401, 403, 422, 429, 503))

PREVIEWED = 200
"""Waiting pods that a preview looks at, so that it ends soon."""


async def store_of(request: Request) -> Store:
    """Returns the store of this process. Raises Problem (503) while its state is not complete."""
    store: Store = request.app.state.store
    if not store.synced:
        raise Problem(503, store.unready(), retry_after=1)
    return store


SyncedStore = Annotated[Store, Depends(store_of)]


@router.get("/elasticquotas")
async def list_elastic_quotas(store: SyncedStore) -> ElasticQuotaList:
    """Lists all elastic quotas with what their namespaces use."""
    namespaces = sorted(store.cluster.quotas)
    return ElasticQuotaList(items=[quota for namespace in namespaces for quota in _quotas_in(store, namespace)])


@router.get("/elasticquotas/{namespace}")
async def list_elastic_quotas_of_namespace(namespace: str, store: SyncedStore) -> ElasticQuotaList:
    """Lists the elastic quotas of a namespace. If there are several, only one of them is in force."""
    return ElasticQuotaList(items=_quotas_in(store, namespace))


@router.get("/queues")
async def list_queues(store: SyncedStore) -> QueueList:
    """Lists all queues with what they deserve and use, and their namespaces."""
    return QueueList(items=[queues.model(store.cluster, name) for name in sorted(store.cluster.queues)])


@router.get("/queues/{name}", responses=problems(404))
async def show_queue(name: str, store: SyncedStore) -> QueueModel:
    """Shows a queue. Raises Problem (404) if it does not exist."""
    if name not in store.cluster.queues:
        raise Problem(404, f"there is no queue {name}")
    return queues.model(store.cluster, name)


@router.get("/pods/{namespace}/{name}")
async def explain_pod(namespace: str, name: str, request: Request, store: SyncedStore) -> ExplanationModel:
    """Explains why a pod is admitted or not. The verdict on an unknown pod is ``unknown``."""
    pod = store.cluster.pod(namespace, name)
    verdict = _with_near_names(store.cluster, pod, verdict_on(store.cluster, namespace, name))
    if pod is None or not pod.pending:
        late = sentences(store.cluster, late_beside(store.cluster, pod), rfc3339) if pod else ()
        steps = notice_on(store.cluster, pod, _times(request, store)) if pod is not None and pod.assigned else []
        shown = explanation((namespace, name), verdict, "", (), steps, None, late)
        gone = store.evictions.of(namespace, name)
        if gone is None or (pod is not None and pod.uid != gone.uid):
            return shown
        more = {"evicted": evicted_model(gone), "summary": f"{shown.summary} {evicted_sentence(gone)}"}
        return shown.model_copy(update=more)
    return await _explain(request, store, pod, verdict, (namespace, name), f"{namespace}/{name}")


@router.get("/jobs", responses=problems(404))
async def list_jobs(
    store: SyncedStore, namespace: str | None = None, limit: Annotated[int, Query(ge=1, le=100_000)] = 1000
) -> QueuedJobList:
    """Lists the Jobs that wait as a whole or are being started, of one ``namespace`` or of all; ``limit`` bounds it.

    Raises Problem (404) for an unknown namespace.
    """
    _ensure_known(store.cluster, namespace)
    return await queued_jobs.queued(store.cluster, namespace, limit)


@router.get("/jobs/{namespace}/{name}")
async def explain_job(namespace: str, name: str, request: Request, store: SyncedStore) -> ExplanationModel:
    """Explains why a Job that waits as a whole is started or not. The verdict on any other Job is ``unknown``."""
    return await explain_job_of_kind(namespace, JOB.name.lower(), name, request, store)


@router.get("/jobs/{namespace}/{kind}/{name}")
async def explain_job_of_kind(
    namespace: str, kind: str, name: str, request: Request, store: SyncedStore
) -> ExplanationModel:
    """Explains the same of a job of another ``kind``, in lower case: ``jobset``."""
    cluster, kind = store.cluster, kind.lower()
    pod = queued_jobs.stand_in_of(cluster, namespace, kind, name)
    if pod is None:
        verdict = queued_jobs.verdict_on_other(cluster, namespace, kind, name)
        title = f"{JOB.name if kind == JOB.name.lower() else kind} {namespace}/{name}"
        return explanation((namespace, name), verdict, "", (), (), None, title=title)
    title = pod.object
    verdict = _with_near_names(cluster, pod, verdict_on(cluster, namespace, pod.name))
    return await _explain(request, store, pod, verdict, (namespace, name), title)


async def _explain(
    request: Request, store: Store, pod: Pod, verdict: Verdict, name: tuple[str, str], title: str
) -> ExplanationModel:
    """Explains the verdict on a waiting pod, or on the Job that it stands for."""
    cluster, trials = store.cluster, request.app.state.trials
    settings: Settings = request.app.state.settings
    outlook = "; ".join(filter(None, [each async for each in _outlooks(request, cluster, pod)]))
    held = holders_of(cluster, pod, verdict)
    steps = await at_leisure(
        next_steps(cluster, pod, settings.reserve.terms, _times(request, store), settings.why_idle)
    )
    if missing := missing_claim(store, settings, pod):
        steps = [NextStep("claim-missing", f"{missing} does not exist"), *steps]
        steps = [each for each in steps if each.step != "to-be-tried"]
    if not pod.terminating:
        steps += end_of_job(cluster, pod, time.time())
    waits = verdict.outcome == "refused" or pod.uid in cluster.attempts.unschedulable_since
    is_tried = waits and pod.stands_for is None  # trials know pods alone
    # remedies are tried anew if this changes. Figures change all the time: those that matter are in the hints
    in_words = replace(verdict, numbers={})
    searched = await trials.remedies(pod, (repr(in_words), outlook)) if is_tried else None
    starts: ExpectedStarts = request.app.state.expected_starts
    await starts.renew()
    start, fails = expected.model(starts, [pod]), unforeseen(cluster, pod)
    if fails and searched:
        searched = searched.rather_than_wait(fails.remedy)
    late, observe = sentences(cluster, late_beside(cluster, pod), rfc3339), settings.observes
    shown = explanation(name, verdict, outlook, held, steps, searched, late, observe=observe, title=title)
    more = {"gate": gates.place_of(cluster, pod), "expected_start": start}
    said = expected.sentence(start, fails.why if fails else "")
    return shown.model_copy(update=more | {"summary": shown.summary + said})


def _times(request: Request, store: Store) -> Times:
    now, of_reclaim = store.clock(), request.app.state.settings.reclaim
    return Times(now, time.time() - now, of_reclaim.delay, of_reclaim.notice)


@router.get("/waiting", responses=problems(404))
async def list_waiting(
    request: Request,
    store: SyncedStore,
    namespace: str | None = None,
    queue: str | None = None,
    rule: str | None = None,
    sort: str = "since",
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    token: Annotated[str | None, Query(alias="continue", max_length=4096)] = None,
) -> WaitingList:
    """Lists everything that waits by job: of a ``namespace``, a ``queue``, for a ``rule``, or all.

    ``sort`` is ``since``, ``name``, ``queue``, ``rule`` or ``pods``. ``continue`` is that of the page before. Raises
    Problem (404) for an unknown namespace or queue, and (422) for an unknown rule, order or token.
    """
    _ensure_known(store.cluster, namespace)
    settings: Settings = request.app.state.settings
    wanted = Wanted(namespace, None if queue is None else (queue,), rule, sort, limit, token)
    starts: ExpectedStarts = request.app.state.expected_starts
    await starts.renew()
    return await waiting.waiting(store.cluster, wanted, starts, observe=settings.observes)


@router.get("/history", responses=problems(404))
async def show_history(
    request: Request,
    store: SyncedStore,
    queue: str | None = None,
    quota: str | None = None,
    since: Annotated[str, Query(max_length=history.LONGEST)] = "24h",
    step: Annotated[str, Query(max_length=history.LONGEST)] = "5m",
) -> HistoryList:
    """Shows what happened in the last day: of a ``queue`` or a ``quota`` (NAMESPACE/NAME) in steps, else of all in sum.

    ``since`` and ``step`` are durations, like 90m or 2h30m. Without a queue or quota, the step is the whole time.
    Raises Problem (404) for a queue or quota that was not there, and (422) for what is no duration.
    """
    return await history.history(store.cluster, request.app.state.recorder, queue, quota, since, step)


@router.get("/evictions")
async def list_evictions(
    store: SyncedStore, namespace: str | None = None, limit: Annotated[int, Query(ge=1, le=EVICTIONS)] = 100
) -> EvictedList:
    """Lists the latest evictions by this replica, the latest first: for whom, why, and with which numbers."""
    there = (each for each in store.evictions if namespace in (None, each.namespace))
    return EvictedList(items=[evicted_model(each) for each in islice(there, limit)])


@router.get("/decisions")
async def list_decisions(request: Request, limit: Annotated[int, Query(ge=1, le=MOST)] = 100) -> DecisionList:
    """Lists the latest answers of filter to kube-scheduler, the latest first."""
    return DecisionList(items=[_decision(each) for each in islice(request.app.state.decisions, limit)])


@router.get("/gates", responses=problems(404))
async def list_gated(
    store: SyncedStore, namespace: str | None = None, limit: Annotated[int, Query(ge=1, le=100_000)] = 1000
) -> GatedList:
    """Lists the jobs at gates with their places, of one ``namespace`` or of all; ``limit`` bounds the list.

    Raises Problem (404) for an unknown namespace, since an empty list would look like good news.
    """
    _ensure_known(store.cluster, namespace)
    return await gates.gated(store.cluster, namespace, limit)


@router.get("/reservations")
async def list_reservations(store: SyncedStore) -> ReservationList:
    """Lists the room that is kept, and for which pods."""
    cluster = store.cluster
    there = (*cluster.reservations.plans.values(), *cluster.reservations.reserved)
    reservations = sorted(there, key=lambda each: each.name)
    return ReservationList(items=[jobs.reservation_model(each) for each in reservations])


@router.get("/podgroups")
async def list_pod_groups(request: Request, store: SyncedStore) -> PodGroupList:
    """Lists all pod groups with their members, and what is reserved for each."""
    terms, items = request.app.state.settings.reserve.terms, []
    for key in sorted(store.cluster.membership.groups, key=lambda key: (key[0], short(key[1]), key[1])):
        if key in store.cluster.membership.groups:
            items.append(await at_leisure(jobs.group_model_steps(store.cluster, *key, terms, time.time())))
        await asyncio.sleep(0)
    return PodGroupList(items=items)


@router.get("/plan")
async def show_plan(request: Request, store: SyncedStore) -> PlanModel:
    """Shows the plans for waiting pods, those under way and those that would be made now. Changes nothing."""
    settings: Settings = request.app.state.settings
    cluster = store.cluster
    plan = PlanModel(evictions=[], nominations=[], reservations=[], waiting=[])
    for reservation in list(cluster.reservations.plans.values()):
        if reservation.name not in cluster.reservations.plans:
            continue  # it has ended in a pause
        there = [victim for victim in reservation.victims if victim.uid in cluster.pods]
        _add(plan, reservation, there, reclaim.lost_by(cluster, reservation))
        if reclaim.protected_victims(cluster, reservation):
            pod = cluster.pods[reservation.pod.uid]
            message = await at_leisure(plan_text.for_pod_steps(cluster, pod))
            plan.waiting.append(WaitingModel(pod=f"{pod.namespace}/{pod.name}", reason="budget", message=message))
    pods = (await at_leisure(preemptors.waiting_steps(cluster, store.clock(), settings.reclaim.delay)))[:PREVIEWED]
    pause = Pause()
    for answer in joint_plans.preview(cluster, pods):
        await pause.if_due()
        if answer is None:
            continue
        pod, result = answer
        if isinstance(result, NoPlan):
            message = result.text
            plan.waiting.append(WaitingModel(pod=f"{pod.namespace}/{pod.name}", reason=result.reason, message=message))
        else:
            planned = reclaim.reservation_of(result, time.time())
            _add(plan, planned, planned.victims, result.lost)
    await _add_reserved(plan, cluster, settings.reserve.terms)
    return plan


async def _add_reserved(plan: PlanModel, cluster: Cluster, terms: Terms) -> None:
    """Adds the reserved nodes, and those that would be reserved."""
    now = time.time()
    starve = (await at_leisure(starving.in_turn_steps(cluster, terms, now)))[:PREVIEWED]
    pause = Pause()
    for decision in node_reservation.preview(cluster, starve, terms, now):
        await pause.if_due()
        if decision is None:
            continue
        for place in decision.places:
            known = cluster.reservations.reserved.of_pod(place.pod.uid)
            plan.reservations.append(
                jobs.reservation_model(known or node_reservation.reservation_of(decision.job, place, now))
            )
        if decision.text and decision.job.waiting:
            first = decision.job.waiting[0]
            message = f"no node is reserved for {decision.job.title}: {decision.text}"
            plan.waiting.append(
                WaitingModel(pod=f"{first.namespace}/{first.name}", reason=decision.reason, message=message)
            )


def _ensure_known(cluster: Cluster, namespace: str | None) -> None:
    if namespace is not None and not cluster.knows_namespace(namespace):
        raise Problem(404, f"there is no namespace {namespace}", field="namespace")


def _with_near_names(cluster: Cluster, pod: Pod | None, verdict: Verdict) -> Verdict:
    """Adds existing queues with similar names to a verdict on a pod whose queue does not exist."""
    if pod is None or verdict.rule != queue_rules.CLOSED.name or (name := cluster.queue_of(pod)) in cluster.queues:
        return verdict
    found = near(name, sorted(cluster.queues))
    return replace(verdict, message=f"{verdict.message}; there is {listed(found)}") if found else verdict


def _decision(decision: Decision) -> DecisionModel:
    refused = decision.refused
    return DecisionModel(
        at=datetime.fromtimestamp(decision.at, UTC).isoformat(timespec="milliseconds"),
        pod=f"{decision.namespace}/{decision.name}",
        verdict=decision.verdict,
        rule=refused.rule if refused else "",
        message=refused.message if refused else "",
    )


async def _outlooks(request: Request, cluster: Cluster, pod: Pod) -> AsyncIterator[str]:
    yield positions.position_text(cluster, pod)
    yield await at_leisure(plan_text.for_pod_steps(cluster, pod))
    terms: Terms = request.app.state.settings.reserve.terms
    yield await at_leisure(jobs.reservation_text_steps(cluster, pod, terms, time.time()))


def _add(plan: PlanModel, reservation: Reservation, victims: Sequence[PodName], lost: LostJobs) -> None:
    pod = f"{reservation.pod.namespace}/{reservation.pod.name}"
    for victim in victims:
        plan.evictions.append(
            EvictionModel(
                pod=f"{victim.namespace}/{victim.name}",
                node=reservation.node,
                for_=pod,
                reason=reservation.reason,
                fails_job=lost.failing.get(victim.uid, ""),
                suspends_job=lost.suspending.get(victim.uid, ""),
                lowers_job=lost.lowering.get(victim.uid, ""),
            )
        )
    plan.nominations.append(NominationModel(pod=pod, node=reservation.node))
    plan.reservations.append(jobs.reservation_model(reservation))


def _quotas_in(store: Store, namespace: str) -> list[ElasticQuotaModel]:
    quotas = store.cluster.quotas.get(namespace, {})
    governing = elastic_quota.in_force(quotas.values())
    if governing is None:
        return []
    return [_quota(store.cluster, quota, governing) for _, quota in sorted(quotas.items())]


def _quota(cluster: Cluster, quota: ElasticQuota, governing: ElasticQuota) -> ElasticQuotaModel:
    used = shown(cluster, cluster.ledger.account(quota.namespace).used) if quota is governing else {}
    lent = [resource for resource in {**quota.min, **used} if resource in cluster.ledger.pool.min]
    return ElasticQuotaModel(
        namespace=quota.namespace,
        name=quota.name,
        min=quantities(quota.min),
        max=quantities(quota.max),
        used=quantities(used_of(cluster, quota, used)),
        borrowed=quantities(
            {resource: max(0, used.get(resource, 0) - quota.min.get(resource, 0)) for resource in lent}
        ),
        available=quantities({resource: max(0, most - used.get(resource, 0)) for resource, most in quota.max.items()}),
        run_times=run_times_of(cluster, quota, (quota.namespace, quota.name)),
        conditions=[
            ConditionModel(type=condition.type, reason=condition.reason, message=condition.message)
            for condition in conditions_of_quota(cluster, quota, governing)
        ],
    )
