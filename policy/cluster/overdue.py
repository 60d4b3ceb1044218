"""Pods that should be gone by now: those that no longer count, and those that are not expected to leave room.

A pod that is being deleted is gone once its kubelet says so, at the latest at its deletion time, which includes its
grace period. If its node is gone or unreachable, nobody says so, and it would hold its quota for ever. Such a pod is
**overdue** some time after its deletion time. It does not count until its node is back. (ResourceQuota of Kubernetes
does not wait.) A pod that does not end although its node is there is **stuck**: it counts, but nobody waits for its
end.

Times are seconds since the epoch, on the caller's clock.
"""

from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from math import inf

from policy.cluster.by_node import ByNode
from policy.cluster.deadlines import Deadlines
from policy.objects.pod import Pod

AFTER = 300.0
"""Seconds after its deletion time until a pod on a node that is gone or unreachable no longer counts."""
STUCK_AFTER = 60.0
"""Seconds after its deletion time until nobody waits any longer for a pod to end."""


class Overdue:
    """The overdue pods: by UID, and by the namespace and the queue in which they would count."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[Pod, str]] = {}
        self._in_namespace: dict[str, dict[str, Pod]] = {}
        self._in_queue: dict[str, dict[str, Pod]] = {}

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)

    def uids(self) -> AbstractSet[str]:
        """Returns UIDs of all overdue pods."""
        return self._pods.keys()

    def namespaces(self) -> dict[str, int]:
        """Returns the number of overdue pods by namespace."""
        return {namespace: len(pods) for namespace, pods in self._in_namespace.items()}

    def queue_of(self, uid: str) -> str:
        """Returns the queue that an overdue pod would count in."""
        return self._pods[uid][1]

    def in_namespace(self, namespace: str) -> Collection[Pod]:
        """Returns the overdue pods of a namespace."""
        return self._in_namespace.get(namespace, {}).values()

    def in_queue(self, queue: str) -> Collection[Pod]:
        """Returns the overdue pods of a queue."""
        return self._in_queue.get(queue, {}).values()

    def add(self, pod: Pod, queue: str) -> None:
        """Adds an overdue pod, in this queue (empty: in none), in place of an earlier entry."""
        self.discard(pod.uid)
        self._pods[pod.uid] = pod, queue
        self._in_namespace.setdefault(pod.namespace, {})[pod.uid] = pod
        if queue:
            self._in_queue.setdefault(queue, {})[pod.uid] = pod

    def discard(self, uid: str) -> None:
        """Removes a pod that is no longer overdue. Does nothing for one that was not."""
        pod, queue = self._pods.pop(uid, (None, ""))
        if pod is not None:
            for index, key in ((self._in_namespace, pod.namespace), (self._in_queue, queue)):
                if key in index:
                    index[key].pop(uid, None)
                    if not index[key]:
                        del index[key]


class Deletions:
    """The pods on nodes that are being deleted. ``now`` is the last time passed in.

    ``late`` are those that are far enough past their deletion time to be overdue if their node is lost. ``stuck`` are
    those whose end nobody waits for any more.
    """

    def __init__(self, after: float = AFTER, stuck_after: float = STUCK_AFTER) -> None:
        self.now = 0.0
        self.late: set[str] = set()
        self.stuck: set[str] = set()
        self.after = after
        self.stuck_after = stuck_after
        self._pods: dict[str, Pod] = {}
        self._by_node = ByNode()
        self._late = Deadlines()
        self._stuck = Deadlines()

    def watch(self, pod: Pod) -> None:
        """Adds or updates a pod on a node that is being deleted. Without a deletion time it is never late."""
        self._pods[pod.uid] = pod
        self._by_node.put(pod.uid, (pod.node,))
        due = pod.deletion_time or inf
        for over, deadlines, at in (
            (self.late, self._late, due + self.after),
            (self.stuck, self._stuck, due + self.stuck_after),
        ):
            if at <= self.now:
                deadlines.clear(pod.uid)
                over.add(pod.uid)
            else:
                over.discard(pod.uid)
                deadlines.set(pod.uid, at)

    def forget(self, uid: str) -> None:
        """Forgets a pod that is gone or has ended. Does nothing for one that was not being deleted."""
        if self._pods.pop(uid, None) is not None:
            self._by_node.put(uid, ())
            self._late.clear(uid)
            self._stuck.clear(uid)
            self.late.discard(uid)
            self.stuck.discard(uid)

    def pass_time(self, now: float) -> list[str]:
        """Lets time pass; returns the UIDs of the pods that have become late."""
        self.now = now
        self.stuck.update(self._stuck.over(now))
        late = list(self._late.over(now))
        self.late.update(late)
        return late

    def uids(self) -> AbstractSet[str]:
        """Returns UIDs of all pods on nodes that are being deleted."""
        return self._pods.keys()

    def on(self, node: str) -> list[str]:
        """Returns UIDs of these pods on one node."""
        return self._by_node.pods_of(node)

    def after_their_time(self) -> Iterator[Pod]:
        """Yields the pods whose deletion time is over."""
        return (pod for pod in self._pods.values() if 0 < pod.deletion_time <= self.now)
