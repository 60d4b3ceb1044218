"""Writes to the API server."""

import time
from collections.abc import Awaitable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import aiohttp
import structlog
from kubernetes.aio.client import (
    CoreV1Api,
    CoreV1Event,
    CustomObjectsApi,
    V1Binding,
    V1DeleteOptions,
    V1EventSource,
    V1Eviction,
    V1ObjectMeta,
    V1ObjectReference,
    V1Preconditions,
)

from app.actuators import resource_quotas
from app.actuators.protocol import ActionFailed, AlreadyThere, Blocked
from app.kube.client import KubeClient
from app.observability.events import Event, Series
from app.store.kinds import ELASTIC_QUOTAS, QUEUES, RESERVATIONS
from policy.pod import Pod
from policy.quota_manager import NAME, Hard, Limit
from policy.reservation import PodName, Reservation

log = structlog.get_logger(__name__)

TIMEOUT = 10.0
COMPONENT = "quotaward"
LONGEST_MESSAGE = 1024
"""Characters that the API server takes as the message of an Event."""
ADMISSIBLE = "quotaward.dev/Admissible"
GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""What the API server answers for a pod that is gone, or a namesake of it with another UID."""


class KubernetesActuator:
    """Acts on the API server."""

    def __init__(self, client: KubeClient) -> None:
        self._core = CoreV1Api(client.api)
        self._custom = CustomObjectsApi(client.api)

    async def bind(self, pod: Pod, node: str) -> None:
        """Creates the Binding. Raises ActionFailed."""
        binding = V1Binding(
            metadata=V1ObjectMeta(namespace=pod.namespace, name=pod.name, uid=pod.uid),
            target=V1ObjectReference(api_version="v1", kind="Node", name=node),
        )
        await _done(
            self._core.create_namespaced_pod_binding_without_preload_content(
                pod.name, pod.namespace, binding, _request_timeout=TIMEOUT
            )
        )

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

    async def evict(self, victim: PodName) -> None:
        """Asks the Eviction API, which heeds disruption budgets. Raises Blocked, ActionFailed."""
        eviction = V1Eviction(
            metadata=V1ObjectMeta(namespace=victim.namespace, name=victim.name),
            delete_options=V1DeleteOptions(preconditions=V1Preconditions(uid=victim.uid)),
        )
        try:
            await _done(
                self._core.create_namespaced_pod_eviction_without_preload_content(
                    victim.name, victim.namespace, eviction, _request_timeout=TIMEOUT
                )
            )
        except Refused as refused:
            if refused.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise Blocked(str(refused)) from refused
            if refused.status not in GONE:
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
            },
        }
        try:
            await _done(
                self._custom.create_cluster_custom_object_without_preload_content(
                    RESERVATIONS.group, RESERVATIONS.version, RESERVATIONS.plural, body, _request_timeout=TIMEOUT
                )
            )
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
        }
        await _done(
            self._custom.patch_cluster_custom_object_status_without_preload_content(
                RESERVATIONS.group,
                RESERVATIONS.version,
                RESERVATIONS.plural,
                reservation.name,
                {"status": status},
                _content_type="application/merge-patch+json",
                _request_timeout=TIMEOUT,
            )
        )

    async def unreserve(self, name: str) -> None:
        """Deletes the Reservation. Raises ActionFailed."""
        await self._unless(
            HTTPStatus.NOT_FOUND,
            self._custom.delete_cluster_custom_object_without_preload_content(
                RESERVATIONS.group, RESERVATIONS.version, RESERVATIONS.plural, name, _request_timeout=TIMEOUT
            ),
        )

    async def report(self, event: Event) -> None:
        """Creates an Event in the namespace of its subject, or raises the count of the one that is there."""
        try:
            if event.series is None or event.series.count == 1 or not await self._goes_on(event, event.series):
                await _done(
                    self._core.create_namespaced_event_without_preload_content(
                        event.subject.namespace, _object_of(event), _request_timeout=TIMEOUT
                    )
                )
        except ActionFailed as failure:
            log.debug("event not written", reason=event.reason, error=str(failure))

    async def _goes_on(self, event: Event, series: Series) -> bool:
        """Raises the count of an Event; false where the API server has it no longer. Raises ActionFailed."""
        change = {
            "count": series.count,
            "message": event.message[:LONGEST_MESSAGE],
            "lastTimestamp": _time(time.time()),
        }
        try:
            await _done(
                self._core.patch_namespaced_event_without_preload_content(
                    series.name,
                    event.subject.namespace,
                    change,
                    _content_type="application/merge-patch+json",
                    _request_timeout=TIMEOUT,
                )
            )
        except Refused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    async def write_quota_status(self, namespace: str, name: str, status: dict[str, Any]) -> None:
        """Replaces the status of an elastic quota: what is no longer used must not stay in it. Raises ActionFailed."""
        await self._unless(
            HTTPStatus.NOT_FOUND,
            self._custom.patch_namespaced_custom_object_status_without_preload_content(
                ELASTIC_QUOTAS.group,
                ELASTIC_QUOTAS.version,
                namespace,
                ELASTIC_QUOTAS.plural,
                name,
                [{"op": "add", "path": "/status", "value": status}],
                _content_type="application/json-patch+json",
                _request_timeout=TIMEOUT,
            ),
        )

    async def write_queue_status(self, name: str, status: dict[str, Any]) -> None:
        """Replaces each of the fields as a whole: what is no longer used must not stay in it. Raises ActionFailed."""
        fields = [{"op": "add", "path": f"/status/{field}", "value": value} for field, value in status.items()]
        try:
            await self._patch_queue_status(name, fields, "application/json-patch+json")
        except Refused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return
            if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            # there is no status yet, whose fields could be replaced
            await self._patch_queue_status(name, {"status": status}, "application/merge-patch+json")

    async def write_limit(self, namespace: str, hard: Hard, owners: Mapping[str, str], seen: Limit | None) -> None:
        """Creates the ResourceQuota, or changes the very one that was seen. Raises ActionFailed."""
        if seen is None:
            body: Any = resource_quotas.to_create(namespace, hard, owners)
            request = self._core.create_namespaced_resource_quota_without_preload_content(
                namespace, body, _request_timeout=TIMEOUT
            )
        else:
            request = self._core.patch_namespaced_resource_quota_without_preload_content(
                NAME,
                namespace,
                resource_quotas.to_change(seen, hard, owners),
                _content_type="application/merge-patch+json",
                _request_timeout=TIMEOUT,
            )
        await _done(request)

    async def remove_limit(self, namespace: str, seen: Limit) -> None:
        """Deletes the very ResourceQuota that was seen. Raises ActionFailed."""
        options = V1DeleteOptions(preconditions=V1Preconditions(uid=seen.uid))
        await self._unless(
            HTTPStatus.NOT_FOUND,
            self._core.delete_namespaced_resource_quota_without_preload_content(
                NAME, namespace, body=options, _request_timeout=TIMEOUT
            ),
        )

    async def _patch_queue_status(self, name: str, patch: Any, content_type: str) -> None:
        await _done(
            self._custom.patch_cluster_custom_object_status_without_preload_content(
                QUEUES.group,
                QUEUES.version,
                QUEUES.plural,
                name,
                patch,
                _content_type=content_type,
                _request_timeout=TIMEOUT,
            )
        )

    async def _patch_status(self, pod: Pod, status: dict[str, Any]) -> None:
        """Changes a pod's status. Its UID goes with it, so that a namesake is not touched. Raises ActionFailed."""
        await _done(
            self._core.patch_namespaced_pod_status_without_preload_content(
                pod.name,
                pod.namespace,
                {"metadata": {"uid": pod.uid}, "status": status},
                _content_type="application/strategic-merge-patch+json",
                _request_timeout=TIMEOUT,
            )
        )

    async def _unless(self, harmless: HTTPStatus, request: Awaitable[Any]) -> None:
        try:
            await _done(request)
        except Refused as refused:
            if refused.status != harmless:
                raise


