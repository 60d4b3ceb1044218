"""Reflectors at work: what they ask the API server for, and the store that they keep true."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from app.kube.client import KubeClient
from app.kube.reflector import Reflector
from app.store.kind import Kind
from app.store.pods import PODS
from app.store.store import Store
from policy.cluster.cluster import Cluster


async def until(condition: Callable[[], Any], what: str, within: float = 30) -> None:
    """Wait until this holds, while the loop goes on."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
        await asyncio.sleep(0.01)


def in_loop(call: Callable[..., Any], *arguments: Any, **named: Any) -> Awaitable[Any]:
    """A call of the API in a thread, so that the loop goes on meanwhile."""
    return asyncio.to_thread(call, *arguments, **named)


class RecordingClient(KubeClient):
    """Notes the query of every request it sends."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.queries: list[dict[str, str]] = []

    def get(self, path: str, query: Any, *, read_timeout: float) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        self.queries.append(dict(query))
        return super().get(path, query, read_timeout=read_timeout)

    @property
    def lists(self) -> list[dict[str, str]]:
        return [query for query in self.queries if "watch" not in query and query not in self.counts]

    @property
    def counts(self) -> list[dict[str, str]]:
        """What asked for the number of objects alone."""
        return [query for query in self.queries if query == {"limit": "1"}]

    @property
    def watches(self) -> list[dict[str, str]]:
        return [query for query in self.queries if "watch" in query]


class Following:
    """One reflector, and the store that it feeds."""

    def __init__(self, client: RecordingClient, kind: Kind, store: Store, *, keeps: bool = True):
        self.client = client
        self.store = store
        self.cluster = store.cluster
        self.reflector = Reflector(client, kind, store, keeps=keeps)

    @property
    def names(self) -> set[str]:
        """The names of the pods that the store knows."""
        return {pod.name for pod in self.cluster.pods.values()}

    async def until(self, condition: Callable[[], Any], what: str, within: float = 30) -> None:
        await until(condition, what, within)

    async def until_synced(self) -> None:
        await self.until(lambda: self.store.feeds[self.reflector._kind.label].synced, "the first list is complete")

    async def until_connected(self, watches: int) -> None:
        """Wait until it has asked for so many watches in all, and the last one stands."""
        feed = self.store.feeds[self.reflector._kind.label]
        await self.until(
            lambda: len(self.client.watches) >= watches and feed.connected_at is not None, f"watch number {watches}"
        )


@asynccontextmanager
async def connected(kubeconfig: Path, kind: Kind = PODS, *, keeps: bool = True) -> AsyncIterator[Following]:
    """A reflector that does not run yet."""
    client = await RecordingClient.connect(kubeconfig)
    try:
        yield Following(client, kind, Store(Cluster(settle_time=0), settle_time=0), keeps=keeps)
    finally:
        await client.close()


@asynccontextmanager
async def following(kubeconfig: Path, kind: Kind = PODS, *, keeps: bool = True) -> AsyncIterator[Following]:
    """A reflector that runs, and has seen everything there is."""
    async with connected(kubeconfig, kind, keeps=keeps) as found, running(found):
        await found.until_synced()
        yield found


@asynccontextmanager
async def running(found: Following) -> AsyncIterator[None]:
    """The reflector runs until the block ends."""
    task = asyncio.create_task(found.reflector.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
