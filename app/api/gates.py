"""Pods at their gates, as REST shows them."""

import asyncio
from collections.abc import Hashable

from app.api.models import GatedList, GatedModel, PlaceModel
from policy.cluster.cluster import Cluster
from policy.objects.job import short
from policy.objects.pod import Pod
from policy.objects.verdict import Refusal
from policy.queueing import positions
from policy.quota.closed_queues import shortened

SLICE = 100


async def gated(cluster: Cluster, namespace: str | None, limit: int) -> GatedList:
    """Returns the first ``limit`` gated jobs of a namespace or of all, in slices, as there may be many thousands."""
    items, total = list[GatedModel](), 0
    refusals: dict[Hashable, Refusal | None] = {}
    for queue in sorted({queue for queue, _ in cluster.gates.lines}):
        for place, job in enumerate(positions.in_order(cluster, queue), start=1):
            if place % SLICE == 0:
                await asyncio.sleep(0)
            if not job.members:
                continue  # it has left meanwhile
            pod = job.first()
            if namespace not in (None, pod.namespace):
                continue
            total += 1
            if len(items) < limit:
                kind = queue, pod.namespace, job.kind
                if kind not in refusals:
                    refusals[kind] = cluster.check(pod)
                refused = refusals[kind]
                items.append(
                    GatedModel(
                        job=f"{pod.namespace}/{short(job.name)}",
                        pods=len(job.members),
                        queue=shortened(queue),
                        namespace=pod.namespace,
                        priority=max(each.priority for each in job.members.values()),
                        place=place,
                        rule=refused.rule if refused else "",
                        message=refused.message if refused else "",
                    )
                )
    return GatedList(total=total, items=items)


def place_of(cluster: Cluster, pod: Pod) -> PlaceModel | None:
    """Returns a pod's place in its queue; None if it waits at no gate."""
    stands = cluster.gates.line_of(pod.uid)
    if stands is None:
        return None
    (queue, namespace), line, job = stands
    return PlaceModel(queue=shortened(queue), namespace=namespace, place=line.position(job.name), of=len(line))
