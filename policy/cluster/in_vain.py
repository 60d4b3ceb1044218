"""Wasted preemption: backoff for pods that other teams' pods were evicted for in vain, doubled each time.

Evictions for a pod are wasted if the pod goes away, or is not bound, once it has room. A user who may create pods
within a min can cause that on purpose, again and again, under new UIDs. So a failure counts for all pods of the
namespace with the same request. Once pods of several sizes have failed, it counts for the namespace as a whole.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from policy.objects.pod import Pod

FIRST, LONGEST = 10.0, 600.0
"""Seconds of backoff after the first failure, and at most (doubling)."""
FORGIVEN = 2
"""Failures of any pods of a namespace that do not make all of them back off: one user's errors are not everybody's."""

ASKED_AGAIN = 2.0
"""Seconds after an answer in which kube-scheduler may not have seen its effects yet."""

FailureKey = tuple[str, Hashable]
"""A namespace, and what its pods request."""


@dataclass(slots=True)
class _Failures:
    """The number of failures, the time of the last one, and the end of the backoff."""

    number: int = 0
    last: float = -inf
    until: float = -inf


@dataclass(slots=True)
class _Promise:
    """The victims that kube-scheduler was told for a pod, by node: first at ``since``, last at ``asked``.

    ``node`` is the one that it chose; ``ended`` is when the pod no longer waited.
    """

    pod: Pod
    since: float
    victims: dict[str, frozenset[str]]
    asked: float
    node: str = ""
    ended: float = inf

    def gone(self, pods: Mapping[str, Pod]) -> set[str]:
        """Returns which victims are gone or terminating; those of all nodes, if it is not known which was chosen."""
        uids = self.victims.get(self.node) or frozenset[str]().union(*self.victims.values())
        return {uid for uid in uids if uid not in pods or pods[uid].terminating}


class InVain:
    """Failures by kind and by namespace. Times are on the caller's clock. Drops what is long past."""

    def __init__(self, first: float = FIRST) -> None:
        """Begins without failures. ``first``: seconds of backoff after the first failure."""
        self._first = first
        self._kinds: dict[FailureKey, _Failures] = {}
        self._namespaces: dict[str, _Failures] = {}
        self._promises: dict[str, _Promise] = {}
        self._ended: dict[str, None] = {}
        self._counted: dict[str, float] = {}

    def waits_until(self, pod: Pod) -> float:
        """Returns until when no pod of another namespace is evicted for a pod; a past time if it does not back off."""
        ends = (self._kinds.get(failure_key(pod)), self._namespaces.get(pod.namespace))
        return max((each.until for each in ends if each is not None), default=-inf)

    def fail(self, namespace: str, kind: FailureKey | None, since: float, now: float) -> None:
        """Counts a failed plan that began at ``since``. ``kind`` None: it is not known for what kind of pod.

        Of plans that ran side by side only the first counts: nobody knew of its failure when the others began.
        """
        if kind is not None:
            self._count(self._kinds.setdefault(kind, _Failures()), since, now, 0)
        self._count(self._namespaces.setdefault(namespace, _Failures()), since, now, FORGIVEN)

    def count(self, uids: Iterable[str], now: float) -> int:
        """Notes pods that were evicted in vain; returns how many are new, as reclaim and the scheduler may both ask."""
        new = [uid for uid in uids if uid not in self._counted]
        self._counted.update(dict.fromkeys(new, now))
        return len(new)

    def succeed(self, pod: Pod) -> None:
        """Notes that a pod runs where others were evicted for it.

        That cancels all failures of its kind, and one of its namespace.
        """
        self._kinds.pop(failure_key(pod), None)
        of_all = self._namespaces.get(pod.namespace)
        if of_all is not None:
            of_all.number -= 1
            if of_all.number <= 0:
                del self._namespaces[pod.namespace]

    def promise(self, pod: Pod, victims: Mapping[str, Iterable[Pod]], now: float) -> None:
        """Notes the victims that kube-scheduler is told for a pod, by node. It evicts those of one, and tells nobody.

        It may ask again before it has seen that the victims of the last answer are terminating: they count, too.
        """
        known = self._promises.setdefault(pod.uid, _Promise(pod, now, {}, now, pod.nominated_node))
        if now - known.asked > ASKED_AGAIN:
            known.victims.clear()
        known.asked = now
        for node, some in victims.items():
            known.victims[node] = known.victims.get(node, frozenset()) | {each.uid for each in some}

    def see(self, pod: Pod) -> None:
        """Sees a pod. If kube-scheduler may have evicted others for it, it is judged once it no longer waits."""
        promise = self._promises.get(pod.uid)
        if promise is None:
            return
        if pod.pending and not pod.terminating:
            promise.node = pod.nominated_node or promise.node
        else:
            self._ended[pod.uid] = None

    def forget(self, uid: str) -> None:
        """Sees that a pod is gone."""
        if uid in self._promises:
            self._ended[uid] = None

    def settle(self, pods: Mapping[str, Pod], now: float) -> Iterator[tuple[str, int]]:
        """Judges the pods that no longer wait: whether others were evicted for them, and whether that was in vain.

        Takes time only for pods that have ended since. If no victim of a pod is seen to leave yet, it looks again for
        ``ASKED_AGAIN`` seconds. Yields namespaces, and how many pods were evicted in vain for one of theirs.
        """
        for uid in list(self._ended):
            promise, pod = self._promises[uid], pods.get(uid)
            promise.ended = min(promise.ended, now)
            gone = promise.gone(pods)
            if not gone and now - promise.ended < ASKED_AGAIN:
                continue
            del self._promises[uid], self._ended[uid]
            if gone and pod is not None and pod.assigned:
                self.succeed(pod)
            elif gone:
                self.fail(promise.pod.namespace, failure_key(promise.pod), promise.since, now)
                yield promise.pod.namespace, self.count(gone, now)

    def tick(self, now: float, pods: Mapping[str, Pod]) -> None:
        """Drops promises, and kinds and namespaces without a new failure, after the longest backoff.

        Ends the promise to a pod that was gone already when ``preempt`` answered.
        """
        for uid, each in self._promises.items():
            if uid not in pods and now - each.asked > ASKED_AGAIN:
                self._ended[uid] = None
        horizon = now - LONGEST
        old = [uid for uid, each in self._promises.items() if each.since < horizon and uid not in self._ended]
        for uid in old:
            del self._promises[uid]
        self._counted = {uid: at for uid, at in self._counted.items() if at > horizon}
        self._kinds = {key: each for key, each in self._kinds.items() if max(each.last, each.until) > horizon}
        self._namespaces = {key: each for key, each in self._namespaces.items() if max(each.last, each.until) > horizon}

    def _count(self, failures: _Failures, since: float, now: float, forgiven: int) -> None:
        if since <= failures.last:
            return
        failures.number += 1
        failures.last = now
        if failures.number > forgiven:
            failures.until = now + pause(self._first, failures.number - forgiven)


def failure_key(pod: Pod) -> FailureKey:
    """Returns what a pod's failures count for. Leaves out names, labels and priorities: users change them for free."""
    return pod.namespace, frozenset(pod.request.items())


def pause(first: float, failures: int) -> float:
    """Returns the seconds of backoff after so many failures."""
    return min(first * 2.0 ** min(failures - 1, 30), max(first, LONGEST))
