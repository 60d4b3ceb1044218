"""Leader election among replicas: the holder of the Lease runs the controllers.

A holder is silent if its record has not changed for long enough on our own clock. The clocks of two machines are
never compared; client-go does the same. (The elector of the official client cannot be used: its lock passes values
that the models of that client refuse.)
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import aiohttp
import structlog
from kubernetes.aio.client import ApiException, CoordinationV1Api, V1Lease, V1LeaseSpec, V1ObjectMeta

from app.kube.client import KubeClient
from app.kube.said import in_one_line, said
from app.observability import metrics
from app.settings import LeaderSettings

log = structlog.get_logger(__name__)

TIMEOUT = 5.0
LONGEST_PAUSE = 30.0
"""Maximum number of seconds between two attempts, for failures that somebody has to fix."""
UNREACHABLE = (ApiException, aiohttp.ClientError, OSError, TimeoutError, ValueError, AttributeError)
"""Exceptions raised if the API server does not answer, or something in its place answers without a Lease."""

Work = Callable[[], Coroutine[Any, Any, None]]


class Lease:
    """Runs work while this replica leads; ``leads`` says whether it does."""

    def __init__(self, client: KubeClient, settings: LeaderSettings) -> None:
        self.leads = False
        self._api = CoordinationV1Api(client.api)
        self._settings = settings
        self._identity = f"{socket.gethostname()}_{os.getpid()}_{os.urandom(4).hex()}"
        self._seen: V1LeaseSpec | None = None
        self._seen_at = 0.0
        self._retry = settings.lease_duration / 8
        self._complaint = ""
        self.pause = self._retry

    async def lead(self, work: Work) -> None:
        """Waits to lead, works while leading, and starts again when the lead is lost, until cancelled.

        Raises what ``work`` raises.
        """
        while True:
            while not await self.hold():
                await asyncio.sleep(self.pause)
            log.info("leading", identity=self._identity)
            metrics.LEADER.set(1)
            self.leads = True
            try:
                await self._work_while_leading(work)
            finally:
                self.leads = False
                metrics.LEADER.set(0)
                await self._give_back()
            log.warning("lead lost", identity=self._identity)

    async def _work_while_leading(self, work: Work) -> None:
        """Works until the Lease could not be renewed for two thirds of its duration: before another may take it."""
        working = asyncio.create_task(work())
        held_at = time.monotonic()
        try:
            while True:
                done, _ = await asyncio.wait([working], timeout=self._retry)
                if done:
                    await working
                asked_at = time.monotonic()
                async with asyncio.timeout(held_at + self._settings.lease_duration * 2 / 3 - asked_at):
                    while not await self.hold():
                        if self._seen is not None and self._is_held_by_another(self._seen):
                            return
                        await asyncio.sleep(self._retry / 4)
                held_at = asked_at
        except TimeoutError:
            pass
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def hold(self) -> bool:
        """Takes or renews the Lease; returns whether we hold it. ``pause``: seconds to wait before the next attempt."""
        try:
            held = await self._take()
        except UNREACHABLE as error:
            if getattr(error, "status", None) != HTTPStatus.CONFLICT:
                self._complain(error)
            return False
        if self._complaint:
            log.info("lease can be kept again")
            self._complaint = ""
        self.pause = self._retry
        return held

    def _complain(self, error: Exception) -> None:
        """Logs once why the Lease cannot be kept. Retries ever more seldom if the failure does not pass by itself."""
        complaint, passes = _why(error, self._settings)
        self.pause = self._retry if passes else min(2 * self.pause, max(LONGEST_PAUSE, self._retry))
        if complaint != self._complaint:
            self._complaint = complaint
            log.warning("lease cannot be kept", error=complaint)

    async def _take(self) -> bool:
        """Takes or renews the Lease; returns whether we hold it. Raises what the client raises."""
        name, namespace = self._settings.name, self._settings.namespace
        try:
            lease = await self._api.read_namespaced_lease(name, namespace, _request_timeout=TIMEOUT)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            lease = V1Lease(metadata=V1ObjectMeta(name=name), spec=self._record(None))
            await self._api.create_namespaced_lease(namespace, lease, _request_timeout=TIMEOUT)
            return True
        if lease.spec != self._seen:
            self._seen, self._seen_at = lease.spec, time.monotonic()
        if lease.spec is not None and self._is_held_by_another(lease.spec):
            return False
        lease.spec = self._record(lease.spec)  # its resourceVersion is sent along: if two replicas try, one fails
        await self._api.replace_namespaced_lease(name, namespace, lease, _request_timeout=TIMEOUT)
        return True

    def _is_held_by_another(self, spec: V1LeaseSpec) -> bool:
        if not spec.holder_identity or spec.holder_identity == self._identity:
            return False
        duration = spec.lease_duration_seconds or self._settings.lease_duration
        return time.monotonic() - self._seen_at < duration

    def _record(self, before: V1LeaseSpec | None) -> V1LeaseSpec:
        now = datetime.now(UTC)
        renewed = before is not None and before.holder_identity == self._identity
        transitions = (before.lease_transitions or 0) if before else 0
        return V1LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=round(self._settings.lease_duration),
            acquire_time=before.acquire_time if before and renewed else now,
            renew_time=now,
            lease_transitions=transitions if renewed else transitions + 1,
        )

    async def _give_back(self) -> None:
        """Releases the Lease, so that the next replica need not wait for its end. Ignores failures."""
        name, namespace = self._settings.name, self._settings.namespace
        try:
            lease = await self._api.read_namespaced_lease(name, namespace, _request_timeout=TIMEOUT)
            if lease.spec is not None and lease.spec.holder_identity == self._identity:
                lease.spec.holder_identity = None
                await self._api.replace_namespaced_lease(name, namespace, lease, _request_timeout=TIMEOUT)
        except UNREACHABLE as error:
            log.debug("lease not given back", error=_why(error, self._settings)[0])


def _why(error: Exception, settings: LeaderSettings) -> tuple[str, bool]:
    """Says in one sentence why the Lease cannot be kept, and returns whether that may pass by itself."""
    if not isinstance(error, ApiException):
        lost = isinstance(error, aiohttp.ClientError | OSError | TimeoutError)
        what = "the API server cannot be reached" if lost else "what answers is no API server"
        return f"{what}: {in_one_line(str(error)) or type(error).__name__}", True
    namespace, message = settings.namespace, said(error.body)
    if error.status == HTTPStatus.NOT_FOUND and message.startswith("namespaces "):
        return f"namespace {namespace} does not exist; create it or set leader.namespace", False
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the API server does not take our credentials: look at the token or kubeconfig: 401 {message}", False
    if error.status == HTTPStatus.FORBIDDEN and "being terminated" in message:
        return f"namespace {namespace} is being deleted; create it again or set leader.namespace", False
    if error.status == HTTPStatus.FORBIDDEN:
        role = f"apply the Role quotaward and its binding in namespace {namespace}"
        return f"no right to Lease {namespace}/{settings.name}; {role}: 403 {message}", False
    return f"the API server answered {error.status}: {message}", True
