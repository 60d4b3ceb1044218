"""Checks a folder of manifests for what would go wrong."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.checks.amounts import uncountable
from app.checks.bounds import bound_findings
from app.checks.documents import looks_like_manifests, of_all
from app.checks.finding import Finding
from app.checks.groups import group_findings
from app.checks.keys import key_findings
from app.checks.resource_names import misspelled, on_no_node
from app.sources import manifests as source
from app.store.elastic_quotas import ElasticQuotaObject
from app.store.heeded import RUN_TIME
from app.store.queues import QueueObject
from policy.cluster.cluster import Cluster
from policy.objects.device import IMPLICIT
from policy.objects.job import short
from policy.objects.run_time import FORM, UNREADABLE

QUEUE_KEYS = {"weight", "capability", "guarantee", "reclaimable", "priority", "parent"}
"""Keys of a queue's spec that are read."""
NOTED_QUEUE_KEYS = {"deserved"}
"""Keys that are not read, as the queue's own condition NotEnforced says."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings in a folder, and the objects of each kind that were read or skipped."""

    findings: list[Finding]
    read: Counter[str]
    skipped: Counter[str]

    def counts(self) -> list[str]:
        """Says how many objects of which kinds were read, and how many were skipped."""
        return [
            f"{what} {', '.join(f'{number} {kind}' for kind, number in sorted(counted.items()))}"
            for what, counted in (("read", self.read), ("skipped", self.skipped))
            if counted
        ]


def manifests(directory: Path, elsewhere: Collection[str] = ()) -> Report:
    """Checks a folder of manifests. ``elsewhere``: resources of nodes that are not in it."""
    folder = source.read(directory)
    findings = [Finding("error", str(problem)) for problem in folder.problems]
    findings += [Finding("warning", str(strange)) for strange in folder.strange]
    if not folder.manifests and not findings:
        findings.append(Finding("warning", f"{directory}: no manifests of a kind that is read"))
    documents = of_all(directory)
    for document in documents:
        findings += key_findings(document.where, document.kind, document.content)
    findings += [Finding("warning", text) for text in looks_like_manifests(directory)]
    findings += _unknown_bounds(folder.manifests) + _unknown_queue_keys(folder.manifests)
    cluster = Cluster()
    for manifest in folder.manifests:
        manifest.kind.upsert(cluster, manifest.obj, 0.0)
    for _ in cluster.devices.renew_steps():
        pass
    findings += bound_findings(cluster)
    findings += _job_warnings(cluster) + _budget_warnings(cluster) + _run_time_warnings(cluster)
    findings += [*_name_warnings(cluster, folder.manifests, elsewhere), *group_findings(cluster, documents)]
    read = Counter(manifest.kind.name for manifest in folder.manifests)
    return Report(findings, read, Counter(document.kind for document in documents) - read)


def _name_warnings(cluster: Cluster, manifests: list[source.Manifest], elsewhere: Collection[str]) -> Iterator[Finding]:
    """Finds resources of quotas and queues that no pod can request, or that no node lists, here or elsewhere."""
    there = resources_there(cluster) | set(elsewhere)
    for each in manifests:
        name = each.key if isinstance(each.key, str) else "/".join(each.key)
        yield from resource_findings(f"{each.file}: {each.kind.name} {name}", each.obj, there)


def resources_there(cluster: Cluster) -> set[str]:
    """Returns the resources of nodes, and the names of device classes: claims count by them wherever they get devices.

    Returns nothing if no nodes are known.
    """
    there = {resource for node in cluster.table.nodes() for resource in node.allocatable}
    classes = {cluster.device_names.key_of(IMPLICIT + name) for name in cluster.device_names.classes}
    return there | classes if there else set()


def resource_findings(where: str, obj: Any, there: Collection[str]) -> Iterator[Finding]:
    """Checks the resources that a quota or a queue names; ``there`` are those that nodes list."""
    spec = getattr(obj, "spec", None)
    if not isinstance(spec, dict):
        return
    if isinstance(obj, ElasticQuotaObject):
        amounts = {"min": spec.get("min"), "max": spec.get("max")}
    elif isinstance(obj, QueueObject):
        guarantee = spec.get("guarantee")
        guaranteed = guarantee.get("resource") if isinstance(guarantee, dict) else None
        amounts = {"capability": spec.get("capability"), "guarantee.resource": guaranteed}
    else:
        return
    for field, named in amounts.items():
        yield from misspelled(f"{where}: spec.{field}", _names(named), there)
        yield from uncountable(f"{where}: spec.{field}", named)
    if isinstance(obj, ElasticQuotaObject):
        yield from on_no_node(f"{where}: spec.max", _names(amounts["max"]) - _names(amounts["min"]), there)


