"""The effect of a trial, in words and numbers for people and scripts."""

from typing import TypeVar

from app.shapes import quantities, used_of
from app.whatif.models import (
    AdmittedModel,
    QueueChange,
    QueueFigures,
    QuotaChange,
    QuotaFigures,
    RefusedModel,
    VictimModel,
    WhatIfModel,
)
from app.whatif.trial import Trial
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import shown
from policy.explain.verdicts import LONGEST_SAID
from policy.objects.pod import Pod
from policy.objects.queue import ROOT
from policy.quota import elastic_quota
from policy.quota.rules import named_in
from policy.simulate.waiting_jobs import LARGEST_JOB
from policy.stepwise import Steps

MOST_NAMED = 1000
"""Maximum number of waiting pods that are named."""

EitherFigures = TypeVar("EitherFigures", QuotaFigures, QueueFigures)
Numbers = tuple[dict[tuple[str, str], QuotaFigures], dict[str, QueueFigures]]
SLICE = 20


def numbers_steps(cluster: Cluster) -> Steps[Numbers]:
    """Returns the figures of every elastic quota in force, and of every queue."""
    quotas: dict[tuple[str, str], QuotaFigures] = {}
    for number, (namespace, of_namespace) in enumerate(sorted(cluster.quotas.items())):
        quota = elastic_quota.in_force(of_namespace.values())
        if quota is not None:
            used = used_of(cluster, quota, cluster.ledger.account(namespace).used)
            quotas[namespace, quota.name] = QuotaFigures(
                min=quantities(quota.min), max=quantities(quota.max), used=quantities(used)
            )
        if number % SLICE == 0:
            yield
    queues: dict[str, QueueFigures] = {}
    for name, queue in sorted(cluster.queues.items()):
        node = cluster.ledger.queues.node(name)
        queues[name] = QueueFigures(
            parent="" if name == ROOT else queue.parent,
            weight=queue.weight,
            capability=quantities(queue.capability),
            guarantee=quantities(queue.guarantee),
            deserved=quantities(node.division.deserved),
            allocated=quantities(shown(cluster, node.taken)),
        )
        yield
    return quotas, queues


def difference_steps(before: Numbers, trial: Trial, otherwise: Trial | None) -> Steps[WhatIfModel]:
    """Returns the effect of a trial. ``otherwise``: the result without the change, if known."""
    after = yield from numbers_steps(trial.cluster)
    waiting = yield from _waiting_steps(trial, otherwise)
    return WhatIfModel(
        admitted=_admitted(trial, otherwise),
        evicted=_evicted(trial, otherwise),
        spared=_spared(trial, otherwise),
        refused=waiting[:MOST_NAMED],
        waiting=len(waiting),
        quotas=[
            QuotaChange(namespace=namespace, name=name, before=then, after=now)
            for (namespace, name), then, now in _changed(before[0], after[0])
        ],
        queues=[QueueChange(name=name, before=then, after=now) for name, then, now in _changed(before[1], after[1])],
    )


def rule_of(pod: Pod) -> str:
    """Returns the rule that last refused a waiting pod; empty if none did."""
    rule = named_in(pod.unschedulable.message) if pod.unschedulable else None
    return rule.name if rule else ""


def why_it_waits(cluster: Cluster, pod: Pod) -> tuple[str, str]:
    """Returns the rule that refuses a pod that still waits (empty if none does), and the message; empty if untried."""
    if pod.stands_for is not None:
        if refused := cluster.why_waits(pod):
            return refused.rule, refused.message
        too_large = f"a Job of more than {LARGEST_JOB} pods is not started here"
        return "", too_large if pod.stands_for.pods > LARGEST_JOB else "there is no room for all of its pods"
    return rule_of(pod), pod.unschedulable.message[:LONGEST_SAID] if pod.unschedulable else ""


Name = TypeVar("Name", str, tuple[str, str])


def _changed(
    before: dict[Name, EitherFigures], after: dict[Name, EitherFigures]
) -> list[tuple[Name, EitherFigures | None, EitherFigures | None]]:
    found = [(name, before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())]
    return [(name, then, now) for name, then, now in found if then != now]


def _admitted(trial: Trial, otherwise: Trial | None) -> list[AdmittedModel]:
    pods = sorted((trial.cluster.pods[uid] for uid in trial.placed), key=lambda pod: pod.title)
    return [
        AdmittedModel(pod=pod.title, node=pod.node, anyway=None if otherwise is None else pod.uid in otherwise.placed)
        for pod in pods
    ]


def _evicted(trial: Trial, otherwise: Trial | None) -> list[VictimModel]:
    anyway = None if otherwise is None else {each.pod.uid for each in otherwise.simulation.evictions}
    return [
        VictimModel(
            pod=each.pod.title,
            node=each.pod.node,
            for_=each.for_.title if each.for_ else "",
            reason=each.reason,
            anyway=None if anyway is None else each.pod.uid in anyway,
        )
        for each in trial.simulation.evictions
    ]


def _spared(trial: Trial, otherwise: Trial | None) -> list[str]:
    pods = trial.cluster.pods
    evicted = otherwise.simulation.evictions if otherwise else ()
    return [each.pod.title for each in evicted if each.pod.uid in pods and pods[each.pod.uid].assigned]


def _waiting_steps(trial: Trial, otherwise: Trial | None) -> Steps[list[RefusedModel]]:
    others = otherwise.cluster.pods if otherwise else None
    found = []
    for pod in trial.cluster.pods.values():
        if not pod.pending or pod.terminating:
            continue
        anyway = None if others is None else pod.uid in others and others[pod.uid].pending
        rule, message = why_it_waits(trial.cluster, pod)
        found.append(RefusedModel(pod=pod.title, rule=rule, message=message, anyway=anyway))
        if len(found) % SLICE == 0:
            yield
    return sorted(found, key=lambda each: (each.anyway is not False, each.pod))
