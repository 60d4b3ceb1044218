"""Asks whether the API server still has the definition of a kind, before its objects are dropped.

Quotas, queues and groups bind pods. When somebody deletes their definition, the API server first deletes all objects
of it, and each of these deletions looks like any other. So the objects stay in force until discovery says that the
definition stays. Discovery no longer offers ``create`` for a definition that is being deleted.
"""

import asyncio
import time
from enum import Enum, auto
from http import HTTPStatus

import aiohttp
import msgspec
import structlog

from app.kube.client import KubeClient
from app.kube.said import said
from app.store.kind import Key, Kind
from app.store.store import Store

log = structlog.get_logger(__name__)

TIMEOUT = 30.0
DOUBT = 1.0
"""Seconds for which a deletion is in doubt: discovery may show with a delay that the definition is being deleted."""
PAUSE = 3.0
"""Seconds until discovery is asked again if it lacks the definition, or did not answer."""
UNANSWERED = (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions raised if discovery does not answer, or something else answers in its place."""


class Served(Enum):
    """Discovery's answer about a kind. ``UNKNOWN``: we may not ask."""

    YES = auto()
    ENDING = auto()
    NO = auto()
    UNKNOWN = auto()


class _Resource(msgspec.Struct, gc=False):
    name: str = ""
    verbs: list[str] = []


class _Resources(msgspec.Struct, gc=False):
    resources: list[_Resource] | None = None


_decoder = msgspec.json.Decoder(_Resources)


async def served(client: KubeClient, kind: Kind) -> Served:
    """Asks discovery about a kind. Raises one of UNANSWERED."""
    async with client.get(kind.path.rpartition("/")[0], {}, read_timeout=TIMEOUT) as response:
        body = await response.read()
    if response.status == HTTPStatus.NOT_FOUND:
        return Served.NO
    if response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Served.UNKNOWN
    if response.status != HTTPStatus.OK:
        raise aiohttp.ClientPayloadError(f"{response.status} {said(body)}")
    found = [each for each in _decoder.decode(body).resources or () if each.name == kind.plural]
    if not found:
        return Served.NO
    return Served.YES if "create" in found[0].verbs else Served.ENDING


class Departures:
    """Objects of one kind whose deletion is in doubt."""

    def __init__(self, client: KubeClient, kind: Kind, store: Store) -> None:
        self._client = client
        self._kind = kind
        self._store = store
        self._since: dict[Key, float] = {}
        self._some = asyncio.Event()

    def put(self, key: Key) -> None:
        """Notes the deletion of an object. Does nothing if it is noted already."""
        self._since.setdefault(key, time.monotonic())
        self._some.set()

    def take_back(self, key: Key) -> None:
        """Forgets a deletion, since there is an object of this name again."""
        self._since.pop(key, None)

    async def run(self) -> None:
        """Looks repeatedly while any deletion is in doubt, until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(DOUBT / 5)  # discovery is asked no more often, however deletions follow each other
            while not await self.look():
                await asyncio.sleep(PAUSE)

    async def look(self) -> bool:
        """Drops the objects that were in doubt for long enough, if the definition stays. Returns whether it stays."""
        now = time.monotonic()
        oldest = next(iter(self._since.values()), now)
        if self._since and now - oldest < DOUBT:
            return True
        try:
            answer = await served(self._client, self._kind)
        except UNANSWERED:
            return False  # the watch reports that
        if answer is Served.ENDING:
            self._store.definition_lost(self._kind, kept=True)
        if answer not in (Served.YES, Served.UNKNOWN):
            return False
        for key in [key for key, since in self._since.items() if now - since >= DOUBT]:
            del self._since[key]
            self._store.delete(self._kind, key)
        if not self._since:
            self._some.clear()
        return True