class Refused(ActionFailed):
    """The API server did not do it; ``status`` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        """With the start of what the API server said."""
        super().__init__(f"the API server answered {status}: {message}")
        self.status = status


def _time(seconds: float) -> str | None:
    """A time since the epoch as Kubernetes writes it; nothing for zero."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None


def _object_of(event: Event) -> CoreV1Event:
    """The Event as the API server wants it."""
    subject, now = event.subject, datetime.now(UTC)
    name = {"name": event.series.name} if event.series else {"generate_name": f"{subject.name}."}
    return CoreV1Event(
        metadata=V1ObjectMeta(namespace=subject.namespace, **name),
        involved_object=V1ObjectReference(
            api_version=subject.api_version,
            kind=subject.kind,
            namespace=subject.namespace,
            name=subject.name,
            uid=subject.uid,
        ),
        reason=event.reason,
        message=event.message[:LONGEST_MESSAGE],
        type="Warning" if event.warning else "Normal",
        source=V1EventSource(component=COMPONENT),
        reporting_component=COMPONENT,
        first_timestamp=event.series.since if event.series else now,
        last_timestamp=now,
        count=event.series.count if event.series else 1,
    )


async def _done(request: Awaitable[Any]) -> None:
    try:
        response = await request
        body = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ActionFailed(f"the API server cannot be reached: {type(error).__name__}") from error
    if response.status >= HTTPStatus.MULTIPLE_CHOICES:
        raise Refused(response.status, body[:300].decode(errors="replace"))
