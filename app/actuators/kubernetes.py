"""Writes to the API server."""

import asyncio
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
import msgspec
import structlog

from app.actuators import resource_quotas
from app.actuators.events import Event, Series, told
from app.actuators.protocol import ActionFailed, AlreadyThere, AnswerLost, Blocked, NoRight, Rejected, TimedOut
from app.inert import inert
from app.kube.client import KubeClient
from app.kube.job_patches import (
    MANAGER,
    Patch,
    disowning,
    is_lowered,
    is_started,
    is_suspended,
    lowering,
    path_of,
    start,
    suspension,
)
from app.kube.said import said
from app.kube.scheduling_gates import removal
from app.store.heeded import COUNTS_IN, EVICT_AT, EVICTED
from app.store.kind import Kind
from app.store.pods import PODS
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS
from app.store.resource_quotas import RESOURCE_QUOTAS
from app.times import rfc3339
from policy.cluster.quota_manager import NAME, Hard, Limit
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation

log = structlog.get_logger(__name__)

TIMEOUT = 10.0
EVICTIONS_AT_ONCE, IN_ONE_NAMESPACE = 100, 20
"""Maximum number of evictions that wait for an answer, in all and in one namespace, where a webhook may hang.

Callers bound all other writes themselves.
"""
REPORTS_AT_ONCE, REPORTS_AT_MOST = 50, 1000
"""Maximum number of Events that wait for an answer, and of those together with Events in line."""
FINISHING = 2.0
"""Seconds for Events under way at the end."""
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
COMPONENT = "quotaward"
LONGEST_MESSAGE = 1024
"""Maximum number of characters of an Event's message that the API server accepts."""
ADMISSIBLE = "quotaward.dev/Admissible"
GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Statuses for a pod that is gone, or whose name is that of a pod with another UID."""

OF_THE_OBJECT = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
)
"""Statuses for a change that the API server rejects for this very object, or if a webhook of its namespace fails."""
NO_RIGHT = "cannot patch resource"
"""Part of the message if we lack the right for all objects; a policy or a webhook has other words."""
BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""Statuses that say nothing of an object: the API server, or its store, cannot answer now."""
WEBHOOK = "failed calling webhook"
"""Part of the message if a webhook gives no answer: that holds for the object, and may last."""
DENIED = 'admission webhook "'
"""Part of the message if a webhook refuses something, whatever status it chooses."""


