"""Who waits for a node, and why: of many pods the first in turn, and the sums of all."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nsmallest

from policy import admission, gangs, reservation
from policy.cluster import Cluster
from policy.pod import Pod, turn
from policy.reservation import kept_from

SHOWN = 100
"""How many waiting pods are shown one by one."""
SLICE = 100
NO_RULE, UNTRIED = "no rule", "not tried"
"""Stand for a rule where the scheduler says something else of a pod, and where it has said nothing yet."""
NOT_BY_NUMBERS = {gangs.MINIMUM: gangs.TEXT, **reservation.TEXTS}
"""Rules that also look at nodes: whether they still hold is not asked here, as it may take a while."""
LONGEST = 300
"""Characters of what a scheduler says that are shown."""


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that waits: why, in words, and since when it is there (epoch seconds).

    ``kept`` is the node where room is kept for it, if there is one.
    """

    namespace: str
    name: str
    queue: str
    message: str
    kept: str
    created: float


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule, and how many pods it keeps waiting."""

    rule: str
    pods: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The first pods in turn, and how many wait for which rule."""

    pods: tuple[WaitingPod, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def total(self) -> int:
        """How many wait in all."""
        return sum(reason.pods for reason in self.reasons)


@dataclass(slots=True)
class Crowd:
    """Counts who waits, by rule, namespace and queue, and keeps those whose turn comes first."""

    by_rule: Counter[str] = field(default_factory=Counter)
    by_namespace: Counter[str] = field(default_factory=Counter)
    by_queue: Counter[str] = field(default_factory=Counter)
    first: list[Pod] = field(default_factory=list)

    def waiting(self, cluster: Cluster) -> Waiting:
        """What is shown of them. Why each of the first waits is asked of the rules now."""
        by_number = sorted(self.by_rule.items(), key=lambda each: (-each[1], each[0]))
        reasons = tuple(Reason(rule, number) for rule, number in by_number)
        kept = {each.pod.uid: each.node for each in (*cluster.reservations.values(), *cluster.reserved)}
        return Waiting(tuple(_shown(cluster, pod, kept.get(pod.uid, "")) for pod in self.first), reasons)


def count(cluster: Cluster, is_meant: Callable[[Pod], bool] | None = None) -> Iterator[Crowd]:
    """Counts the waiting pods (those that are meant, if that is said); yields in between, and at the end."""
    crowd, found = Crowd(), list[Pod]()
    for index, pod in enumerate(list(cluster.pods.values()), start=1):
        if _waits(cluster, pod) and (is_meant is None or is_meant(pod)):
            crowd.by_rule[_rule(cluster, pod)] += 1
            crowd.by_namespace[pod.namespace] += 1
            crowd.by_queue[cluster.queue_of(pod)] += 1
            found.append(pod)
        if index % SLICE == 0:
            if len(found) > SHOWN:
                crowd.first, found = nsmallest(SHOWN, [*crowd.first, *found], key=turn), []
            yield crowd
    crowd.first = nsmallest(SHOWN, [*crowd.first, *found], key=turn)
    yield crowd


def _rule(cluster: Cluster, pod: Pod) -> str:
    """The rule that the scheduler last named; of a pod that it has not tried yet, the rule that refuses it now."""
    if pod.unschedulable is not None:
        return _rule_in(pod.unschedulable.message)
    refused = cluster.check(pod) if pod.uid in cluster.pods else None
    return refused.rule if refused else UNTRIED


@lru_cache(maxsize=4096)
def _rule_in(message: str) -> str:
    return admission.refused_by(message) or kept_from(message) or NO_RULE


def _waits(cluster: Cluster, pod: Pod) -> bool:
    return pod.pending and not pod.terminating and not pod.gated and pod.uid not in cluster.grants


def _shown(cluster: Cluster, pod: Pod, kept: str) -> WaitingPod:
    rule = _rule(cluster, pod)
    refused = cluster.check(pod) if pod.uid in cluster.pods else None
    if refused is not None:
        message = refused.message
    elif rule in NOT_BY_NUMBERS:
        message = NOT_BY_NUMBERS[rule]
    elif rule == UNTRIED:
        message = "no rule refuses it; no scheduler has tried it yet"
    elif rule == NO_RULE:
        message = f"the scheduler says: {pod.unschedulable.message[:LONGEST] if pod.unschedulable else ''}"
    else:
        message = "no rule refuses it any more; the scheduler has to try it again"
    return WaitingPod(pod.namespace, pod.name, cluster.queue_of(pod), message, kept, pod.created)
