"""In which order a simulation tries what waits: first pods before the scheduler, then those at gates in their order.

The scheduler tries its pods as soon as something is free. Jobs that wait as a whole stand at gates; the order there is
that of policy.queueing.ungating.
Seed: namespace fair share (Scheduling loop): choose the namespace first, then the job, then look again after each one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush, heapreplace

from policy.cluster.cluster import Cluster
from policy.cluster.gates import Where
from policy.objects.pod import Pod
from policy.queueing.queue_turns import QueueTurns
from policy.queueing.ungating import NamespaceKey, namespace_key, queue_key
from policy.simulate.waiting_jobs import Place


class TrialOrder:
    """Pods, and the first Job of each kind. Both may be added at any time."""

    def __init__(self, cluster: Cluster, places: Iterable[Place] = ()) -> None:
        self._cluster = cluster
        self._weights = cluster.membership.weight_by_namespace()
        self._of_scheduler: list[Place] = []
        self._lines: dict[Where, list[Place]] = {}
        self._namespaces: dict[str, list[NamespaceKey]] = {}
        self._queues = QueueTurns(cluster.ledger.queues.tree, partial(queue_key, cluster))
        self.add_all(places)

    def __bool__(self) -> bool:
        """Whether there is any place left."""
        return bool(self._of_scheduler or self._queues)

    def add(self, place: Place) -> None:
        """Adds a place."""
        where = self._line_of(place)
        if where is None:
            heappush(self._of_scheduler, place)
            return
        line = self._lines.setdefault(where, [])
        heappush(line, place)
        if len(line) == 1:
            self._join(where)

    def add_all(self, places: Iterable[Place]) -> None:
        """Adds places."""
        for place in places:
            self.add(place)

    def pop(self) -> Place:
        """Removes the place whose turn it is; returns it."""
        if self._of_scheduler:
            return heappop(self._of_scheduler)
        where = self._pop_line()
        place = heappop(self._lines[where])
        if self._lines[where]:
            self._join(where)
        return place

    def without_jobs(self) -> TrialOrder:
        """Returns the pods that are left."""
        at_gates = [each for line in self._lines.values() for each in line if isinstance(each[1], Pod)]
        left = TrialOrder(self._cluster, at_gates)
        left._of_scheduler = self._of_scheduler
        return left

    def _line_of(self, place: Place) -> Where | None:
        if not isinstance(place[1], Pod):
            return place[1].peers.where
        stands = self._cluster.gates.line_of(place[1].uid)
        return stands[0] if stands is not None else None

    def _join(self, where: Where) -> None:
        keys = self._namespaces.setdefault(where[0], [])
        if not keys:
            self._queues.add(where[0])
        heappush(keys, self._key(*where))

    def _pop_line(self) -> Where:
        """Removes the line whose turn it is; returns it. Starts have moved their lines back."""
        queue = self._queues.pop()
        keys = self._namespaces[queue]
        while (now := self._key(queue, keys[0][2])) != keys[0]:
            heapreplace(keys, now)
        namespace = heappop(keys)[2]
        if keys:
            self._queues.add(queue)
        return queue, namespace

    def _key(self, queue: str, namespace: str) -> NamespaceKey:
        return namespace_key(self._cluster, queue, namespace, self._weights.get(namespace, 1))