class KubernetesActuator:
    """Acts on the API server."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._evictions = asyncio.Semaphore(EVICTIONS_AT_ONCE)
        self._evictions_in = WeakValueDictionary[str, asyncio.Semaphore]()
        self._reporting = asyncio.Semaphore(REPORTS_AT_ONCE)
        self._reports: set[asyncio.Task[None]] = set()

    async def be_answered(self) -> None:
        """Returns once the API server has said whether it and its etcd are well, or cannot be reached."""
        with suppress(ActionFailed):
            await self._send("GET", "/livez")

    async def bind(self, pod: Pod, node: str) -> None:
        """Creates the Binding. Raises ActionFailed."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._send("POST", PODS.path_of(pod.namespace, pod.name, "binding"), binding)

    async def wake(self, pod: Pod) -> None:
        """Writes a condition into the pod's status: any update of a refused pod makes the scheduler try it again.

        Raises ActionFailed.
        """
        condition = {
            "type": ADMISSIBLE,
            "status": "True",
            "reason": "QuotaAvailable",
            "message": "the pod was refused, and could run now",
            "lastTransitionTime": _time(time.time()),
        }
        await self._patch_status(pod, {"conditions": [condition]})

    async def count_in(self, pod: Pod, queue: str | None) -> None:
        """Writes a condition into the pod's status, or removes it. Raises ActionFailed."""
        condition = {"type": COUNTS_IN, "$patch": "delete"}
        if queue is not None:
            condition = {
                "type": COUNTS_IN,
                "status": "True",
                "reason": "AdmittedThere",
                "message": queue,
                "lastTransitionTime": _time(time.time()) or "",
            }
        await self._patch_status(pod, {"conditions": [condition]})

    async def give_notice(self, victim: PodName, at: float | None) -> None:
        """Writes the annotation with the pod's status, which needs no right beyond that. Raises ActionFailed."""
        path = PODS.path_of(victim.namespace, victim.name, "status")
        annotations = {EVICT_AT: None if at is None else rfc3339(at)}
        body = {"metadata": {"uid": victim.uid, "annotations": annotations}}
        await self._unless_gone(self._send("PATCH", path, body, STRATEGIC_MERGE_PATCH))

    async def open_gate(self, pod: Pod) -> None:
        """Removes the gate from its last known index, if it is still there. Raises Rejected, ActionFailed."""
        await self._patch_exactly(PODS.path_of(pod.namespace, pod.name), removal(pod.uid, pod.gate))

    async def start_job(self, pod: Pod) -> None:
        """Starts a Job if it is suspended and as large as it was. Raises Rejected, NoRight, ActionFailed."""
        job = pod.stands_for
        assert job is not None, "only stand-ins are started"  # noqa: S101
        path = path_of(job.kind, pod.namespace, job.name)
        await self._change_job(path, start(job), is_started(job), is_elastic=job.least > 0)

    async def suspend_job(self, job: BatchJob) -> None:
        """Suspends a Job if it is not suspended yet. Raises Rejected, ActionFailed."""
        path = path_of(job.kind, job.namespace, job.name)
        await self._change_job(path, suspension(job), is_suspended(job), is_elastic=job.least > 0)

    async def lower_job(self, job: BatchJob, to: int) -> None:
        """Lowers the parallelism of a Job if it is as it was seen. Raises Rejected, NoRight, ActionFailed."""
        path = path_of(job.kind, job.namespace, job.name)
        await self._change_job(path, lowering(job, to), is_lowered(job, to), is_elastic=True)

    async def _change_job(self, path: str, patch: Patch, done: Patch, *, is_elastic: bool) -> None:
        """Changes a Job; ``done`` are tests that it is so already. Raises Rejected, NoRight, ActionFailed.

        If the connection ends before an answer comes, it asks at once again: the tests let nothing change twice. A
        change that was made although its answer was lost counts as done, whenever it is asked for again.
        """
        lost: ActionFailed | None = None
        while True:
            try:
                await self._patch_job(path, patch, is_elastic=is_elastic)
            except Rejected as rejected:
                if rejected.unknown or not (found := await self._found(path, done)):
                    raise
                if is_elastic:
                    await self._disown(path, found)
            except ActionFailed as failure:
                if lost is None and failure.unknown:
                    lost = failure
                    continue
                raise lost or failure from failure
            return

    async def _patch_job(self, path: str, patch: Patch, *, is_elastic: bool) -> None:
        """Changes a Job. Fields of an elastic one are the user's. Raises Rejected, NoRight, ActionFailed."""
        if is_elastic:
            await self._disown(path, await self._patch_exactly(f"{path}?fieldManager={MANAGER}", patch))
        else:
            await self._patch_exactly(path, patch)

    async def _found(self, path: str, tests: Patch) -> bytes:
        """Returns the object as JSON if it passes these tests, else nothing. Needs only the right to patch it.

        Raises AnswerLost if the API server does not say whether it passes.
        """
        try:
            return await self._send("PATCH", path, tests, JSON_PATCH)
        except ActionFailed as failure:
            is_busy = isinstance(failure, Refused) and failure.status in BUSY and WEBHOOK not in str(failure)
            if isinstance(failure, Refused) and not is_busy:
                return b""
            raise AnswerLost(str(failure)) from failure

    async def _disown(self, path: str, answer: bytes) -> None:
        """Gives up the ownership of the fields of a Job that were written. Otherwise its applies may conflict.

        ``answer`` is the Job as it was written.
        """
        with suppress(ActionFailed, msgspec.MsgspecError):
            if patch := disowning(_written.decode(answer).metadata.managed_fields):
                await self._send("PATCH", path, patch, JSON_PATCH)

    async def _patch_exactly(self, path: str, patch: Patch) -> bytes:
        """Sends a JSON patch with tests; returns the object as it is then, empty if it is gone.

        Raises Rejected, NoRight, ActionFailed.
        """
        try:
            return await self._send("PATCH", path, patch, JSON_PATCH)
        except Refused as refused:
            if refused.status == HTTPStatus.NOT_FOUND and DENIED not in str(refused):
                return b""
            if DENIED in str(refused) or (refused.status in OF_THE_OBJECT and NO_RIGHT not in str(refused)):
                raise Rejected(str(refused)) from refused
            if refused.status == HTTPStatus.FORBIDDEN:
                raise NoRight(str(refused)) from refused
            raise

    async def evict(self, victim: PodName, grace: int | None = None) -> None:
        """Calls the Eviction API, which respects disruption budgets. Raises Blocked, ActionFailed."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": victim.namespace, "name": victim.name},
            "deleteOptions": _options(victim, grace),
        }
        in_namespace = self._evictions_in.setdefault(victim.namespace, asyncio.Semaphore(IN_ONE_NAMESPACE))
        try:
            path = PODS.path_of(victim.namespace, victim.name, "eviction")
            async with in_namespace, self._evictions:
                await self._unless_gone(self._send("POST", path, eviction))
        except Refused as refused:
            if refused.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise Blocked(str(refused)) from refused
            raise

    async def delete(self, victim: PodName, grace: int | None = None) -> None:
        """Deletes the pod itself, which no disruption budget prevents. Raises ActionFailed.

        First marks it as disrupted, as the Eviction API does, so that a Job that ignores disruptions counts no failure.
        Takes the mark back if the deletion is refused: the pod runs on, and its own failures count.
        """
        await self._mark_disrupted(victim, "True")
        try:
            path = PODS.path_of(victim.namespace, victim.name)
            await self._unless_gone(self._send("DELETE", path, _options(victim, grace)))
        except Refused:
            await self._mark_disrupted(victim, "False")
            raise

    async def nominate(self, pod: Pod, node: str) -> None:
        """Writes the nominated node into the pod's status. Raises ActionFailed."""
        await self._patch_status(pod, {"nominatedNodeName": node})

    async def reserve(self, reservation: Reservation) -> None:
        """Creates the Reservation. Raises AlreadyThere, ActionFailed."""
        body = {
            "apiVersion": f"{RESERVATIONS.group}/{RESERVATIONS.version}",
            "kind": RESERVATIONS.name,
            "metadata": {"name": reservation.name},
            "spec": {
                "reason": reservation.reason,
                "pod": asdict(reservation.pod),
                "nodeName": reservation.node,
                "victims": [asdict(victim) for victim in reservation.victims],
                "failures": reservation.failures,
                **({"job": reservation.job} if reservation.job else {}),
            },
        }
        try:
            await self._send("POST", RESERVATIONS.path, body)
        except Refused as refused:
            if refused.status == HTTPStatus.CONFLICT:
                raise AlreadyThere(str(refused)) from refused
            raise

    async def note_progress(self, reservation: Reservation) -> None:
        """Writes the status of the Reservation. Raises ActionFailed."""
        status = {
            "freedAt": _time(reservation.freed_at),
            "blockedSince": _time(reservation.blocked_since),
            "failedAt": _time(reservation.failed_at),
            "promisedStart": _time(reservation.promised_start),
            "promisedAt": _time(reservation.promised_at),
            "due": list(reservation.due) or None,
            "moved": reservation.moved or None,
        }
        await self._send("PATCH", RESERVATIONS.path_of("", reservation.name, "status"), {"status": status}, MERGE_PATCH)

    async def unreserve(self, name: str) -> None:
        """Deletes the Reservation. Raises ActionFailed."""
        await self._unless(
            HTTPStatus.NOT_FOUND,
            self._send("DELETE", RESERVATIONS.path_of("", name)),
        )

    def report(self, event: Event) -> None:
        """Creates an Event in the namespace of its subject, or raises the count of an existing one.

        Nobody waits for it, since a webhook may hang. The Event is lost if it fails, or if too many wait.
        """
        if len(self._reports) >= REPORTS_AT_MOST:
            log.debug("event not written", reason=event.reason, error="too many wait")
            return
        report = asyncio.create_task(self._report(event))
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)

    async def finish(self) -> None:
        """Waits a short time for Events under way; the rest are lost."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*self._reports, return_exceptions=True), FINISHING)

    async def _report(self, event: Event) -> None:
        async with self._reporting:
            try:
                if event.series is None or event.series.count == 1 or not await self._goes_on(event, event.series):
                    await self._send("POST", f"/api/v1/namespaces/{event.subject.namespace}/events", _object_of(event))
            except ActionFailed as failure:
                log.debug("event not written", reason=event.reason, error=str(failure))

    async def _goes_on(self, event: Event, series: Series) -> bool:
        """Raises the count of an Event; returns false if the API server no longer has it. Raises ActionFailed."""
        change = {
            "count": series.count,
            "message": _message_of(event),
            "lastTimestamp": _time(time.time()),
        }
        try:
            path = f"/api/v1/namespaces/{event.subject.namespace}/events/{series.name}"
            await self._send("PATCH", path, change, MERGE_PATCH)
        except Refused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    async def write_quota_status(self, namespace: str, name: str, status: dict[str, Any], kind: Kind) -> None:
        """Replaces the status of an elastic quota as a whole, so that no outdated field stays. Raises ActionFailed."""
        await self._unless(
            HTTPStatus.NOT_FOUND,
            self._send(
                "PATCH",
                kind.path_of(namespace, name, "status"),
                [{"op": "add", "path": "/status", "value": status}],
                JSON_PATCH,
            ),
        )

    async def write_queue_status(self, name: str, status: dict[str, Any]) -> None:
        """Replaces each field as a whole, so that no outdated part stays. Raises ActionFailed."""
        fields = [{"op": "add", "path": f"/status/{field}", "value": value} for field, value in status.items()]
        try:
            await self._send("PATCH", QUEUES.path_of("", name, "status"), fields, JSON_PATCH)
        except Refused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return
            if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            # there is no status yet whose fields could be replaced
            await self._send("PATCH", QUEUES.path_of("", name, "status"), {"status": status}, MERGE_PATCH)

    async def write_limit(self, namespace: str, hard: Hard, owners: Mapping[str, str], seen: Limit | None) -> None:
        """Creates the ResourceQuota, or changes the one that was seen. Raises ActionFailed."""
        if seen is None:
            body = resource_quotas.to_create(namespace, hard, owners)
            await self._send("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", body)
        else:
            change = resource_quotas.to_change(seen, hard, owners)
            await self._send("PATCH", RESOURCE_QUOTAS.path_of(namespace, NAME), change, MERGE_PATCH)

    async def remove_limit(self, namespace: str, seen: Limit) -> None:
        """Deletes the ResourceQuota that was seen. Raises ActionFailed."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": seen.uid}}
        await self._unless(
            HTTPStatus.NOT_FOUND, self._send("DELETE", RESOURCE_QUOTAS.path_of(namespace, NAME), options)
        )

    async def _mark_disrupted(self, victim: PodName, status: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": status,
            "reason": "DeletionByQuotaward",
            "message": "its PodDisruptionBudget never allows an eviction, and reclaim.budgetPatience has passed",
            "lastTransitionTime": _time(time.time()),
        }
        await self._patch_status(victim, {"conditions": [condition]})

    async def _patch_status(self, pod: Pod | PodName, status: dict[str, Any]) -> None:
        """Changes a pod's status if the pod exists. Sends its UID, so that no other pod of this name is changed.

        Raises ActionFailed.
        """
        path = PODS.path_of(pod.namespace, pod.name, "status")
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._unless_gone(self._send("PATCH", path, body, STRATEGIC_MERGE_PATCH))

    async def _send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> bytes:
        """Sends a write; returns the answer.

        Raises Refused if the API server refuses, TimedOut, AnswerLost or ActionFailed if it does not answer.
        """
        try:
            status, answer = await self._client.send(method, path, body, content_type, timeout=TIMEOUT)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
                raise TimedOut(f"the API server has not answered within {TIMEOUT:g} s") from error
            was_sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
            failure = AnswerLost if was_sent else ActionFailed
            raise failure(f"the API server cannot be reached: {type(error).__name__}") from error
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise Refused(status, said(answer))
        return answer

    async def _unless_gone(self, request: Awaitable[bytes]) -> None:
        """Sends a request, and ignores that the pod is gone."""
        try:
            await request
        except Refused as refused:
            if refused.status not in GONE:
                raise

    async def _unless(self, harmless: HTTPStatus, request: Awaitable[bytes]) -> None:
        try:
            await request
        except Refused as refused:
            if refused.status != harmless:
                raise


