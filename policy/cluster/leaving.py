"""The pods of a cluster that leave their nodes: they were evicted, are being deleted, or are victims of a plan.

Most of them are expected to leave room, but not those that should have ended long ago. Some of these still count, but
nobody waits for their end. Those that are overdue (see policy.cluster.overdue) do not even count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster.overdue import Deletions, Overdue

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod


STAYS_AFTER = 30.0
"""Seconds after its job was suspended for which a pod may take to be deleted, before it counts as one that stays."""


class Leaving:
    """``deletions`` are the pods on nodes that are being deleted, ``overdue`` those of them that no longer count."""

    def __init__(self, cluster: Cluster, overdue_after: float, stuck_after: float) -> None:
        self.deletions = Deletions(overdue_after, stuck_after)
        self.overdue = Overdue()
        self._asked: set[str] = set()
        self._with_job: dict[str, float] = {}
        self._cluster = cluster

    @property
    def uids(self) -> frozenset[str]:
        """UIDs of pods that will leave room: they are terminating, were evicted, or are victims of a reservation.

        Leaves out those that should have ended so long ago that nobody knows whether they will.
        """
        cluster, reservations = self._cluster, self._cluster.reservations
        in_force = (plan for plan in reservations.plans.values() if reservations.is_in_force(plan))
        victims = {victim.uid for plan in in_force for victim in plan.victims}
        coming = self.deletions.uids() | self._asked | (victims & cluster.pods.keys())
        return frozenset(coming - self.deletions.stuck - self.overdue.uids())

    def ask_to_go(self, uid: str) -> None:
        """Notes that a pod is being evicted: it will leave room, even if its preemptor goes away."""
        if uid in self._cluster.pods and uid not in self.deletions.uids():
            self._asked.add(uid)

    def goes_with_job(self, uid: str, now: float) -> None:
        """Notes that the job of a pod that is asked to go was suspended, so that its controller deletes the pod.

        Tenants choose what a pod names as its controller, so the controller may not know the pod, and let it run.
        """
        self._with_job.pop(uid, None)
        self._with_job[uid] = now + STAYS_AFTER

    def tick(self, now: float) -> None:
        """Lets time pass: pods that stay after their jobs were suspended are from then on evicted like any other."""
        while self._with_job and next(iter(self._with_job.values())) <= now:
            uid = next(iter(self._with_job))
            del self._with_job[uid]
            if uid in self._asked:
                self._asked.discard(uid)
                self._cluster.batch_jobs.stayed.add(uid)

    def may_stay(self, uid: str) -> None:
        """Notes that the eviction of a pod was refused, or that it is not known whether it was asked for."""
        self._asked.discard(uid)

    def has_been_asked(self, uid: str) -> bool:
        """Whether a pod is being deleted, or its eviction was asked for."""
        return uid in self._asked or uid in self.deletions.uids()

    def watch(self, pod: Pod) -> None:
        """Sees a pod on a node that is being deleted, at first or after a change."""
        self._asked.discard(pod.uid)
        self.deletions.watch(pod)
        self._count_or_not(pod)

    def end(self, uid: str) -> None:
        """Forgets the deletion of a pod that has ended or is gone. Does nothing for one that was not being deleted."""
        pod = self._cluster.pods.get(uid)
        if pod is None or pod.finished:
            self._asked.discard(uid)
        self.deletions.forget(uid)
        self.overdue.discard(uid)

    def pass_time(self, epoch: float) -> None:
        """Lets time pass for pods that are being deleted, to ``epoch`` in seconds since the epoch.

        Pods that have been due for long no longer count, if their node is lost. Call this only while the known pods and
        nodes are up to date.
        """
        for uid in self.deletions.pass_time(epoch):
            self._count_or_not(self._cluster.pods[uid])

    def node_changed(self, name: str) -> None:
        """Checks again the pods of a node that are being deleted: the node may be lost, or be back."""
        for uid in self.deletions.on(name):
            self._count_or_not(self._cluster.pods[uid])

    def is_late(self, pod: Pod) -> bool:
        """Whether a pod should be gone by now, and its node is lost or nobody waits for its end any more."""
        due = 0 < pod.deletion_time <= self.deletions.now
        return due and pod.assigned and (self.is_lost(pod.node) or pod.uid in self.deletions.stuck)

    def is_lost(self, node: str) -> bool:
        """Whether a node is gone or unreachable, so that nobody knows what became of its pods."""
        known = self._cluster.table.node(node)
        return known is None or not known.reachable

    def _count_or_not(self, pod: Pod) -> None:
        """Stops counting a pod that is being deleted if it is overdue and its node is lost; else counts it."""
        cluster = self._cluster
        overdue, before = pod.uid in self.deletions.late and self.is_lost(pod.node), pod.uid in self.overdue
        if overdue:
            self.overdue.add(pod, cluster.queue_of(pod))
        else:
            self.overdue.discard(pod.uid)
        if overdue != before:
            cluster.changes.note(pod.namespace, cluster.queue_of(pod))
            cluster.generations.shares += 1  # nodes that take no new pods count with what is used on them
        if overdue and not before:
            cluster.ledger.remove(pod.uid)
        elif before and not overdue:
            cluster.ledger.enter("assigned", pod)
