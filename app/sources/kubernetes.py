"""The API server as the source: one reflector per kind."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from app.kube.client import KubeClient
from app.kube.definitions import UNANSWERED, Served, served
from app.kube.reflector import Reflector
from app.settings import GroupSettings
from app.sources import others
from app.store.kind import Kind
from app.store.kinds import SUCCESSORS
from app.store.store import Store

log = structlog.get_logger(__name__)

RETRY = 1.0
"""Seconds until discovery is asked again whether a kind is installed."""


async def follow(client: KubeClient, store: Store, groups: GroupSettings, *, keeps: bool = True) -> None:
    """Keeps the store up to date with the API server until cancelled. ``keeps``: see Reflector."""
    log.info("following", api_server=client.api.configuration.host)  # the environment may have chosen it
    async with asyncio.TaskGroup() as group:
        for kind in store.kinds:
            work = Reflector(client, kind, store, keeps=keeps).run
            if kind.label in SUCCESSORS:
                legacy = _follow_legacy(client, kind, store, groups, work)
                group.create_task(legacy, name=f"reflector {kind.label}, if it is wanted")
            else:
                group.create_task(work(), name=f"reflector {kind.label}")
        group.create_task(client.follow(), name="credentials")
        group.create_task(others.look(client, store), name="kinds that are not read")


async def _follow_legacy(
    client: KubeClient, kind: Kind, store: Store, groups: GroupSettings, work: Callable[[], Awaitable[None]]
) -> None:
    """Follows a kind of the older group if wanted; with ``auto`` if the newer was not installed at the start.

    This is decided once: installing a definition must not make the quotas that count disappear.
    """
    wanted = groups.legacy == "on"
    if groups.legacy == "auto":
        wanted = not await _is_installed(client, SUCCESSORS[kind.label])
    if wanted:
        await work()
    else:
        store.complete(kind)


async def _is_installed(client: KubeClient, kind: Kind) -> bool:
    """Whether the API server serves a kind; true if it may not be asked."""
    while True:
        try:
            return await served(client, kind) is not Served.NO
        except UNANSWERED:
            await asyncio.sleep(RETRY)  # the reflector of that kind reports it
