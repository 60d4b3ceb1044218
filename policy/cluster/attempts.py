"""Attempts of the scheduler to place the waiting pods, and which of these can still be placed.

The scheduler tries each of them. It writes into a condition why it has not placed a pod: filter refused it, no node has
room, or something else. A pod that was tried in vain for too long counts as unschedulable
(policy.cluster.unschedulable).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster.unschedulable import UnschedulablePods
from policy.objects.queued_job import uid_of_stand_in
from policy.quota.rules import named_in

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

TIME_TO_RECLAIM = 5.0
"""Seconds for which a pod keeps its claim at least after it is first seen: until reclaim has looked for victims."""
UNANSWERED = "failed filter with extender"
"""The text that kube-scheduler writes into a pod's condition when filter did not answer with 200."""
UNSCHEDULABLE = "Unschedulable"
"""The reason in a pod's condition if the scheduler tried and found no node; other reasons are errors or gates."""


class Attempts:
    """The waiting pods of a cluster, by what the scheduler said of them.

    ``refused`` are those that one of our rules refuses, as it last said. ``unschedulable_since`` has the time at which
    it was first seen that the scheduler found no place for a pod. ``untried_since`` has, by namespace, the time since
    which the scheduler has said nothing of a pod. ``unschedulable`` tells which pods keep their claim. ``ahead`` tells
    which come before the growth of Jobs: none for long that only evictions could help. ``without_place`` has, by the
    namespace and UID of a Job, its pods that no place was found for.
    """

    def __init__(self, cluster: Cluster, patience: float) -> None:
        self.refused: dict[str, Pod] = {}
        self.unschedulable_since: dict[str, float] = {}
        self.untried_since: dict[str, dict[str, float]] = {}
        self.without_place: dict[tuple[str, str], set[str]] = {}
        self.unschedulable = UnschedulablePods(patience)
        self.ahead = UnschedulablePods(patience)
        self._cluster = cluster

    def keeps_claim(self, pod: Pod) -> bool:
        """Whether a waiting pod can still be placed: the scheduler has not tried it in vain for too long."""
        return self.unschedulable.keeps_claim(pod.uid)

    def see(self, pod: Pod, before: Pod | None, now: float) -> None:
        """Notes what the scheduler last said of a pod: whether it found no place, and whether by our rules.

        A pod without a place begins to lose its claim, whoever says so. A refusal by its quota or queue does not have
        that effect. But it does not give back a claim that was lost.
        """
        if not pod.pending and (before is None or not before.pending):
            return  # nothing is kept of pods that do not wait
        unschedulable, gangs = self.unschedulable, self._cluster.gangs
        found_none = pod.pending and pod.unschedulable is not None and pod.unschedulable.reason == UNSCHEDULABLE
        by_us = pod.pending and refused_by_us(pod)
        if found_none:
            self.unschedulable_since.setdefault(pod.uid, now)
        else:
            self.unschedulable_since.pop(pod.uid, None)
        self._note_for_job(pod, before)
        if pod.pending and pod.unschedulable is None and pod.gate < 0:
            self.untried_since.setdefault(pod.namespace, {}).setdefault(pod.uid, now)
        else:
            self._tried(pod)
        if by_us:
            self.refused[pod.uid] = pod
        else:
            self.refused.pop(pod.uid, None)
        if found_none and not (refused_by_rules(pod) and unschedulable.keeps_claim(pod.uid)):
            unschedulable.add(pod, gangs.takes_to_start(pod), self._without_place_since(pod, before, now))
        else:
            unschedulable.remove(pod.uid)
        self._note_ahead(pod, before, now)
        if pod.at_gate:
            unschedulable.add_gated(pod, gangs.takes_to_start(pod))
        else:
            unschedulable.remove_gated(pod.uid)

    def forget(self, pod: Pod) -> None:
        """Forgets a pod that is gone."""
        self._tried(pod)
        self.unschedulable_since.pop(pod.uid, None)
        self._note_for_job(pod, pod)
        self.refused.pop(pod.uid, None)
        self.unschedulable.remove(pod.uid)
        self.ahead.remove(pod.uid)
        self.unschedulable.remove_gated(pod.uid)

    def lacks_place(self, stand_in: Pod) -> bool:
        """Whether the Job that a stand-in represents has a pod for which no place was found."""
        job = stand_in.stands_for
        return job is not None and (stand_in.namespace, job.uid) in self.without_place

    def is_behind_others(self, stand_in: Pod) -> bool:
        """Whether pods of its namespace wait for a place, so that the Job of a stand-in leaves them the room."""
        return self.ahead.some_wait(stand_in.namespace, stand_in.priority)

    def _note_ahead(self, pod: Pod, before: Pod | None, now: float) -> None:
        """Notes whether the growth of Jobs leaves room to a pod. A refusal by a rule does not begin that time anew."""
        if pod.uid not in self.unschedulable_since:
            self.ahead.remove(pod.uid)
        elif not refused_by_rules(pod):
            self.ahead.add(pod, 1, self._without_place_since(pod, before, now))

    def _note_for_job(self, pod: Pod, before: Pod | None) -> None:
        """Notes for the Job of a pod whether a place was found for the pod. It may have been of another Job before."""
        found_none = pod.uid in self.unschedulable_since
        if found_none and pod.job is not None:
            known = self.without_place.setdefault((pod.namespace, pod.job.uid), set())
            known.add(pod.uid)
            if len(known) == 1:
                self._cluster.gate_admission.stand_again(uid_of_stand_in(pod.job.uid))
        if before is not None and before.job is not None and not (found_none and before.job == pod.job):
            key = pod.namespace, before.job.uid
            known = self.without_place.get(key, set())
            known.discard(pod.uid)
            if not known and self.without_place.pop(key, None) is not None:
                self._cluster.gate_admission.stand_again(uid_of_stand_in(before.job.uid))

    def _without_place_since(self, pod: Pod, before: Pod | None, now: float) -> float:
        """Returns since when no place was found for a pod. For a pod that is new here, its condition has the time.

        But it keeps its claim until others may have been evicted for it, also after a restart.
        """
        said = pod.unschedulable
        if before is not None or said is None or not said.since:
            return now
        return min(now, max(said.since - self._cluster.epoch, now + TIME_TO_RECLAIM - self.unschedulable.patience))

    def _tried(self, pod: Pod) -> None:
        untried = self.untried_since.get(pod.namespace)
        if untried and untried.pop(pod.uid, None) is not None and not untried:
            del self.untried_since[pod.namespace]


def refused_by_us(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that one of our rules refuses it."""
    return pod.unschedulable is not None and named_in(pod.unschedulable.message) is not None


def refused_by_rules(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that its quota or queue refuses it, and not that there is no place."""
    rule = named_in(pod.unschedulable.message) if pod.unschedulable is not None else None
    return rule is not None and rule.refuses is not None


def not_let_through(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that filter refused it, or did not answer.

    That says nothing about a grant, however late it is seen: a refusal takes the grant back itself, an error gives
    none.
    """
    return refused_by_us(pod) or (pod.unschedulable is not None and UNANSWERED in pod.unschedulable.message)


def says_something_new(pod: Pod, before: Pod | None) -> bool:
    """Whether the scheduler has shown since that a pod was admitted in vain, if it was admitted."""
    return before is not None and before.unschedulable != pod.unschedulable and not not_let_through(pod)
