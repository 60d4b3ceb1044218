"""Pods that should be gone by now: which do not count any more, and from which no room is expected.

A pod that is being deleted is gone once its kubelet says so, at the latest at its deletion time, which includes its
grace period. Where its node is gone or unreachable, nobody says so, and it would hold its quota for ever. Such a pod is
**overdue** some time after its deletion time, and counts no more until its node is back; ResourceQuota of Kubernetes
does without the wait. A pod that does not end although its node is there is **stuck**: it counts, but nobody waits for
its end.

Times are seconds since the epoch, on the clock of whoever says what time it is.
"""

from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from math import inf

from policy.cluster.by_node import ByNode
from policy.cluster.deadlines import Deadlines
from policy.objects.pod import Pod

AFTER = 300.0
"""Seconds beyond the deletion time until a pod on a node that is gone or unreachable does not count any more."""
STUCK_AFTER = 60.0
"""Seconds beyond the deletion time until nobody waits for a pod to end."""


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
        """UIDs of all of them."""
        return self._pods.keys()

    def namespaces(self) -> dict[str, int]:
        """How many there are in each namespace that has some."""
        return {namespace: len(pods) for namespace, pods in self._in_namespace.items()}

    def queue_of(self, uid: str) -> str:
        """The queue that an overdue pod would count in."""
        return self._pods[uid][1]

    def in_namespace(self, namespace: str) -> Collection[Pod]:
        """Those of a namespace."""
        return self._in_namespace.get(namespace, {}).values()

    def in_queue(self, queue: str) -> Collection[Pod]:
        """Those that are in a queue."""
        return self._in_queue.get(queue, {}).values()

    def add(self, pod: Pod, queue: str) -> None:
        """A pod is overdue, in this queue (empty: in none); said again, it replaces what was said before."""
        self.discard(pod.uid)
        self._pods[pod.uid] = pod, queue
        self._in_namespace.setdefault(pod.namespace, {})[pod.uid] = pod
        if queue:
            self._in_queue.setdefault(queue, {})[pod.uid] = pod

    def discard(self, uid: str) -> None:
        """A pod is overdue no more; for one that was not it is no error."""
        pod, queue = self._pods.pop(uid, (None, ""))
        if pod is not None:
            for index, key in ((self._in_namespace, pod.namespace), (self._in_queue, queue)):
                if key in index:
                    index[key].pop(uid, None)
                    if not index[key]:
                        del index[key]


class Deletions:
    """The pods on nodes that are being deleted. ``now`` is the time that was last said.

    ``late`` are those whose time is over by so much that they are overdue if their node is lost, ``stuck`` those that
    nobody waits for any more.
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
        """A pod on a node is being deleted, or has changed since. Without a deletion time it is never late."""
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
        """A pod is gone, or has ended; for one that was not being deleted it is no error."""
        if self._pods.pop(uid, None) is not None:
            self._by_node.put(uid, ())
            self._late.clear(uid)
            self._stuck.clear(uid)
            self.late.discard(uid)
            self.stuck.discard(uid)

    def pass_time(self, now: float) -> list[str]:
        """Lets time pass; the UIDs of the pods that are late since then."""
        self.now = now
        self.stuck.update(self._stuck.over(now))
        late = list(self._late.over(now))
        self.late.update(late)
        return late

    def uids(self) -> AbstractSet[str]:
        """UIDs of all of them."""
        return self._pods.keys()

    def on(self, node: str) -> list[str]:
        """UIDs of the pods of a node."""
        return self._by_node.pods_of(node)

    def after_their_time(self) -> Iterator[Pod]:
        """The pods whose deletion time is over."""
        return (pod for pod in self._pods.values() if 0 < pod.deletion_time <= self.now)
