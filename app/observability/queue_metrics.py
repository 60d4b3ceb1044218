"""The figures of queues for Prometheus, written in slices like those of quotas, as there are many series."""

import asyncio

from app.observability.quota_metrics import SLICE, base_unit, escaped
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import allocated, shown
from policy.objects.pod import Pod
from policy.objects.resources import Resources
from policy.quota.queue_ledger import QueueAccount

FIGURES = (
    ("deserved", "Resources that a queue deserves, for what its pods request."),
    ("allocated", "Resources of a queue's pods, on nodes and admitted."),
    ("guarantee", "Resources that are guaranteed to a queue, as far as the nodes have them."),
    ("guarantee_missing", "Resources that are guaranteed to a queue, and that the nodes lack."),
)


async def queue_lines(cluster: Cluster) -> bytes:
    """Returns exposition text by queue and resource: deserved, allocated, guarantee, its missing part; cpu in cores."""
    lines: dict[str, list[str]] = {figure: [] for figure, _ in FIGURES}
    for index, (name, account) in enumerate(sorted(cluster.ledger.queues.accounts.items())):
        if account.queue is not None:
            for figure, amounts in zip(lines, _amounts(cluster, account), strict=True):
                for resource, amount in sorted(amounts.items()):
                    labels = f'queue="{escaped(name)}",resource="{escaped(resource)}"'
                    value = base_unit(resource, amount)
                    lines[figure].append(f"quotaward_queue_{figure}{{{labels}}} {value}\n")
        if index % SLICE == SLICE - 1:
            await asyncio.sleep(0)
    text = ""
    for figure, meaning in FIGURES:
        name = f"quotaward_queue_{figure}"
        text += f"# HELP {name} {meaning}\n# TYPE {name} gauge\n" + "".join(lines[figure])
    return text.encode()


def label_of(cluster: Cluster, pod: Pod) -> str:
    """Returns a pod's queue as a label: empty also for a queue that does not exist, as pods may name any."""
    queue = cluster.queue_of(pod)
    return queue if queue in cluster.queues else ""


def _amounts(cluster: Cluster, account: QueueAccount) -> tuple[Resources, Resources, Resources, Resources]:
    """Returns the figures in their order."""
    division = account.division
    zero = dict.fromkeys({**division.deserved, **shown(cluster, account.request)}, 0)
    return {**zero, **division.deserved}, {**zero, **allocated(cluster, account)}, division.guarantee, _missing(account)


def _missing(account: QueueAccount) -> Resources:
    """Returns the part of the guarantee, within the capability, that the nodes do not have."""
    queue, kept = account.queue, account.division.guarantee
    if queue is None:
        return {}
    return {
        resource: max(0, min(amount, queue.capability.get(resource, amount)) - kept.get(resource, 0))
        for resource, amount in queue.guarantee.items()
    }
