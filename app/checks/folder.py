"""Checks a folder of manifests for what would go wrong."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.checks.amounts import uncountable
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
from policy.objects import resources
from policy.objects.job import short
from policy.objects.quantity import render
from policy.objects.queue import ROOT, Queue
from policy.objects.run_time import FORM, UNREADABLE
from policy.quota import elastic_quota, queue_rules

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
    findings += _quota_warnings(cluster) + _queue_findings(cluster) + _membership_warnings(cluster)
    findings += _job_warnings(cluster) + _budget_warnings(cluster) + _run_time_warnings(cluster)
    findings += [*_name_warnings(cluster, folder.manifests, elsewhere), *group_findings(cluster, documents)]
    read = Counter(manifest.kind.name for manifest in folder.manifests)
    return Report(findings, read, Counter(document.kind for document in documents) - read)


def _name_warnings(cluster: Cluster, manifests: list[source.Manifest], elsewhere: Collection[str]) -> Iterator[Finding]:
    """Finds resources of quotas and queues that no pod can request, or that no node lists, here or elsewhere."""
    there = {resource for node in cluster.table.nodes() for resource in node.allocatable} | set(elsewhere)
    for each in manifests:
        name = each.key if isinstance(each.key, str) else "/".join(each.key)
        yield from resource_findings(f"{each.file}: {each.kind.name} {name}", each.obj, there)


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


def _quota_warnings(cluster: Cluster) -> list[Finding]:
    findings = []
    for quotas in cluster.quotas.values():
        governing = elastic_quota.in_force(quotas.values())
        for quota in quotas.values():
            if quota.errors or governing is None:
                continue  # reported with its manifest
            for condition in elastic_quota.conditions(quota, governing):
                name = f"ElasticQuota {quota.namespace}/{quota.name}"
                findings.append(Finding("warning", f"{name}: {condition.type}: {condition.message}"))
    findings += _unnamed(cluster)
    return findings + _beyond_nodes(cluster, "min of all elastic quotas", cluster.ledger.pool.min)


def _unnamed(cluster: Cluster) -> list[Finding]:
    """Finds quotas whose min lacks a resource that another min names: all that they use of it is borrowed."""
    named_by: dict[str, str] = {}
    for namespace, quota, _ in cluster.ledger.quotas():
        for resource in quota.min:
            named_by.setdefault(resource, f"{namespace}/{quota.name}")
    return [
        Finding(
            "warning",
            f"ElasticQuota {namespace}/{quota.name}: min does not name {', '.join(lacking)}, but the min of"
            f" {named_by[lacking[0]]} does: its pods borrow all that they use of it, and it may be taken back",
        )
        for namespace, quota, _ in cluster.ledger.quotas()
        if quota.min and (lacking := sorted(named_by.keys() - quota.min.keys()))
    ]


def _beyond_nodes(cluster: Cluster, what: str, promised: resources.Resources) -> list[Finding]:
    """Finds resources of which more is promised than the nodes have. Finds nothing if no nodes are known."""
    if not cluster.table.rows:
        return []
    capacity = resources.total(node.allocatable for node in cluster.table.nodes())
    return [
        Finding(
            "warning",
            f"{what} is {render(resource, amount)} of {resource},"
            f" but the nodes have {render(resource, capacity.get(resource, 0))}",
        )
        for resource, amount in sorted(promised.items())
        if amount > capacity.get(resource, 0)
    ]


def _queue_findings(cluster: Cluster) -> list[Finding]:
    findings = []
    there = resources.total(node.allocatable for node in cluster.table.nodes())
    for name, queue in sorted(cluster.queues.items()):
        findings += [Finding("error", f"Queue {name}: {error}") for error in queue.errors]
        findings += [
            Finding("warning", f"Queue {name}: {condition.type}: {condition.message}")
            for condition in queue_rules.conditions(replace(queue, errors=()), None)
        ]
        nowhere = sorted(r for r, most in queue.capability.items() if most and there and not there.get(r, 0))
        if nowhere:
            findings.append(
                Finding("warning", f"Queue {name}: capability names resources that no node has: {', '.join(nowhere)}")
            )
    tops = [queue for name, queue in cluster.queues.items() if name != ROOT and queue.parent == ROOT]
    promised = resources.total(queue.guarantee for queue in tops)
    return findings + list(_tree_findings(cluster)) + _beyond_nodes(cluster, "guarantee of all queues", promised)


def _tree_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yields queues without a place in the tree, bounds beyond those of the parent, and who names a queue in vain."""
    tree = cluster.ledger.queues.tree
    for name, why in sorted(tree.invalid.items()):
        yield Finding("error", f"Queue {name}: ParentInvalid: {why}; it admits no pod")
    for _, queue in sorted(cluster.queues.items()):
        yield from _beyond_parent(queue, [cluster.queues[each] for each in tree.children_of(queue.name)])
    for namespace in sorted(cluster.membership.namespaces.values(), key=lambda each: each.name):
        for each in sorted({namespace.queue, *namespace.allowed} & cluster.queues.keys()):
            if tree.has_children(each):
                text = f"names the queue {each}, which has children: only leaves take pods"
                yield Finding("warning", f"Namespace {namespace.name} {text}")


def _beyond_parent(parent: Queue, children: list[Queue]) -> Iterator[Finding]:
    """Yields what is promised to the children of a queue and is more than its capability."""
    promised = resources.total(child.guarantee for child in children)
    for resource, most in sorted(parent.capability.items()):
        if promised.get(resource, 0) > most:
            text = f"its children are guaranteed {render(resource, promised[resource])} of {resource} together"
            yield Finding("warning", f"Queue {parent.name}: {text}, but its capability is {render(resource, most)}")
        for child in children:
            if (own := child.capability.get(resource, most)) > most:
                text = f"capability of {resource} is {render(resource, own)}, above that of its parent {parent.name}"
                yield Finding("warning", f"Queue {child.name}: {text}: {render(resource, most)}")


def _membership_warnings(cluster: Cluster) -> list[Finding]:
    """Finds objects that name a missing queue: their pods are refused as soon as there is any queue."""
    membership = cluster.membership
    named = [(f"Namespace {each.name}", {each.queue, *each.allowed}) for each in membership.namespaces.values()]
    named += [
        (f"PodGroup {each.namespace}/{each.name.rpartition('/')[2]}", {each.queue})
        for each in membership.groups.values()
    ]
    named += [(pod.object, {pod.queue}) for pod in cluster.pods.values()]
    return [
        Finding("warning", f"{who} names the queue {queue}, which does not exist")
        for who, names in sorted(named, key=lambda each: each[0])
        for queue in sorted(names - cluster.queues.keys() - {""})
    ]


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
