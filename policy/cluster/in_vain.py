"""For whom others were evicted in vain: they wait, twice as long each time, until others are evicted for them again.

A pod that goes away, or is not bound, once room was made for it has cost others their pods for nothing. Whoever may
create pods within a min can do so on purpose, again and again, under new UIDs. So it counts for the namespace and all
of its pods that request the same; and for the namespace as a whole once that happens to pods of several sizes.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from policy.objects.pod import Pod

FIRST, LONGEST = 10.0, 600.0
"""Seconds that are waited after the first failure, and at most (doubling)."""
FORGIVEN = 2
"""Failures of pods of a namespace, whatever they request, until all of them wait: one user's errors are not all's."""

ASKED_AGAIN = 2.0
"""Seconds after an answer in which kube-scheduler may not have seen yet what came of it."""

Kind = tuple[str, Hashable]
"""A namespace, and what its pods request."""


@dataclass(slots=True)
class _Failures:
    """How many there were, when the last one was, and until when is waited."""

    number: int = 0
    last: float = -inf
    until: float = -inf


@dataclass(slots=True)
class _Promise:
    """Since when kube-scheduler knows whom it may evict for a pod, by node; the node it chose; when the pod ended."""

    pod: Pod
    since: float
    victims: dict[str, frozenset[str]]
    asked: float
    node: str = ""
    ended: float = inf

    def gone(self, pods: Mapping[str, Pod]) -> set[str]:
        """Which of them are gone, or on their way out; of all nodes, where it is not known which was chosen."""
        uids = self.victims.get(self.node) or frozenset[str]().union(*self.victims.values())
        return {uid for uid in uids if uid not in pods or pods[uid].terminating}


class InVain:
    """What has failed, by kind and by namespace. Times are on the caller's clock; what is long past is dropped."""

    def __init__(self, first: float = FIRST) -> None:
        """``first``: seconds that are waited after the first failure."""
        self._first = first
        self._kinds: dict[Kind, _Failures] = {}
        self._namespaces: dict[str, _Failures] = {}
        self._promises: dict[str, _Promise] = {}
        self._ended: dict[str, None] = {}
        self._counted: dict[str, float] = {}

    def waits_until(self, pod: Pod) -> float:
        """Until when nobody of others is evicted for a pod; in the past where nothing is in its way."""
        ends = (self._kinds.get(kind_of(pod)), self._namespaces.get(pod.namespace))
        return max((each.until for each in ends if each is not None), default=-inf)

    def fail(self, namespace: str, kind: Kind | None, since: float, now: float) -> None:
        """Somebody was evicted in vain by a plan that was begun then. ``kind`` None: it is not known for what pod.

        Of plans that were under way side by side only the first counts: nobody could know better when they were begun.
        """
        if kind is not None:
            self._count(self._kinds.setdefault(kind, _Failures()), since, now, 0)
        self._count(self._namespaces.setdefault(namespace, _Failures()), since, now, FORGIVEN)

    def count(self, uids: Iterable[str], now: float) -> int:
        """How many of these pods, that went in vain, are not counted yet: reclaim and the scheduler may both ask."""
        new = [uid for uid in uids if uid not in self._counted]
        self._counted.update(dict.fromkeys(new, now))
        return len(new)

    def succeed(self, pod: Pod) -> None:
        """A pod runs where others were evicted for it. It makes up for all failures of its kind, and one of others."""
        self._kinds.pop(kind_of(pod), None)
        of_all = self._namespaces.get(pod.namespace)
        if of_all is not None:
            of_all.number -= 1
            if of_all.number <= 0:
                del self._namespaces[pod.namespace]

    def promise(self, pod: Pod, victims: Mapping[str, Iterable[Pod]], now: float) -> None:
        """kube-scheduler is told whom it may evict for a pod, by node. It does so on one of them, and tells nobody.

        It may ask again before it has seen that those of the answer before are on their way out: they count, too.
        """
        known = self._promises.setdefault(pod.uid, _Promise(pod, now, {}, now))
        if now - known.asked > ASKED_AGAIN:
            known.victims.clear()
        known.asked = now
        for node, some in victims.items():
            known.victims[node] = known.victims.get(node, frozenset()) | {each.uid for each in some}

    def heed(self, pod: Pod) -> None:
        """Sees a pod. One for which kube-scheduler may have evicted others is judged once it waits no more."""
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
        """Judges the pods that wait no more: whether others were evicted for them, and whether that was in vain.

        Takes time only for pods that have ended since. One for which nobody is seen to go yet is looked at again for
        ``ASKED_AGAIN`` seconds. Yields namespaces, and how many pods went in vain for one of theirs.
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
                self.fail(promise.pod.namespace, kind_of(promise.pod), promise.since, now)
                yield promise.pod.namespace, self.count(gone, now)

    def tick(self, now: float) -> None:
        """Drops what was promised, or has not failed again, for as long as is waited at most."""
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


def kind_of(pod: Pod) -> Kind:
    """What a pod's failures count for. Names, labels and priorities are no part of it, as they are changed for free."""
    return pod.namespace, frozenset(pod.request.items())


def pause(first: float, failures: int) -> float:
    """Seconds that are waited after so many failures."""
    return min(first * 2.0 ** min(failures - 1, 30), max(first, LONGEST))