def _names(amounts: Any) -> set[str]:
    """Returns the resources whose amount is not zero."""
    return {str(name) for name, amount in amounts.items() if str(amount) != "0"} if isinstance(amounts, dict) else set()


def _unknown_bounds(manifests: list[source.Manifest]) -> list[Finding]:
    """Finds keys of a quota's spec that bound nothing: a mistyped max is no max."""
    return [
        Finding("warning", f"{each.file}: ElasticQuota {'/'.join(each.key)}: spec.{key} bounds nothing: min and max do")
        for each in manifests
        if isinstance(each.obj, ElasticQuotaObject) and isinstance(each.obj.spec, dict)
        for key in sorted(each.obj.spec.keys() - {"min", "max"})
    ]


def _unknown_queue_keys(manifests: list[source.Manifest]) -> list[Finding]:
    """Finds keys of a queue's spec that do nothing, mistyped or Volcano's own."""
    findings = []
    for each in manifests:
        if not isinstance(each.obj, QueueObject) or not isinstance(each.obj.spec, dict):
            continue
        spec, where = each.obj.spec, f"{each.file}: Queue {each.key}: spec"
        read = ", ".join(sorted(QUEUE_KEYS))
        findings += [
            Finding("warning", f"{where}.{key} has no effect: only {read} have one")
            for key in sorted(spec.keys() - QUEUE_KEYS - NOTED_QUEUE_KEYS)
        ]
        guarantee = spec.get("guarantee")
        if isinstance(guarantee, dict):
            findings += [
                Finding("warning", f"{where}.guarantee.{key} guarantees nothing: amounts belong under resource")
                for key in sorted(guarantee.keys() - {"resource"})
            ]
    return findings


def _budget_warnings(cluster: Cluster) -> list[Finding]:
    """Finds budgets that never allow an eviction, so that borrowed resources are not taken back."""
    return [
        Finding(
            "warning",
            f"PodDisruptionBudget {budget.namespace}/{budget.name} never allows an eviction: "
            "reclaim does not take back what its pods borrow, unless reclaim.budgetPatience is set",
        )
        for budget in cluster.budgets.values()
        if budget.never
    ]


def _run_time_warnings(cluster: Cluster) -> list[Finding]:
    """Finds run times that cannot be read; those of quotas and queues are among their conditions."""
    said = [(f"Pod {pod.title}", pod.run_time) for pod in cluster.pods.values() if pod.stands_for is None]
    said += [(job.object, job.run_time) for job in cluster.batch_jobs]
    groups = cluster.membership.groups.values()
    said += [(f"PodGroup {group.namespace}/{short(group.name)}", group.run_time) for group in groups]
    text = f"annotation {RUN_TIME} is not {FORM}, so the run time is not known"
    return [Finding("warning", f"{name}: {text}") for name, time in sorted(said) if time == UNREADABLE]


def _job_warnings(cluster: Cluster) -> list[Finding]:
    """Finds Jobs whose deadline runs while their pods wait at gates, that one eviction fails, or with a bad minimum."""
    findings = []
    for job in sorted(cluster.batch_jobs, key=lambda job: job.key):
        if job.deadline and cluster.gate_admission.is_gated(job.namespace):
            text = (
                "spec.activeDeadlineSeconds runs from the start of the Job, even while its pods wait at the gates of"
                f" namespace {job.namespace}, and then ends the Job; a deadline in its pod template does not"
            )
            findings.append(Finding("warning", f"Job {job.title}: {text}"))
        if job.problem:
            findings.append(Finding("warning", f"Job {job.title}: {job.problem}"))
        if job.fails_at_once and (job.namespace in cluster.quotas or cluster.queues):
            text = (
                "one eviction fails it, so its pods are evicted last; a rule in its podFailurePolicy that ignores"
                " DisruptionTarget would let it continue"
            )
            findings.append(Finding("warning", f"Job {job.title}: {text}"))
    return findings
