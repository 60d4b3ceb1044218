"""Evictions: they are counted here, and the latest are remembered, so that a pod that is gone still has its story."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from app.observability import metrics
from app.observability.queue_metrics import label_of
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import allocated, shown
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING

MOST = 2000
"""Maximum number of evictions that are remembered."""
RESOURCES = 8
"""Maximum number of resources of which the figures at an eviction are remembered."""
JOB_TAKEN_BACK = "job-taken-back"
"""The reason for pods that end because their Job was suspended or lowered."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The amounts of a resource at an eviction: what the pod requested, and of its quota and its queue. None: no such.

    The pod itself is included in ``used`` and ``allocated``.
    """

    resource: str
    request: int
    used: int | None = None
    min: int | None = None
    max: int | None = None
    allocated: int | None = None
    deserved: int | None = None


@dataclass(frozen=True, slots=True)
class Evicted:
    """An eviction, in seconds since the epoch: of which pod, for whom (or empty), and why.

    It has names alone: a pod itself may be large, and would be kept long after it is gone.
    """

    at: float
    uid: str
    namespace: str
    name: str
    queue: str
    node: str
    reason: str
    for_whom: str
    why: str
    figures: tuple[Figures, ...]


class Evictions:
    """Counts evictions by reason, and remembers the latest."""

    def __init__(self) -> None:
        """Starts without evictions."""
        self._latest: deque[Evicted] = deque()
        self._by_name: dict[tuple[str, str], Evicted] = {}

    def note(self, evicted: Evicted) -> None:
        """Counts and remembers an eviction."""
        metrics.QUEUE_EVICTIONS.labels(evicted.queue, evicted.reason).inc()
        self._latest.append(evicted)
        self._by_name[evicted.namespace, evicted.name] = evicted
        if len(self._latest) > MOST:
            oldest = self._latest.popleft()
            name = oldest.namespace, oldest.name
            if self._by_name[name] is oldest:  # else a later pod of the name was evicted, too
                del self._by_name[name]

    def remember(self, earlier: Iterable[Evicted]) -> None:
        """Remembers evictions from before all others, the latest first. Metrics count them no more."""
        for each in islice(earlier, MOST - len(self._latest)):
            self._latest.appendleft(each)
            self._by_name.setdefault((each.namespace, each.name), each)

    def of(self, namespace: str, name: str) -> Evicted | None:
        """Returns the latest eviction of a pod of that name, if it is remembered."""
        return self._by_name.get((namespace, name))

    def __iter__(self) -> Iterator[Evicted]:
        """Iterates over the evictions that are remembered, the latest first."""
        return reversed(self._latest)


def eviction_of(cluster: Cluster, pod: Pod, reason: str, why: str, for_whom: str = "") -> Evicted:
    """Describes the eviction of a pod. Call it before the eviction, while the figures are those that led to it."""
    queue, placed = label_of(cluster, pod), cluster.table.placed(pod.uid)
    node = pod.node or (placed.site.name if placed else "")
    figures = _figures(cluster, pod, queue)
    return Evicted(time.time(), pod.uid, pod.namespace, pod.name, queue, node, reason, for_whom, why, figures)


def _figures(cluster: Cluster, pod: Pod, queue: str) -> tuple[Figures, ...]:
    account = cluster.ledger.account(pod.namespace)
    quota, used = account.quota, account.used
    taken = allocated(cluster, queue) if queue else NOTHING
    deserved = cluster.ledger.queues.node(queue).division.deserved if queue else NOTHING
    return tuple(
        Figures(
            resource,
            amount,
            used.get(resource, 0) if quota is not None else None,
            quota.min.get(resource) if quota is not None else None,
            quota.max.get(resource) if quota is not None else None,
            taken.get(resource, 0) if queue else None,
            deserved.get(resource, 0) if queue else None,
        )
        for resource, amount in sorted(shown(cluster, pod.request).items())[:RESOURCES]
        if amount and (resource != "pods" or (quota is not None and resource in {**quota.min, **quota.max}))
    )
