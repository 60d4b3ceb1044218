"""One leader among replicas: whoever holds the Lease runs the controllers."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

import aiohttp
import structlog
from kubernetes.aio.client import ApiException, CoordinationV1Api
from kubernetes.aio.leaderelection import electionconfig, leaderelection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from app.kube.client import KubeClient
from app.observability import metrics
from app.settings import LeaderSettings

log = structlog.get_logger(__name__)


class Lease:
    """Runs something while this replica leads."""

    def __init__(self, client: KubeClient, settings: LeaderSettings) -> None:
        self._client = client
        self._settings = settings
        self._identity = f"{socket.gethostname()}_{os.getpid()}_{os.urandom(4).hex()}"
        self._leading = False

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Waits to lead, works while leading, and begins again when the lead is lost. Goes on until cancelled.

        Raises what ``work`` raises.
        """
        while True:
            await self._one_term(work)
            await asyncio.sleep(self._retry)

    @property
    def _retry(self) -> float:
        return max(1.0, self._settings.lease_duration / 8)

    async def _one_term(self, work: Callable[[], Awaitable[None]]) -> None:
        started = asyncio.Event()

        async def begin() -> None:
            started.set()

        async def stopped() -> None:
            log.info("lead lost")

        lock = LeaseLock(self._settings.name, self._settings.namespace, self._identity, self._client.api)
        duration = self._settings.lease_duration
        config = electionconfig.Config(lock, duration, duration * 2 / 3, self._retry, begin, stopped)
        election = asyncio.create_task(leaderelection.LeaderElection(config).run())
        working: asyncio.Task[None] | None = None
        try:
            waiting = asyncio.create_task(started.wait())
            await asyncio.wait([election, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if started.is_set():
                log.info("leading", identity=self._identity)
                self._leading = True
                metrics.LEADER.set(1)
                working = asyncio.create_task(_run(work))
                await asyncio.wait([election, working], return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    await working
            if election.done():
                await election
        except (ApiException, aiohttp.ClientError, OSError, TimeoutError) as error:
            log.warning("lease cannot be reached", error=str(error) or type(error).__name__)
        finally:
            leading, self._leading = self._leading, False
            metrics.LEADER.set(0)
            for task in (election, working):
                if task is not None:
                    task.cancel()
            await asyncio.gather(*(task for task in (election, working) if task), return_exceptions=True)
            if leading:
                await self._give_back()

    async def _give_back(self) -> None:
        """Leaves the Lease to the next at once, instead of letting it run out. As well as may be."""
        api = CoordinationV1Api(self._client.api)
        try:
            lease = await api.read_namespaced_lease(self._settings.name, self._settings.namespace)
            if lease.spec is not None and lease.spec.holder_identity == self._identity:
                lease.spec.holder_identity = None  # the resourceVersion goes with it: nobody else's lead is taken away
                await api.replace_namespaced_lease(self._settings.name, self._settings.namespace, lease)
        except (ApiException, aiohttp.ClientError, OSError, TimeoutError) as error:
            log.debug("lease not given back", error=str(error))


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()
