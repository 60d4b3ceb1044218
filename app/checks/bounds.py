"""Checks what quotas, queues and those who name queues say together, of a folder or of a live cluster."""

from collections.abc import Iterator
from dataclasses import replace

from app.checks.finding import Finding
from app.store.heeded import ALLOWED_QUEUES, QUEUE
from policy.cluster.cluster import Cluster
from policy.objects import resources
from policy.objects.quantity import render
from policy.objects.queue import ROOT, Queue
from policy.quota import elastic_quota, queue_rules
from policy.quota.closed_queues import near, shortened


def bound_findings(cluster: Cluster) -> list[Finding]:
    """Finds bounds that contradict each other or that the nodes do not back, and names of queues that do not exist."""
    return _quota_warnings(cluster) + _queue_findings(cluster) + _membership_warnings(cluster)


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
    """Finds resources of which more is promised than the nodes have.

    Finds nothing if no nodes are known, or about devices of which it is not known how many there are.
    """
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
        if amount > capacity.get(resource, 0) and resource not in cluster.table.undecidable
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
        missing = {r for r, most in queue.capability.items() if most and there and not there.get(r, 0)}
        nowhere = sorted(missing - cluster.table.undecidable)
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
    membership, known = cluster.membership, sorted(cluster.queues)
    named = [
        (f"Namespace {each.name}", queue, f"its annotation {QUEUE if queue == each.queue else ALLOWED_QUEUES}")
        for each in membership.namespaces.values()
        for queue in {each.queue, *each.allowed}
    ]
    named += [
        (f"PodGroup {each.namespace}/{each.name.rpartition('/')[2]}", each.queue, "its spec.queue")
        for each in membership.groups.values()
    ]
    in_vain = [each for each in named if each[1] and each[1] not in cluster.queues]
    in_vain += _pods_in_vain(cluster)
    near_to = {queue: " or ".join(near(queue, known)) for _, queue, _ in in_vain}
    return [
        Finding(
            "warning",
            f"{who} names the queue {shortened(queue)}, which does not exist, in {where}"
            + (f": did you mean {near_to[queue]}?" if near_to[queue] else ""),
        )
        for who, queue, where in sorted(in_vain)
    ]


def _pods_in_vain(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """Yields pods that name a missing queue, those of a namespace that name the same one together."""
    pods: dict[tuple[str, str], list[str]] = {}
    for pod in cluster.pods.values():
        if pod.queue and pod.queue not in cluster.queues:
            pods.setdefault((pod.namespace, pod.queue), []).append(pod.object)
    for (_, queue), objects in pods.items():
        more = len(objects) - 1
        others = f" (and {more} more pod{'s' * (more > 1)} of its namespace)" if more else ""
        yield f"{min(objects)}{others}", queue, "its own annotation"