class WrittenMetadata(msgspec.Struct, rename="camel", gc=False):
    """The fields that are read of the metadata of an object that was written."""

    managed_fields: list[dict[str, Any]] = []


class Written(msgspec.Struct, gc=False):
    """An object that was written."""

    metadata: WrittenMetadata


_written = msgspec.json.Decoder(Written)


class Refused(ActionFailed):
    """The API server refused a write; ``status`` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        """``message`` is that of the API server."""
        super().__init__(f"the API server answered {status}: {message}")
        self.status = status
        self.unknown = status == HTTPStatus.GATEWAY_TIMEOUT  # it waits no longer, and the write may go on


def _time(seconds: float) -> str | None:
    """Formats a time since the epoch as Kubernetes does; None for zero."""
    return rfc3339(seconds) if seconds else None


def _object_of(event: Event) -> dict[str, Any]:
    """Builds the Event for the API server."""
    subject, now = event.subject, _time(time.time())
    name = {"name": event.series.name} if event.series else {"generateName": f"{subject.name}."}
    marks = {"labels": {EVICTED: "true"}, "annotations": {EVICTED: told(event.evicted)}} if event.evicted else {}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": subject.namespace, **name, **marks},
        "involvedObject": {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        },
        "reason": event.reason,
        "message": _message_of(event),
        "type": "Warning" if event.warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": _time(event.series.since.timestamp()) if event.series else now,
        "lastTimestamp": now,
        "count": event.series.count if event.series else 1,
    }


def _message_of(event: Event) -> str:
    """Returns an Event's message, within the API server's limit and safe for a terminal."""
    return inert(event.message)[:LONGEST_MESSAGE]


def _options(victim: PodName, grace: int | None) -> dict[str, Any]:
    """Returns the options of a deletion, with the UID so that no other pod of this name is deleted."""
    options: dict[str, Any] = {"preconditions": {"uid": victim.uid}}
    return options if grace is None else options | {"gracePeriodSeconds": grace}
