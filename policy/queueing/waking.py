"""Chooses the refused pods that are worth waking: the scheduler does not notice that a quota was raised."""

from collections import Counter
from collections.abc import Callable, Hashable

from policy.cluster.cluster import Cluster
from policy.objects import signature
from policy.objects.group import Key
from policy.objects.pod import Pod, turn
from policy.quota.kept_nodes import kept_from
from policy.quota.trial import Trial

MOST_IN_VAIN = 100
"""The most members of gangs that cannot start that are looked at, besides the last such gang; others come next time."""


def to_wake(cluster: Cluster, backs_off: Callable[[Pod], bool] = lambda _: False) -> list[Pod]:
    """Returns the refused pods that could run now, all together: by priority of queue, then of pod, then by creation.

    In each queue, members of started gangs that lack members come first. It returns at most as many as would fit: each
    chosen pod counts against the next, as if it had been granted. Of a gang that could start it chooses one member.
    Once that one is let through, room is held for the others, so they are chosen, too. It leaves out pods that
    ``backs_off``.
    """
    with cluster.ledger.trial() as trial:
        return _to_wake(cluster, trial, backs_off)


def _to_wake(cluster: Cluster, trial: Trial, backs_off: Callable[[Pod], bool]) -> list[Pod]:
    ledger = cluster.ledger
    woken: list[Pod] = []
    refused: set[Hashable] = set()
    gangs = _Gangs(cluster)
    kept_out = _KeptOut(cluster)
    waiting = (pod for pod in cluster.attempts.refused.values() if not backs_off(pod))
    in_turn = sorted(waiting, key=lambda pod: (cluster.priority_of_queue(pod), *turn(pod)))
    for pod in cluster.gangs.incomplete_first(in_turn):
        if cluster.gangs.is_awaited(pod.uid) or pod.uid in cluster.gates.ungated:
            woken.append(pod)  # room is kept for it: it was refused before that was so
            continue
        if pod.uid in cluster.grants or pod.terminating or kept_out(pod):
            continue
        queue = ledger.queue_of(pod)
        too_long = ledger.runs_too_long(pod)
        kind = signature.by_rules(pod, queue), cluster.is_exempt(pod), too_long
        if kind in refused:  # a pod like it was refused, and nothing was released since
            continue
        trial.take_out(pod.uid)
        admitted = cluster.refusal(pod) is None
        if not admitted:
            refused.add(kind)
        if admitted and gangs.let(pod):
            woken.append(pod)
            trial.let_in(pod)
        else:
            trial.put_back(pod.uid)
    return woken


class _Gangs:
    """The gangs that cannot start, as far as they have been looked at."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: set[Key] = set()
        self._cannot_start: set[Hashable] = set()
        self._in_vain = 0

    def let(self, pod: Pod) -> bool:
        """Whether the pod could run as far as its gang is concerned; true for one member of a gang that could start."""
        gangs = self._cluster.gangs
        group = gangs.gated(pod)
        if group is None:
            return True
        if group.key in self._seen:
            return False
        missing = gangs.missing(pod)
        if missing <= 1:
            return True
        self._seen.add(group.key)
        alike = Counter(map(self._kind, gangs.pending(group)))
        shape = (pod.namespace, self._cluster.queue_of(pod), pod.priority, missing, frozenset(alike.items()))
        if shape in self._cannot_start or self._in_vain >= MOST_IN_VAIN:
            return False
        if gangs.could_start(pod):
            return True
        if not gangs.backs_off_until(group.key):  # else others of its shape go first
            self._cannot_start.add(shape)
            self._in_vain += missing
        return False

    def _kind(self, pod: Pod) -> Hashable:
        ledger = self._cluster.ledger
        return signature.by_empty_nodes(pod), ledger.runs_too_long(pod)


class _KeptOut:
    """Whether room or a node that is kept for others keeps a pod out. Answers once for all pods that are alike."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Hashable, bool] = {}

    def __call__(self, pod: Pod) -> bool:
        message = pod.unschedulable.message if pod.unschedulable else ""
        if kept_from(message) is None:
            return False
        reservations = self._cluster.reservations
        mine = reservations.is_held_for(pod.uid) or reservations.reserved.of_pod(pod.uid) or pod.nominated_node
        until = reservations.nodes.first_start_after(pod)
        kind = signature.by_rules_and_nodes(pod, pod.queue), pod.group, pod.uid if mine else "", until
        if kind not in self._known:
            self._known[kind] = reservations.is_kept_out(pod)
        return self._known[kind]
