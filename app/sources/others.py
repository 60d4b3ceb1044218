"""Finds objects that look as if they were read: those of other projects, or of the older of two API groups.

It looks once, at the start, with at most two requests for each kind. Kinds that may not be listed are skipped: this
needs no rights of its own.
"""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import suppress
from http import HTTPStatus

import aiohttp
import msgspec
import structlog

from app.kube.client import KubeClient
from app.store.heeded import OTHERS
from app.store.kinds import KINDS, SUCCESSORS
from app.store.store import TICK, Store

log = structlog.get_logger(__name__)

TIMEOUT = 10.0
CANNOT_SEE = (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError)


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    preferred_version: _Version


class _Groups(msgspec.Struct):
    groups: list[_Group]


class _Some(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


_groups_decoder, _some_decoder = msgspec.json.Decoder(_Groups), msgspec.json.Decoder(_Some)


async def look(client: KubeClient, store: Store) -> None:
    """Notes what it finds in the store and in the log; skips what cannot be seen."""
    while not store.synced:
        await asyncio.sleep(TICK)
    followed = {kind.label for kind in KINDS if kind.label in SUCCESSORS and store.known(kind)}
    try:
        store.strange = tuple(await unread(client, followed))
    except CANNOT_SEE as error:
        log.info("kinds of other projects were not looked for", error=str(error) or type(error).__name__)
    for text in store.strange:
        log.warning("there are objects that are not read", what=text)


async def unread(client: KubeClient, followed: Collection[str]) -> list[str]:
    """Returns a sentence for each kind that has objects. ``followed``: labels of the older kinds that are read.

    Raises one of CANNOT_SEE if not even the groups can be seen.
    """
    groups = _groups_decoder.decode(await _get(client, "/apis", {}))
    versions = {group.name: group.preferred_version.group_version for group in groups.groups}
    found = []
    for path, text in _candidates(versions, followed):
        with suppress(*CANNOT_SEE):
            if _some_decoder.decode(await _get(client, path, {"limit": "1"})).items:
                found.append(text)
    return found


def _candidates(versions: dict[str, str], followed: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields the paths to look at, with the sentence for each."""
    for other in OTHERS:
        if other.group in versions:
            path = f"/apis/{versions[other.group]}/{other.plural}"
            yield path, f"{other.kind} of {other.group} is not read: {other.instead}"
    for kind in KINDS:
        if kind.label in SUCCESSORS and kind.group in versions and kind.label not in followed:
            text = f"is not read, as that of {SUCCESSORS[kind.label].group} is installed; groups.legacy: on reads both"
            yield kind.path, f"{kind.name} of {kind.group} {text}"


async def _get(client: KubeClient, path: str, query: dict[str, str]) -> bytes:
    """Returns the answer; an empty JSON object for an error."""
    async with client.get(path, query, read_timeout=TIMEOUT) as response:
        return await response.read() if response.status == HTTPStatus.OK else b"{}"
