"""Tells people which queue refuses a pod, where that may be one above the pod's own, and the way to it."""

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.verdict import Refusal
from policy.quota import queue_rules
from policy.quota.closed_queues import why_closed
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
    return f"Queue {queue_rules.name_of(node)} of {path(cluster, name)} is in the way" if has_levels else ""


def path(cluster: Cluster, name: str) -> str:
    """Returns the way from the root to a queue: ``root/company/team``."""
    above = list(cluster.ledger.queues.tree.above(name))
    return "/".join(("root", *reversed(above), name))
