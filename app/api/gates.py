"""Pods at their gates, and Jobs that wait there as a whole, as REST shows them."""

from collections.abc import AsyncGenerator, Collection, Hashable

from app.api.models import GatedList, GatedModel, PlaceModel
from app.pause import Pause
from policy.cluster.cluster import Cluster
from policy.cluster.gates import GatedJob
from policy.objects.job import short
from policy.objects.pod import Pod
from policy.objects.verdict import Refusal
from policy.queueing import positions
from policy.quota.closed_queues import shortened

SLICE = 100


async def gated(cluster: Cluster, namespace: str | None, limit: int) -> GatedList:
    """Returns the first ``limit`` gated jobs of a namespace or of all, in slices, as there may be many thousands."""
    items, total, refusals = list[GatedModel](), 0, Refusals(cluster)
    async for queue, place, job in in_order(cluster, namespace):
        total += 1
        if len(items) < limit:
            pod, refused = job.first(), refusals.of(queue, job)
            items.append(
                GatedModel(
                    job=f"{pod.namespace}/{short(job.name)}",
                    kind=pod.stands_for.kind.name if pod.stands_for else "",
                    pods=pod.stands_for.pods if pod.stands_for else len(job.members),
                    queue=shortened(queue),
                    namespace=pod.namespace,
                    priority=max(each.priority for each in job.members.values()),
                    place=place,
                    rule=refused.rule if refused else "",
                    message=refused.message if refused else "",
                )
            )
    return GatedList(total=total, items=items)


async def in_order(
    cluster: Cluster, namespace: str | None, queues: Collection[str] | None = None
) -> AsyncGenerator[tuple[str, int, GatedJob], None]:
    """Yields the gated jobs of a namespace, of queues, or of all, each with its queue and its place there.

    Pauses in between.
    """
    pause = Pause()
    for queue in sorted({queue for queue, _ in cluster.gates.lines}):
        if queues is not None and queue not in queues:
            continue
        place = 0
        for job in positions.in_order(cluster, queue):
            await pause.if_due()
            if job is None:
                continue
            place += 1
            if not job.members:  # it has left meanwhile
                continue
            if namespace is None or namespace == job.first().namespace:
                yield queue, place, job


class Refusals:
    """The rules that refuse gated jobs now. Jobs that are alike are asked about once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Hashable, Refusal | None] = {}

    def of(self, queue: str, job: GatedJob) -> Refusal | None:
        """Returns what refuses a job of a queue, or None."""
        pod = job.first()
        kind = queue, pod.namespace, job.kind
        if kind not in self._known:
            self._known[kind] = self._cluster.why_waits(pod)
        return self._known[kind]


def place_of(cluster: Cluster, pod: Pod) -> PlaceModel | None:
    """Returns a pod's place in its queue; None if it waits at no gate."""
    stands = cluster.gates.line_of(pod.uid)
    if stands is None:
        return None
    (queue, namespace), line, job = stands
    return PlaceModel(queue=shortened(queue), namespace=namespace, place=line.position(job.name), of=len(line))
