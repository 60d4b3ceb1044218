"""Tells of pods that should be gone: which, since when, and how to end them. See policy.cluster.overdue.

It also collects all conditions of a quota and of a queue: such pods are the reason of one of them.
"""

from collections.abc import Callable, Collection, Iterator

from policy.cluster.cluster import Cluster
from policy.objects.conditions import EXCEEDED, Condition
from policy.objects.pod import Pod
from policy.objects.queue import ROOT
from policy.objects.resources import Resources
from policy.quota import elastic_quota, queue_rules
from policy.quota.elastic_quota import ElasticQuota

NAMED = 3
"""Pods that are named at a time."""


def late_beside(cluster: Cluster, pod: Pod) -> list[Pod]:
    """Returns the pods of the same namespace or queue that should be gone, but do not end or are on a lost node.

    They are ordered by the time when they had to be gone. For a pod on a node: itself, if it is one of them.
    """
    if not pod.pending:
        return [each for each in _late(cluster) if each.uid == pod.uid]
    queue = cluster.queue_of(pod)

    def is_beside(other: Pod) -> bool:
        return other.namespace == pod.namespace or (queue != "" and queue == cluster.queue_of(other))

    return sorted(filter(is_beside, _late(cluster)), key=lambda each: (each.deletion_time, each.namespace, each.name))


def sentences(cluster: Cluster, late: Collection[Pod], in_words: Callable[[float], str]) -> list[str]:
    """Returns what is said of these, for the first few one by one. ``in_words`` writes a time since the epoch."""
    told = [_sentence(cluster, each, in_words(each.deletion_time)) for each in list(late)[:NAMED]]
    return told + ([f"{len(late) - NAMED} more pods are terminating and should be gone"] if len(late) > NAMED else [])


def command(pod: Pod) -> str:
    """Returns the command that ends a pod whose kubelet does not."""
    return f"kubectl delete pod {pod.name} -n {pod.namespace} --force --grace-period=0"


def conditions_of_quota(cluster: Cluster, quota: ElasticQuota, governing: ElasticQuota) -> list[Condition]:
    """Returns what is wrong with a quota, in a namespace that ``governing`` is in force for."""
    found = elastic_quota.conditions(quota, governing)
    if quota is not governing:
        return found
    used = cluster.ledger.account(quota.namespace).used
    return found + _exceeded(quota.max, used, "max") + _overdue(cluster.leaving.overdue.in_namespace(quota.namespace))


def conditions_of_queue(cluster: Cluster, name: str) -> list[Condition]:
    """Returns what is wrong with a queue that exists."""
    queue, node = cluster.queues[name], cluster.ledger.queues.node(name)
    found = queue_rules.conditions(queue, node.division if name != ROOT else None)
    if invalid := cluster.ledger.queues.account(name).invalid:
        message = f"{invalid}; it admits no new pod, and counts right below the root"
        found.append(Condition("ParentInvalid", "NoWayToRoot", message))
    found += _exceeded(queue.capability, node.taken, "capability")
    return found + cluster.queue_changes.moving.conditions_of(name) + _overdue(cluster.leaving.overdue.in_queue(name))


def _exceeded(bound: Resources, used: Resources, name: str) -> list[Condition]:
    """Returns a condition if pods use more than their bound lets in. No pod is evicted for that alone."""
    beyond = sorted(resource for resource, most in bound.items() if used.get(resource, 0) > most)
    if not beyond:
        return []
    why = "it was lowered, or pods were resized, or started without being asked about"
    return [Condition(EXCEEDED, "UsedBeyondBound", f"more is used than the {name} of {', '.join(beyond)}: {why}")]


def _late(cluster: Cluster) -> Iterator[Pod]:
    return (pod for pod in cluster.leaving.deletions.after_their_time() if cluster.leaving.is_late(pod))


def _sentence(cluster: Cluster, pod: Pod, due: str) -> str:
    counts = "counts for nobody any more" if pod.uid in cluster.leaving.overdue else "still holds its quota"
    start = f"{pod.namespace}/{pod.name} is terminating and {counts}: it had to be gone by {due}"
    if not cluster.leaving.is_lost(pod.node):
        return f"{start}, and has not ended on node {pod.node}"
    lost = "is unreachable" if cluster.table.node(pod.node) else "is gone"
    return f"{start}, and its node {pod.node} {lost}; if it is dead for sure, end it: {command(pod)}"


def _overdue(pods: Collection[Pod]) -> list[Condition]:
    if not pods:
        return []
    first = sorted(pods, key=lambda pod: (pod.deletion_time, pod.namespace, pod.name))[:NAMED]
    names = ", ".join(f"{pod.namespace}/{pod.name}" for pod in first) + (", …" if len(pods) > NAMED else "")
    message = (
        f"pods that should be gone are terminating on nodes that are gone or unreachable, and count for nobody: "
        f"{len(pods)} ({names}); once they are dead for sure: {command(first[0])}"
    )
    return [Condition("OverduePods", "NodeLost", message)]
