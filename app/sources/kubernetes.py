"""The API server as the source: one reflector per kind."""

import asyncio

import structlog

from app.kube.client import KubeClient
from app.kube.reflector import Reflector
from app.store.kinds import KINDS
from app.store.store import Store

log = structlog.get_logger(__name__)


async def follow(client: KubeClient, store: Store, *, keeps: bool = True) -> None:
    """Keeps the store true to the API server until cancelled. ``keeps``: as for a reflector."""
    log.info("following", api_server=client.api.configuration.host)  # it may be the environment that chose it
    async with asyncio.TaskGroup() as group:
        for kind in KINDS:
            group.create_task(Reflector(client, kind, store, keeps=keeps).run(), name=f"reflector {kind.label}")
