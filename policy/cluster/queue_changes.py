"""The queue that each pod of a cluster counts in, also if an admitted pod changes its queue.

A pod counts in the queue that it names (see policy.objects.membership). An admitted pod that then names another queue
counts where it was, until that queue admits it (see policy.cluster.moved).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster.moved import Moving, once_for_each_kind
from policy.objects.resources import NOTHING
from policy.quota import fair_share, queue_rules
from policy.quota.trial import Lifted
from policy.stepwise import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

ADMITTED = ("assigned", "granted", "in_flight")
"""The states of a pod that its queue, if it is in one, has admitted."""


class QueueChanges:
    """``moving`` are the pods that count in another queue than the one that they name."""

    def __init__(self, cluster: Cluster) -> None:
        self.moving = Moving(cluster)
        self._begun = False
        self._cluster = cluster
        self._queues = cluster.queues
        self._membership = cluster.membership

    def queue_of(self, pod: Pod) -> str:
        """Returns the name of the queue whose rules apply to a pod; empty if none do, or no queue exists.

        For an admitted pod that is the queue it was in, until the queue that it names admits it, too.
        """
        if not self._queues:
            return ""
        moving = self.moving.counted
        return moving[pod.uid] if moving and pod.uid in moving else self._membership.queue_of(pod)

    def own_queue_of(self, pod: Pod) -> str:
        """Returns the pod's queue as ``queue_of`` does, but empty if it merely falls into the queue ``default``."""
        moving = self.moving.counted
        return (moving[pod.uid] if pod.uid in moving else self._membership.own_queue_of(pod)) if self._queues else ""

    def begin(self) -> None:
        """Notes that from now on it is known what has admitted a pod."""
        self._begun = True
        for pod in list(self.moving):
            self._count_in(pod, self.moving.counted[pod.uid])

    def count_steps(self, counted: Mapping[str, str]) -> Steps[None]:
        """Counts pods in these queues, by UID, and all others in those that they name, whatever is noted on them.

        It pauses after each pod that this concerns.
        """
        pods = self._cluster.pods
        for uid in [uid for uid in {**self.moving.counted, **counted} if uid in pods]:
            self.moving.discard(uid)
            if uid in counted:
                self._count_in(pods[uid], counted[uid])
            self._cluster.states.assign_again([uid])
            yield

    def choose(self, pod: Pod, before: Pod | None) -> None:
        """Chooses where a pod counts from now on: an admitted one where it was, until the queue it names admits it.

        A note on the pod decides, be it from before this process started or from a replica that leads.
        """
        noted = before.counts_in if before is not None else None
        if pod.counts_in is not None:
            self.moving.noted.add(pod.uid)
        else:
            self.moving.noted.discard(pod.uid)
        if pod.assigned and pod.counts_in != noted:
            if pod.counts_in is not None:
                self._count_in(pod, pod.counts_in)
            else:
                self.moving.discard(pod.uid)
        elif not self._cluster.grants.is_older(pod):
            self._name_queue(pod, self._may_move)

    def try_to_move(self) -> None:
        """Lets pods count in the queues that they name, as far as these have room for them now."""
        self.named_anew(self.moving.to_try(self._cluster.generations.admission))

    def named_anew(self, uids: Iterable[str]) -> None:
        """Chooses anew the queues of pods that may name another one now, or be admitted by it."""
        cluster, uids, may_move = self._cluster, list(uids), once_for_each_kind(self._may_move)
        waiting = list[str]()
        for uid in uids:
            pod = cluster.pods[uid]
            granted = cluster.grants.pod(uid) if cluster.grants.is_older(pod) else None
            self._name_queue(granted or pod, may_move)
            if cluster.states.only_waits(uid):
                waiting.append(uid)
            else:
                cluster.states.assign_again([uid])  # at once: whether the next may move depends on it
        cluster.states.assign_again(waiting)

    def _name_queue(self, pod: Pod, may_move: Callable[[Pod, str, str], bool]) -> None:
        """Chooses where a pod counts by the queue that it names now."""
        if not self._begun:
            if pod.uid in self.moving:
                self._count_in(pod, self.moving.counted[pod.uid])
            return
        counted, named = self._admitted_in(pod.uid), self._named_by(pod)
        if counted is None or counted == named or may_move(pod, named, counted):
            self.moving.discard(pod.uid)
        else:
            self._count_in(pod, counted)

    def _named_by(self, pod: Pod) -> str:
        return self._membership.queue_of(pod) if self._queues else ""

    def _count_in(self, pod: Pod, queue: str) -> None:
        """Counts a pod in this queue, whatever it names. If it names this one, forgets it once all objects are read."""
        named, changes = self._named_by(pod), self._cluster.changes
        if queue == named and self._begun:
            self.moving.discard(pod.uid)
        elif self.moving.put(pod, queue, named):
            changes.note(queue=queue)
            changes.note(queue=named)

    def _admitted_in(self, uid: str) -> str | None:
        """Returns the queue that has admitted a pod (empty: it was in none), as far as is known; None if none has."""
        entry, overdue = self._cluster.ledger.entries.get(uid), self._cluster.leaving.overdue
        if entry is not None and entry.kind in ADMITTED:
            return entry.queue
        return overdue.queue_of(uid) if uid in overdue else None

    def _may_move(self, pod: Pod, named: str, counted: str) -> bool:
        """Whether the queue that an admitted pod names now admits it. ``counted`` is where it counts so far.

        It may exceed what the queue deserves: it already has its resources, so it takes nothing from other queues.
        """
        if not named or self._cluster.is_exempt(pod):
            return True
        ledger = self._cluster.ledger
        account = ledger.queues.accounts.get(named)
        if account is None or account.queue is None:
            return False
        if not account.division.known:
            for _ in self._cluster.divide_steps():
                pass
        with Lifted(ledger, pod.uid, ledger.entry("granted", pod)):
            brought = NOTHING if counted in self._queues else pod.request
            refused = queue_rules.refusal_to_move(ledger.queues, account, pod.request, brought)
            refused = refused or fair_share.refusal_to_move(ledger.queues, account, pod.namespace, pod.request)
            return refused is None
