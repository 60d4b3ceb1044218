"""The figures of queues for Prometheus, written in slices like those of quotas, as there are many series."""

import asyncio

from app.observability.quota_metrics import SLICE, base_unit, escaped
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import allocated, shown
from policy.objects.pod import Pod
from policy.objects.queue import ROOT, Queue
from policy.objects.resources import Resources
from policy.quota.proportion import Division

FIGURES = (
    ("deserved", "Resources that a queue deserves, for what its pods request."),
    ("allocated", "Resources of a queue's pods, on nodes and admitted."),
    ("guarantee", "Resources that are guaranteed to a queue, as far as the nodes have them."),
    ("guarantee_missing", "Resources that are guaranteed to a queue, and that the nodes lack."),
)
INFO = "Queues, with their parents in the tree; always 1."


async def queue_lines(cluster: Cluster) -> bytes:
    """Returns exposition text by queue and resource: deserved, allocated, guarantee, its missing part; cpu in cores."""
    lines: dict[str, list[str]] = {figure: [] for figure, _ in FIGURES}
    parents = []
    for index, (name, account) in enumerate(sorted(cluster.ledger.queues.accounts.items())):
        if account.queue is not None:
            parent = "" if name == ROOT else account.queue.parent
            parents.append(f'quotaward_queue_info{{queue="{escaped(name)}",parent="{escaped(parent)}"}} 1\n')
            for figure, amounts in zip(lines, _amounts(cluster, name), strict=True):
                for resource, amount in sorted(amounts.items()):
                    labels = f'queue="{escaped(name)}",resource="{escaped(resource)}"'
                    value = base_unit(resource, amount)
                    lines[figure].append(f"quotaward_queue_{figure}{{{labels}}} {value}\n")
        if index % SLICE == SLICE - 1:
            await asyncio.sleep(0)
    text = f"# HELP quotaward_queue_info {INFO}\n# TYPE quotaward_queue_info gauge\n" + "".join(parents)
    for figure, meaning in FIGURES:
        name = f"quotaward_queue_{figure}"
        text += f"# HELP {name} {meaning}\n# TYPE {name} gauge\n" + "".join(lines[figure])
    return text.encode()


def label_of(cluster: Cluster, pod: Pod) -> str:
    """Returns a pod's queue as a label: empty also for a queue that does not exist, as pods may name any."""
    queue = cluster.queue_of(pod)
    return queue if queue in cluster.queues else ""


def _amounts(cluster: Cluster, name: str) -> tuple[Resources, Resources, Resources, Resources]:
    """Returns the figures in their order, those of queues below it included."""
    queues = cluster.ledger.queues
    division = queues.node(name).division
    zero = dict.fromkeys({**division.deserved, **shown(cluster, queues.requested(name))}, 0)
    missing = _missing(cluster.queues[name], division) if name != ROOT else {}
    return {**zero, **division.deserved}, {**zero, **allocated(cluster, name)}, division.guarantee, missing


def _missing(queue: Queue, division: Division) -> Resources:
    """Returns the part of the guarantee, within the capability, that the nodes do not have."""
    kept = division.guarantee
    return {
        resource: max(0, min(amount, queue.capability.get(resource, amount)) - kept.get(resource, 0))
        for resource, amount in queue.guarantee.items()
    }
