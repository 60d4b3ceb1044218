"""Waiting pods and their reasons: the first pods in turn, and counts of all."""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from policy.cluster.cluster import Cluster
from policy.explain.queue_path import why_in_queue
from policy.explain.reasons import GATED, NO_ROOM, OTHER, QUEUED, UNTRIED, is_waiting, reason_in
from policy.objects.pod import Pod, StandsFor, turn
from policy.queueing import positions
from policy.quota.closed_queues import shortened
from policy.quota.rules import RULES
from policy.stepwise import Steps

SHOWN = 100
"""Maximum number of waiting pods that are shown one by one."""
SLICE = 100
NOT_BY_NUMBERS = {rule.name: rule.text for rule in RULES if rule.refuses is None}
"""Rules that also look at nodes. Whether they still refuse a pod is not checked here, as it may take a while."""
LONGEST = 300
"""Maximum number of characters of a scheduler's message that are shown."""
FEW = 5
"""Pods whose rules are checked between two pauses."""


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A waiting pod, or a Job that waits as a whole: the reason in words, and its creation (epoch seconds).

    ``kept`` is the node where room is kept for it, if any. ``job`` is the Job and its pods, if it is no pod.
    """

    namespace: str
    name: str
    queue: str
    message: str
    kept: str
    created: float
    job: StandsFor | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule or another reason (see policy.explain.reasons), and the number of pods (or Jobs) that it keeps waiting."""

    rule: str
    pods: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The first pods in turn, and the number that wait for each rule."""

    pods: tuple[WaitingPod, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def total(self) -> int:
        """The number of all waiting pods."""
        return sum(reason.pods for reason in self.reasons)


@dataclass(slots=True)
class Crowd:
    """The waiting pods of a namespace: how many by the rule that the scheduler named, and by queue.

    ``first`` are the first in turn, ``untried`` all that no scheduler has tried yet.
    """

    by_rule: Counter[str] = field(default_factory=Counter)
    by_queue: Counter[str] = field(default_factory=Counter)
    untried: list[Pod] = field(default_factory=list)
    first: list[Pod] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of all waiting pods."""
        return self.by_queue.total()


class Crowds:
    """Waiting pods by namespace, so that only changed namespaces are counted again."""

    def __init__(self, *, observe: bool = False) -> None:
        """Starts without pods. ``observe``: no pod waits for a rule of ours, as none is refused."""
        self._observe = observe
        self.by_queue: Counter[str] = Counter()
        self._by_rule: Counter[str] = Counter()
        self._crowds: dict[str, Crowd] = {}

    @property
    def namespaces(self) -> Collection[str]:
        """Namespaces with waiting pods."""
        return self._crowds.keys()

    def number(self, namespace: str) -> int:
        """Returns the number of waiting pods of a namespace."""
        crowd = self._crowds.get(namespace)
        return crowd.total if crowd else 0

    def count_steps(
        self, cluster: Cluster, namespace: str, is_meant: Callable[[Pod], bool] | None = None
    ) -> Steps[None]:
        """Counts the waiting pods of a namespace, or those for which ``is_meant`` is true. Pauses in between."""
        crowd = Crowd()
        for index, pod in enumerate(list(cluster.pending_in(namespace)), start=1):
            if is_waiting(cluster, pod) and (is_meant is None or is_meant(pod)):
                crowd.by_queue[cluster.queue_of(pod)] += 1
                if pod.at_gate:
                    crowd.by_rule[GATED if pod.stands_for is None else QUEUED] += 1
                elif pod.unschedulable is None:
                    crowd.untried.append(pod)
                else:
                    crowd.by_rule[reason_in(pod.unschedulable.message)] += 1
                _join(crowd.first, pod)
            if index % SLICE == 0:
                yield
        self._put(namespace, crowd)

    def waiting(self, cluster: Cluster) -> Iterator[Waiting | None]:
        """Yields what is shown of the pods, after pauses. The rules say now why each of the first pods waits."""
        by_rule, looked_at, first = Counter(self._by_rule), 0, list[Pod]()
        for crowd in list(self._crowds.values()):
            for pod in crowd.untried:
                by_rule[UNTRIED if self._observe else _rule_now(cluster, pod)] += 1
                looked_at += 1
                if looked_at % FEW == 0:
                    yield None
            for pod in crowd.first:
                looked_at += 1
                if looked_at % SLICE == 0:
                    yield None
                if not _join(first, pod):
                    break  # the rest of this crowd comes later still
        by_number = sorted(by_rule.items(), key=lambda each: (-each[1], each[0]))
        reasons = tuple(Reason(rule, number) for rule, number in by_number if number)
        shown = list[WaitingPod]()
        for pod in first:
            shown.append(_shown(cluster, pod, observe=self._observe))
            if len(shown) % FEW == 0 or pod.at_gate:
                yield None
        yield Waiting(tuple(shown), reasons)

    def _put(self, namespace: str, crowd: Crowd) -> None:
        before = self._crowds.pop(namespace, Crowd())
        self._by_rule.subtract(before.by_rule)
        self.by_queue.subtract(before.by_queue)
        if crowd.total:
            self._crowds[namespace] = crowd
            self._by_rule.update(crowd.by_rule)
            self.by_queue.update(crowd.by_queue)
        for queue in before.by_queue:
            if not self.by_queue[queue]:
                del self.by_queue[queue]  # pods may name any queue


def _rule_now(cluster: Cluster, pod: Pod) -> str:
    """Returns the rule that refuses a pod that no scheduler has tried yet."""
    refused = cluster.why_waits(pod) if pod.uid in cluster.pods else None
    return refused.rule if refused else UNTRIED


def _join(first: list[Pod], pod: Pod) -> bool:
    """Keeps the first pods in turn; returns whether this pod is one of them."""
    if len(first) == SHOWN and turn(pod) >= turn(first[-1]):
        return False
    insort(first, pod, key=turn)
    del first[SHOWN:]
    return True


def _shown(cluster: Cluster, pod: Pod, *, observe: bool) -> WaitingPod:
    kept = cluster.reservations.reserved.of_pod(pod.uid) or cluster.reservations.held_for(pod.uid)
    refused = cluster.why_waits(pod) if pod.uid in cluster.pods else None
    why = ": ".join(filter(None, (refused.message, why_in_queue(cluster, pod, refused)))) if refused else ""
    if at_gate := positions.position_text(cluster, pod):
        message = f"{why}; {at_gate}" if why else at_gate
    elif not why:
        message = _said(pod, "no rule refuses it; ", "no rule refuses it any more; ")
    elif observe:
        message = f"{_said(pod)} (observe mode: it would be refused: {why})"
    else:
        message = why
    node = kept.node if kept else ""
    queue, job = shortened(cluster.queue_of(pod)), pod.stands_for
    return WaitingPod(pod.namespace, name_of(pod), queue, message, node, pod.created, job)


def name_of(pod: Pod) -> str:
    """Returns the name of a pod, or of the Job that it stands for."""
    return pod.name if pod.stands_for is None else pod.stands_for.name


def _said(pod: Pod, untried: str = "", retried: str = "") -> str:
    """Returns the scheduler's message on a pod. A prefix of ours says that it was not tried, or must be tried again."""
    if pod.unschedulable is None:
        return f"{untried}no scheduler has tried it yet"
    reason = reason_in(pod.unschedulable.message)
    if reason in (NO_ROOM, OTHER):
        return f"the scheduler says: {pod.unschedulable.message[:LONGEST]}"
    return NOT_BY_NUMBERS.get(reason, f"{retried}the scheduler has to try it again")
