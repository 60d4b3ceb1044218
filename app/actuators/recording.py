"""Acts on the in-memory cluster of a folder of manifests, where there is no API server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from app.actuators.events import Event
from app.actuators.protocol import ActionFailed, Blocked
from app.store.kind import Kind
from app.store.store import Store
from policy.cluster.quota_manager import Hard, Limit
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation
from policy.preemption import reclaim

log = structlog.get_logger(__name__)


class RecordingActuator:
    """Applies actions to the store itself."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def be_answered(self) -> None:
        """Returns at once: there is no API server."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Puts a pod on a node. Raises ActionFailed."""
        cluster = self._store.cluster
        if node not in cluster.table.rows:
            raise ActionFailed("the node is not known")
        if pod.node:
            raise ActionFailed("the pod is already assigned to a node")
        cluster.upsert_pod(replace(pod, node=node), self._store.clock())

    async def wake(self, pod: Pod) -> None:
        """Does nothing: no scheduler waits here."""

    async def count_in(self, pod: Pod, queue: str | None) -> None:
        """Does nothing: the cluster knows it already, and the folder of manifests is not written."""

    async def open_gate(self, pod: Pod) -> None:
        """Removes the gate from the pod in its current state."""
        cluster = self._store.cluster
        if (known := cluster.pods.get(pod.uid)) is not None:
            cluster.upsert_pod(replace(known, gate=-1, unschedulable=None), self._store.clock())

    async def start_job(self, pod: Pod) -> None:
        """Makes the pods of the Job that a stand-in represents, as no controller does here."""
        self._store.cluster.queued_jobs.make_pods(pod, self._store.clock())

    async def suspend_job(self, job: BatchJob) -> None:
        """Removes the pods of a Job at once."""
        for pod in reclaim.running_pods(self._store.cluster, job):
            self._store.cluster.delete_pod(pod.uid)

    async def lower_job(self, job: BatchJob, to: int) -> None:
        """Removes pods of a Job at once: first those that were asked for."""
        cluster = self._store.cluster
        running = reclaim.running_pods(cluster, job)
        running.sort(key=lambda pod: not cluster.leaving.has_been_asked(pod.uid))
        cluster.queued_jobs.lower(job, to, self._store.clock())
        for pod in running[: len(running) - to]:
            cluster.delete_pod(pod.uid)

    async def give_notice(self, victim: PodName, at: float | None) -> None:
        """Does nothing: the rules read no notice."""

    async def evict(self, victim: PodName, grace: int | None = None) -> None:  # noqa: ARG002 - gone at once
        """Removes the pod at once, if disruption budgets allow it. Raises Blocked."""
        cluster = self._store.cluster
        pod = cluster.pods.get(victim.uid)
        if pod is None:
            return
        if not cluster.draw_on_budgets(pod):
            raise Blocked("a disruption budget does not allow it now")
        cluster.delete_pod(victim.uid)

    async def delete(self, victim: PodName, grace: int | None = None) -> None:  # noqa: ARG002 - gone at once
        """Removes the pod at once."""
        self._store.cluster.delete_pod(victim.uid)

    async def nominate(self, pod: Pod, node: str) -> None:
        """Notes the node on the pod."""
        self._store.cluster.upsert_pod(replace(pod, nominated_node=node), self._store.clock())

    async def reserve(self, reservation: Reservation) -> None:
        """Adds the reservation to the cluster."""
        self._store.cluster.upsert_reservation(reservation)

    async def note_progress(self, reservation: Reservation) -> None:
        """Updates the reservation in the cluster."""
        self._store.cluster.upsert_reservation(reservation)

    async def unreserve(self, name: str) -> None:
        """Removes the reservation from the cluster."""
        self._store.cluster.delete_reservation(name)

    def report(self, event: Event) -> None:
        """Logs the Event."""
        log.info("event", about=str(event.subject), reason=event.reason, message=event.message)

    async def write_quota_status(self, namespace: str, name: str, status: dict[str, Any], kind: Kind) -> None:
        """Does nothing: REST shows it."""

    async def write_queue_status(self, name: str, status: dict[str, Any]) -> None:
        """Does nothing: REST shows it."""

    async def write_limit(self, namespace: str, hard: Hard, owners: Mapping[str, str], seen: Limit | None) -> None:
        """Records the limit in the cluster; nothing enforces it at creation here."""
        uid = seen.uid if seen else namespace
        self._store.cluster.upsert_limit(namespace, Limit(uid, hard, ours=True, owners=frozenset(owners.values())))

    async def remove_limit(self, namespace: str, seen: Limit) -> None:
        """Removes the limit from the cluster."""
        if self._store.cluster.limits.get(namespace) == seen:
            self._store.cluster.delete_limit(namespace)
