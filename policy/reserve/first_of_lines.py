"""Finds the jobs that stand first in each line, among however many that wait."""

from collections.abc import Collection, Sequence
from heapq import nsmallest
from math import inf
from operator import itemgetter
from typing import Any, Generic, TypeVar

from policy.cluster.attempts import refused_by_rules
from policy.cluster.cluster import Cluster
from policy.objects.job import job_name
from policy.objects.pod import Pod, turn
from policy.stepwise import Steps

K = TypeVar("K")

AT_A_TIME = 50
"""Waiting pods that are looked at between two pauses."""
PODS_A_SECOND = 5000.0
"""For each so many waiting pods, what was found is kept for one second more."""

Key = tuple[str, str]
"""Namespace and name of a job."""


def line_of(cluster: Cluster, pod: Pod) -> Key:
    """Returns the line in which a pod waits: that of its queue, or of its namespace if it is in none."""
    queue = cluster.queue_of(pod)
    return ("", queue) if queue else (pod.namespace, "")


class Smallest(Generic[K]):
    """The keys that have the smallest ranks, of however many are added. A key has the smallest rank it came with."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._ranks: dict[K, Any] = {}

    def add(self, key: K, rank: Any) -> None:
        """Ranks are compared only with each other."""
        known = self._ranks.get(key)
        if known is None or rank < known:
            self._ranks[key] = rank
        if len(self._ranks) > 2 * self._number:
            self._ranks = dict(self.in_order())  # a step must not grow with what waits

    def in_order(self) -> list[tuple[K, Any]]:
        """Returns the keys, each with its rank; the smallest rank comes first."""
        return nsmallest(self._number, self._ranks.items(), key=itemgetter(1))


class FirstOfLines:
    """The first jobs of each line, by priority and then by creation. The more pods wait, the longer they are kept."""

    def __init__(self) -> None:
        self.jobs: Collection[Key] = ()
        self._found_at = -inf
        self._kept_for = 0.0

    def find_steps(self, cluster: Cluster, waiting: Sequence[str], number: int, now: float) -> Steps[None]:
        """Finds them among waiting pods, of which these are the UIDs, if that is due at the time ``now``.

        Pods that a rule of their quota or queue refuses wait for no node.
        """
        if 0 <= now - self._found_at < self._kept_for:
            return
        lines = dict[Key, Smallest[Key]]()
        for count, uid in enumerate(waiting):
            if not count % AT_A_TIME:
                yield
            pod = cluster.pending.get(uid)
            if pod is None or pod.terminating or pod.gated or uid in cluster.grants or refused_by_rules(pod):
                continue
            first = lines.setdefault(line_of(cluster, pod), Smallest(number))
            first.add((pod.namespace, job_name(cluster.membership.groups, pod)), turn(pod))
        self.jobs = {key for first in lines.values() for key, _ in first.in_order()}
        self._found_at, self._kept_for = now, len(waiting) / PODS_A_SECOND
