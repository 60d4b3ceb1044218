"""What the scheduler last said of the pods that wait, and which of them have a chance by that.

It tries each of them and writes into a condition why it has not placed it: that filter refused it, that no node has
room, or something else. Who was tried in vain for too long has no chance (see policy.cluster.unschedulable).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster.unschedulable import Chances
from policy.quota.rules import named_in

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

TIME_TO_RECLAIM = 5.0
"""Seconds for which a pod that is first seen has a chance at least: until reclaim has looked for victims for it."""
UNANSWERED = "failed filter with extender"
"""What kube-scheduler writes into a pod's condition when filter did not answer with 200."""
UNSCHEDULABLE = "Unschedulable"
"""The reason of a pod's condition when the scheduler tried, and found no node; other reasons are errors or gates."""


class Attempts:
    """The pods of a cluster that wait, by what was said of them.

    ``refused`` are those of which the scheduler last said that one of our rules refuses them, ``unschedulable_since``
    says when it was first seen of one that the scheduler found no place for it, ``untried_since`` since when it has
    said nothing of one, by namespace. ``chances`` says who has one.
    """

    def __init__(self, cluster: Cluster, patience: float) -> None:
        self.refused: dict[str, Pod] = {}
        self.unschedulable_since: dict[str, float] = {}
        self.untried_since: dict[str, dict[str, float]] = {}
        self.chances = Chances(patience)
        self._cluster = cluster

    def has_chance(self, pod: Pod) -> bool:
        """Whether there is any hope for a pod that waits: the scheduler has not tried it in vain for too long."""
        return self.chances.has(pod.uid)

    def heed(self, pod: Pod, before: Pod | None, now: float) -> None:
        """Notes what the scheduler last said of a pod: no place found, and whether by our rules.

        That no place was found for it casts doubt on its chance, whoever says so. That its quota or its queue refuses
        it does not, but gives none back to one that has lost it.
        """
        chances, gangs = self.chances, self._cluster.gangs
        found_none = pod.pending and pod.unschedulable is not None and pod.unschedulable.reason == UNSCHEDULABLE
        by_us = pod.pending and refused_by_us(pod)
        if found_none:
            self.unschedulable_since.setdefault(pod.uid, now)
        else:
            self.unschedulable_since.pop(pod.uid, None)
        if pod.pending and pod.unschedulable is None and pod.gate < 0:
            self.untried_since.setdefault(pod.namespace, {}).setdefault(pod.uid, now)
        else:
            self._tried(pod)
        if by_us:
            self.refused[pod.uid] = pod
        else:
            self.refused.pop(pod.uid, None)
        if found_none and not (refused_by_rules(pod) and chances.has(pod.uid)):
            chances.doubt(pod, gangs.takes_to_start(pod), self._without_place_since(pod, before, now))
        else:
            chances.trust(pod.uid)
        if pod.at_gate:
            chances.gate(pod, gangs.takes_to_start(pod))
        else:
            chances.ungate(pod.uid)

    def forget(self, pod: Pod) -> None:
        """A pod is gone."""
        self._tried(pod)
        self.refused.pop(pod.uid, None)
        self.unschedulable_since.pop(pod.uid, None)
        self.chances.trust(pod.uid)
        self.chances.ungate(pod.uid)

    def _without_place_since(self, pod: Pod, before: Pod | None, now: float) -> float:
        """Since when no place was found for a pod. What was said before it was first seen here was said as it says.

        But it keeps its chance until others may have been evicted for it, also after a restart.
        """
        said = pod.unschedulable
        if before is not None or said is None or not said.since:
            return now
        return min(now, max(said.since - self._cluster.epoch, now + TIME_TO_RECLAIM - self.chances.patience))

    def _tried(self, pod: Pod) -> None:
        untried = self.untried_since.get(pod.namespace)
        if untried and untried.pop(pod.uid, None) is not None and not untried:
            del self.untried_since[pod.namespace]


def refused_by_us(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that one of our rules refuses it."""
    return pod.unschedulable is not None and named_in(pod.unschedulable.message) is not None


def refused_by_rules(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that its quota or its queue refuses it: not that there is no place."""
    rule = named_in(pod.unschedulable.message) if pod.unschedulable is not None else None
    return rule is not None and rule.refuses is not None


def not_let_through(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that filter refused it, or did not answer.

    That never tells of a grant, however late it is seen: a refusal takes the grant back itself, an error gives none.
    """
    return refused_by_us(pod) or (pod.unschedulable is not None and UNANSWERED in pod.unschedulable.message)


def says_something_new(pod: Pod, before: Pod | None) -> bool:
    """Whether the scheduler has shown that the pod was admitted in vain, if it was."""
    return before is not None and before.unschedulable != pod.unschedulable and not not_let_through(pod)
