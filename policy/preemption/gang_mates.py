"""Gang mates: of a gang that cannot do without a victim the other members are evicted, too, or none is."""

from policy.cluster.cluster import Cluster
from policy.objects.group import Key
from policy.objects.pod import Pod
from policy.objects.resources import add, total
from policy.preemption.ranking import importance
from policy.preemption.taken import Taken
from policy.quota import queue_rules
from policy.quota.exempt_from_eviction import exempt_from_eviction


class GangMates:
    """Which running gangs would fall below their minimum without a pod, and who is evicted along with it then.

    ``queue`` is the preemptor's.
    """

    __slots__ = ("_cluster", "_members", "_queue", "_ready", "_taken")

    def __init__(self, cluster: Cluster, queue: str, taken: Taken) -> None:
        self._cluster = cluster
        self._queue = queue
        self._taken = taken
        self._ready: dict[Key, set[str]] = {}
        self._members: dict[Key, tuple[int, list[Pod]]] = {}

    def is_needed(self, pod: Pod) -> bool:
        """Whether a running gang would fall below its minimum without the pod, after what is taken so far."""
        group = self._cluster.gangs.gang_of(pod)
        if group is None or pod.uid in self._taken.gone:
            return False
        ready = self._ready.get(group.key)
        if ready is None:
            ready = self._ready[group.key] = self._cluster.gangs.ready(group) - self._taken.leaving
        return pod.uid in ready and len(ready) - self._taken.by_gang.get(group.key, 0) == group.minimum

    def beyond_minimum(self, pod: Pod) -> int:
        """How many members more than its minimum a pod's gang had before anybody was taken: it can do without these."""
        group = self._cluster.gangs.gang_of(pod)
        return len(self._ready[group.key]) - group.minimum if group else 0

    def needing(self, pod: Pod) -> list[Pod]:
        """The other members of a gang that cannot do without the pod, the least important first: they are evicted, too.

        Left out are those that are exempt from eviction, and those by whose eviction their queue would fall below its
        guarantee: what makes a gang large must not protect what was lent to it.
        """
        if not self.is_needed(pod):
            return []
        ledger = self._cluster.ledger
        name = ledger.queue_of(pod)
        queue = ledger.queues.accounts.get(name)
        own = ledger.queues.accounts.get(self._queue)
        exists = queue is not None and queue.queue is not None
        bound_by = queue_rules.way_between(own, queue) if queue is not None and exists and name != self._queue else None
        along, together = list[Pod](), dict(pod.request)
        for other in self._may_go((pod.namespace, pod.group)):
            if other.uid == pod.uid:
                continue
            if bound_by is None:
                along.append(other)
            elif bound_by.may_lose(total((together, other.request))):
                add(together, other.request)
                along.append(other)
        return along

    def running(self, pod: Pod) -> list[Pod]:
        """The members on nodes of a gang that cannot do without the pod, as they were before anybody was taken."""
        pods = self._cluster.pods
        members = (pods[uid] for uid in self._ready[pod.namespace, pod.group] if uid in pods)
        return [member for member in members if member.assigned and not member.terminating]

    def _may_go(self, key: Key) -> list[Pod]:
        """The members that are still there and not exempt from eviction; found anew if others are taken than before."""
        known = self._members.get(key)
        if known is None or known[0] != self._taken.changes:
            ledger, pods = self._cluster.ledger, self._cluster.pods
            members = (pods[uid] for uid in self._ready[key] - self._taken.gone if uid in pods)
            there = [member for member in members if not exempt_from_eviction(ledger, member)]
            known = self._members[key] = self._taken.changes, sorted(there, key=importance, reverse=True)
        return known[1]
