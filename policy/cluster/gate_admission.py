"""Admission of pods at our gates: opening a gate admits its pod, so it opens only once the pod may be placed.

policy.queueing chooses the order in which gates open; policy.cluster.gates knows which pod waits where.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from policy.cluster.gates import GatedJob
from policy.objects.job import ALONE, job_name

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.cluster.gates import Ungated
    from policy.objects.pod import Pod


BEHIND = 1e12
"""Added to the age of a Job that runs and waits to grow: all that waits to start with its priority comes first."""


class GateAdmission:
    """Ungates pods of a cluster, and regates them. ``patience``: seconds for which an ungated pod may wait in vain."""

    def __init__(self, cluster: Cluster, patience: float) -> None:
        self._cluster = cluster
        self._patience = patience

    def is_gated(self, namespace: str, *, jobs: bool = False) -> bool:
        """Whether pods of a namespace, or its ``jobs`` as a whole, are to wait. Else they are let go at once."""
        known = self._cluster.membership.namespaces.get(namespace)
        return known is not None and (known.queues_jobs if jobs else known.gated)

    def holds(self, pod: Pod) -> bool:
        """Whether a pod at its gate, or a Job that it stands for, is to wait there."""
        return self.is_gated(pod.namespace, jobs=pod.stands_for is not None)

    def holds_all(self, namespace: str) -> bool:
        """Whether all that wait in the lines of a namespace are to wait there."""
        numbers = self._cluster.gates.number_of
        return all(self.is_gated(namespace, jobs=jobs) or not numbers(namespace, jobs=jobs) for jobs in (False, True))

    def stand(self, pod: Pod, now: float) -> None:
        """Puts a pod into its line at the gates, or takes it out."""
        cluster = self._cluster
        if not pod.at_gate:
            cluster.gates.leave(pod.uid)
            return
        group = cluster.gangs.gang_of(pod)
        if group is not None:
            job = GatedJob(job_name(cluster.membership.groups, pod), group.key, group.created)
        else:
            of_job = pod.stands_for
            shapes = cluster.queued_jobs.shapes_of(pod)  # of equal sums one may fit, and another not
            grows = of_job is not None and of_job.grows
            keeps_size = grows and (cluster.attempts.lacks_place(pod) or cluster.lowered.is_held_up(pod))
            held_up = cluster.ledger.runs_too_long(pod), keeps_size
            kind = frozenset(pod.request.items()), pod.priority, pod.preemptible, pod.constraints, shapes, held_up
            created = BEHIND + pod.created if grows else 0.0
            job = GatedJob(f"{ALONE}{pod.name}", kind, created)
        cluster.gates.put(pod, cluster.queue_of(pod), job, now)

    def stand_again(self, uid: str) -> None:
        """Enters a pod anew in its line: what is alike there has changed. Does nothing for one that does not wait."""
        cluster = self._cluster
        if uid in cluster.gates and uid in cluster.pods:
            self.stand(cluster.pods[uid], cluster.gates.since(uid))

    def ungate(self, pod: Pod, ungated: Ungated, now: float) -> None:
        """Counts a pod whose gate is being opened as admitted, until it is bound, is gone, or has waited in vain."""
        cluster = self._cluster
        pod = cluster.devices.charged(pod, asking=True)
        cluster.ledger.enter("granted", pod)
        cluster.gates.begin_ungating(pod.uid)
        cluster.gates.count(pod.uid, ungated)
        cluster.in_flight.uids.discard(pod.uid)
        cluster.grants.keep(pod, now, inf)
        cluster.devices.settle()

    def regate(self, uid: str, now: float) -> None:
        """Notes that the gate of a pod could not be opened: the pod, if it still exists, waits there again."""
        self._cluster.gates.ungating.discard(uid)
        self.back_off(uid, now)
        if (pod := self._cluster.pods.get(uid)) is not None:
            self.stand(pod, now)

    def back_off(self, uid: str, now: float) -> None:
        """Withdraws the grant of a pod whose gate could not be opened, without putting it back into its line.

        Does nothing if the gate is already open: then the pod was admitted, whatever the API server answered.
        """
        pod = self._cluster.pods.get(uid)
        if pod is None or pod.gate >= 0:
            self._cluster.states.withdraw(uid)
        self._cluster.queued_jobs.not_started(uid, now)

    def tick(self, now: float) -> None:
        """Lets time pass: withdraws the grants of ungated pods that have had no place for too long."""
        cluster = self._cluster
        since = cluster.attempts.unschedulable_since
        for uid in [uid for uid in cluster.gates.ungated if now - since.get(uid, inf) >= self._patience]:
            cluster.states.withdraw(uid)
