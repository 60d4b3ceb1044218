"""Tells people which queue refuses a pod, where that may be one above the pod's own, and the way to it."""

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.verdict import Refusal
from policy.quota import queue_rules
from policy.quota.branches import Node, way_up
from policy.quota.closed_queues import why_closed
from policy.quota.queue_ledger import QueueLedger
from policy.quota.rule import QUEUE
from policy.quota.rules import BY_NAME


def why_in_queue(cluster: Cluster, pod: Pod, refused: Refusal) -> str:
    """Returns what to say of a refusal beyond its text, with the pod out of the ledger; empty if there is nothing."""
    ledger, name = cluster.ledger.queues, cluster.queue_of(pod)
    if closed := why_closed(cluster.queues, cluster.membership, pod):
        return closed
    account = ledger.known(name)
    if account.queue is None or BY_NAME[refused.rule].of != QUEUE:
        return ""
    if refused.rule == queue_rules.INVALID.name:
        return account.invalid
    if refused.rule == queue_rules.CLOSED.name:
        shut = queue_rules.closed_on_the_way(ledger, name)
        return f"Queue {shut.name} of {path(cluster, name)} is {shut.state}" if shut is not None else ""
    if refused.rule not in (queue_rules.CAPABILITY.name, queue_rules.DESERVED.name):
        return ""
    node = queue_rules.in_the_way(ledger, account, pod.request)
    has_levels = node.parent is None or account.parent is not ledger.root
    return _in_the_way(cluster, node, pod, refused) if has_levels else ""


def _in_the_way(cluster: Cluster, node: Node, pod: Pod, refused: Refusal) -> str:
    """Names the queue in a pod's way, and the one whose capability bounds it where that is one above."""
    name = queue_rules.name_of(node)
    text = f"Queue {name} of {path(cluster, cluster.queue_of(pod))} is in the way"
    above = _bounding(cluster.ledger.queues, node, pod, refused)
    return text if above is node else f"{text}, as the capability of Queue {queue_rules.name_of(above)} bounds it"


def _bounding(ledger: QueueLedger, node: Node, pod: Pod, refused: Refusal) -> Node:
    """Returns the queue whose capability refuses a pod: that in its way or one above it, or that in its way if none."""
    if refused.rule != queue_rules.CAPABILITY.name:
        return node
    for each in (*way_up(node), ledger.root):
        bounds = queue_rules.capability_of(each)
        if any(each.taken.get(r, 0) + pod.request.get(r, 0) > bounds[r] for r in refused.resources if r in bounds):
            return each
    return node


def path(cluster: Cluster, name: str) -> str:
    """Returns the way from the root to a queue: ``root/company/team``."""
    above = list(cluster.ledger.queues.tree.above(name))
    return "/".join(("root", *reversed(above), name))
