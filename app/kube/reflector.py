"""Keeps the store's state of one kind true: a reflector lists, then watches, and starts again when it must.

Each line of a watch is decoded directly into the fields that are used. Decoding is cut into slices, between which
the loop answers the scheduler: decoding a whole page of pods takes longer than a scheduling decision may wait.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import aiohttp
import msgspec
import structlog

from app.kube.census import Census, Incomplete
from app.kube.client import KubeClient
from app.kube.definitions import UNANSWERED, Departures, Served, served
from app.kube.said import said
from app.kube.versions import Versions
from app.observability import metrics
from app.pause import Pause
from app.store.kind import Key, Kind
from app.store.kinds import SUCCESSORS
from app.store.metadata import Metadata, number_of, version_of
from app.store.store import Store

log = structlog.get_logger(__name__)

PAGE = 500
IDLE_TIMEOUT = 120.0
"""Seconds of silence after which a connection counts as dead."""
WATCH_SECONDS = 60
"""Seconds for which a watch is requested, at least; at most half as long again.

This is shorter than IDLE_TIMEOUT. While there is no newer version, the API server sends no bookmark, so a quiet kind
is silent. By ending the watch the API server shows that it is alive.
"""
NOT_INSTALLED_RETRY = 3.0
GONE_AFTER = 5.0
"""Seconds for which the API server has to say that a known kind is gone, or that all its objects are."""
COUNT_TIMEOUT = 3.0
"""Seconds to wait for the number of objects."""
CATCHING_UP = 5.0
"""Seconds of silence after which a watch has delivered all earlier changes."""
FORBIDDEN_FOR = 60.0
"""Seconds for which an advisory kind that could be read is forbidden until it is done without.

An API server that has just started knows no rights yet, and forbids everything. At first ``GONE_AFTER`` is enough.
"""
FORBIDDEN_RETRY = 15.0
LONGEST_WAIT = 15.0
ENDED_RETRY = 0.1
BRIEF = 0.5
"""Seconds that a watch has to last. One that ends sooner without anything new has failed, however it ended."""
PATIENCE = 5
"""Watches in a row that failed or brought nothing, after which the version itself is suspect.

An API server that has lost its history brings nothing until its versions have come as far again.
"""


class Expired(Exception):
    """The API server no longer knows the version to continue from (410 Gone): list again."""


class NotInstalled(Exception):
    """The API server does not serve this kind (404)."""


class Unanswered(Exception):
    """The API server answered with an error; the text has its status and message."""


class Forbidden(Unanswered):
    """There is no right to read this kind (403)."""


class Doubtful(Exception):
    """A list contradicts what is known and is not believed yet; the text says what is strange about it."""


class Brief(Exception):
    """A watch ended at once and brought nothing."""


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _Page(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _Object(msgspec.Struct, gc=False):
    metadata: Metadata


class _Status(msgspec.Struct, gc=False):
    code: int = 0
    message: str = ""


_page_decoder = msgspec.json.Decoder(_Page)
_event_decoder = msgspec.json.Decoder(_Event)
_object_decoder = msgspec.json.Decoder(_Object)
_status_decoder = msgspec.json.Decoder(_Status)


class Reflector:
    """Feeds one kind of objects from the API server into the store."""

    def __init__(self, client: KubeClient, kind: Kind, store: Store, *, keeps: bool = True) -> None:
        """``keeps``: objects that bind pods stay in force when their definition is deleted."""
        self._client = client
        self._kind = kind
        self._store = store
        self._versions = Versions(kind, store.cluster)
        self._departures = Departures(client, kind, store) if keeps and kind.binds else None
        self._installed = False
        self._missing_since: float | None = None
        self._version = ""
        self._highest = 0
        self._doubtful_since: float | None = None
        self._forbidden_since: float | None = None
        self._census = Census()
        self._to_count = self._catching_up = False
        self._failures = 0
        self._silences = 0
        self._lost: tuple[str, str] | None = None
        self._events = metrics.WATCH_EVENTS.labels(kind.label)

    async def run(self) -> None:
        """Follows the kind until cancelled, and starts again after any failure."""
        async with asyncio.TaskGroup() as group:
            if self._departures is not None:
                group.create_task(self._departures.run())
            while True:
                await asyncio.sleep(await self.follow())

    async def follow(self) -> float:
        """Runs one connection: lists if needed, then watches until it ends. Returns seconds to wait before the next."""
        try:
            if not self._version:
                await self._list()
                self._store.lost(self._kind)  # until the watch is answered, which may never happen
            elif self._to_count:
                await self._count()
            await self._watch()
        except (Expired, Doubtful, Incomplete) as error:
            return self._again(type(error).__name__.lower(), relist=True, error=str(error))
        except NotInstalled:
            return await self._not_installed()
        except TimeoutError as error:
            return self._again("silent", relist=False, error=str(error))
        except (aiohttp.ClientError, OSError, Unanswered, Brief) as error:
            return self._after(error)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return self._again("undecodable", relist=True, error=str(error))
        self._store.lost(self._kind)  # until the next one is answered, which may never happen
        self._found()
        self._failures = 0
        self._silences += 1
        if self._silences >= PATIENCE:
            self._version = ""
        metrics.WATCH_RESTARTS.labels(self._kind.label, "ended").inc()
        return ENDED_RETRY

    async def _list(self) -> None:
        """Takes in all objects, page by page, and removes those not listed. Raises Doubtful before any change."""
        self._silences = 0
        keys: set[Key] = set()
        pause = Pause()
        query = {"limit": str(PAGE)}
        while True:
            async with self._client.get(self._kind.path, query, read_timeout=IDLE_TIMEOUT) as response:
                await _check(response)
                page = _page_decoder.decode(await response.read())
            if "continue" not in query:
                self._believe(page)
                self._versions.clear()
            for raw in page.items or ():
                meta, take_in = self._read(raw)
                take_in()
                keys.add(self._kind.key(meta))
                await pause.if_due()
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        for key in [key for key in self._store.known(self._kind) if key not in keys]:
            self._delete(key)  # its deletion was missed
        self._census.begin(keys)
        self._to_count = self._catching_up = False
        self._installed, self._missing_since = True, None
        if self._store.lacks(self._kind) and await served(self._client, self._kind) is not Served.ENDING:
            self._store.definition_back(self._kind)
        self._version = page.metadata.resource_version
        self._highest = max(self._highest, number_of(self._version))
        self._store.complete(self._kind)

    def _believe(self, first: _Page) -> None:
        """Checks the first page of a list before anything is taken in. Raises Doubtful.

        A list older than what was seen comes from a cache that lags behind. A list that is suddenly empty most likely
        comes from a failure. After some seconds such a list is believed: history may have been lost.
        """
        if 0 < number_of(first.metadata.resource_version) < self._highest:
            strange = "the list is older than what was seen before"
        elif self._census.keys and not first.items:
            strange = "the list is empty, and before it was not"
        else:
            self._doubtful_since = None
            return
        now = time.monotonic()
        self._doubtful_since = now if self._doubtful_since is None else self._doubtful_since
        if now - self._doubtful_since < GONE_AFTER:
            raise Doubtful(strange)
        self._highest, self._doubtful_since = 0, None

    async def _count(self) -> None:
        """Asks for the number of objects before a watch is resumed. Without an answer nothing is compared."""
        self._to_count = self._catching_up = False
        with suppress(aiohttp.ClientError, OSError, msgspec.MsgspecError, UnicodeDecodeError):
            async with (
                asyncio.timeout(COUNT_TIMEOUT),
                self._client.get(self._kind.path, {"limit": "1"}, read_timeout=COUNT_TIMEOUT) as response,
            ):
                if response.status != 200:  # noqa: PLR2004 - HTTP OK
                    return
                page = _page_decoder.decode(await response.read())
            more = page.metadata.remaining_item_count if page.metadata.continue_ else 0
            if more is not None and number_of(page.metadata.resource_version) >= self._highest:
                self._catching_up = self._census.expect(page.metadata.resource_version, len(page.items or ()) + more)

    async def _watch(self) -> None:
        """Takes in changes until the connection ends. Raises Brief if that was at once.

        The wait is shorter while changes are due, because the number of objects differs from the number known.
        """
        before, since = self._version, time.monotonic()
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(WATCH_SECONDS * random.uniform(1, 1.5))),  # noqa: S311 - not all at once
        }
        idle, self._catching_up = (CATCHING_UP if self._catching_up else IDLE_TIMEOUT), False
        async with self._client.get(self._kind.path, query, read_timeout=idle) as response:
            await _check(response)
            self._store.contact(self._kind)
            self._forbidden_since = None
            lasting = asyncio.get_running_loop().call_later(BRIEF, self._found)
            try:
                pause = Pause()
                async for line in _lines(response.content):
                    self._take(_event_decoder.decode(line))
                    await pause.if_due()
            except TimeoutError:
                if idle == IDLE_TIMEOUT:
                    raise
                self._census.compare()
            finally:
                lasting.cancel()
                self._to_count = self._to_count or time.monotonic() - since >= BRIEF
        if self._version == before and time.monotonic() - since < BRIEF:
            raise Brief

    def _take(self, event: _Event) -> None:
        self._store.contact(self._kind)
        if event.type == "ERROR":
            status = _status_decoder.decode(event.object)
            if status.code == 410:  # noqa: PLR2004 - HTTP Gone
                raise Expired
            raise Unanswered(f"{status.code} {status.message}")
        self._silences = 0
        if event.type == "BOOKMARK":
            meta = _object_decoder.decode(event.object).metadata
            self._census.reach(version_of(meta) + 1)
            self._go_on_from(meta)
            return
        self._events.inc()
        if event.type == "DELETED":
            meta = _object_decoder.decode(event.object).metadata
            self._census.reach(version_of(meta))
            if not self._versions.is_of_another(meta):
                self._delete(self._kind.key(meta))
                self._versions.end(meta)
                self._census.keys.discard(self._kind.key(meta))
        else:
            meta, take_in = self._read(event.object)
            if self._versions.is_late(meta):
                return
            self._census.reach(version_of(meta))
            take_in()
            self._census.keys.add(self._kind.key(meta))
        self._go_on_from(meta)

    def _delete(self, key: Key) -> None:
        """Deletes an object, or puts its deletion in doubt if the kind binds pods."""
        if self._departures is not None:
            self._departures.put(key)
        else:
            self._store.delete(self._kind, key)

    def _go_on_from(self, meta: Metadata) -> None:
        """Notes the version that the watch has reached, never an earlier one. Progress ends a series of failures."""
        if meta.resource_version and meta.resource_version != self._version:
            if 0 < version_of(meta) < number_of(self._version):
                return
            self._version = meta.resource_version
            self._highest = max(self._highest, version_of(meta))
            self._failures = 0

    def _read(self, raw: msgspec.Raw) -> tuple[Metadata, Callable[[], None]]:
        """Returns the metadata, and a call that takes the object in, or reports that it is broken and keeps the old."""
        try:
            obj = self._kind.decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            whose = _object_decoder.decode(raw).metadata
            return whose, partial(self._store.report, self._kind, whose, "", str(error))
        return obj.metadata, partial(self._take_in, obj)

    def _take_in(self, obj: Any) -> None:
        self._store.upsert(self._kind, obj)
        self._versions.note(obj.metadata)
        if self._departures is not None:
            self._departures.take_back(self._kind.key(obj.metadata))

    def _again(self, reason: str, *, relist: bool, error: str = "") -> float:
        """Notes a lost connection. Returns the wait before the next, which doubles up to a bound, with jitter."""
        self._store.lost(self._kind, silent=reason == "silent")
        metrics.WATCH_RESTARTS.labels(self._kind.label, reason).inc()
        self._silences = PATIENCE - 1  # the next server may have lost its history: one silent watch, then a list
        if relist or self._failures >= PATIENCE:
            self._version = ""
        wait: float = min(0.2 * 2**self._failures, LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311
        self._failures = min(self._failures + 1, 10)
        if self._lost != (reason, error):  # logged once, not at every retry
            self._lost = reason, error
            log.warning("watch lost", kind=self._kind.label, reason=reason, error=error, retry_seconds=round(wait, 2))
        return wait

    def _found(self) -> None:
        """Logs that a watch has lasted again, if its loss was logged."""
        if self._lost:
            self._lost = None
            log.info("watching again", kind=self._kind.label)

    def _after(self, error: Exception) -> float:
        """Handles a failed or forbidden connection. Returns the wait before the next."""
        if not isinstance(error, Forbidden):
            self._forbidden_since = None
        elif self._is_spared():
            return self._do_without(str(error))
        reason = "brief" if isinstance(error, Brief) else "error"
        return self._again(reason, relist=False, error=str(error) or type(error).__name__)

    def _is_spared(self) -> bool:
        """Whether the kind, which is forbidden, is one to do without by now."""
        if not self._kind.advisory:
            return self._kind.label in SUCCESSORS and not self._installed
        now = time.monotonic()
        self._forbidden_since = now if self._forbidden_since is None else self._forbidden_since
        return now - self._forbidden_since >= (FORBIDDEN_FOR if self._installed else GONE_AFTER)

    def _do_without(self, error: str) -> float:
        """Treats a kind that nobody depends on and that may not be read as empty, until that changes."""
        self._version = ""
        self._store.keep_only(self._kind, set())
        self._store.complete(self._kind, without=True)
        if self._lost != ("forbidden", error):
            self._lost = "forbidden", error
            log.warning("may not be read, and is done without", kind=self._kind.label, error=error)
        return FORBIDDEN_RETRY * random.uniform(0.5, 1)  # noqa: S311

    async def _not_installed(self) -> float:
        """Handles a 404 for the kind, which may be wrong. Returns the wait before asking again.

        A known kind counts as gone only if the API server says so for some seconds, and discovery agrees.
        """
        self._version = ""
        if not self._kind.optional:
            return self._again("not-installed", relist=True)
        try:
            answer = await served(self._client, self._kind)
        except UNANSWERED as error:
            return self._again("error", relist=True, error=str(error) or type(error).__name__)
        if answer in (Served.YES, Served.ENDING):
            return self._again("error", relist=True, error="404, although the kind is served")
        self._lost = None  # the answer is clear: there is nothing to watch
        now = time.monotonic()
        self._missing_since = now if self._missing_since is None else self._missing_since
        if not self._installed:
            self._never_installed()
        elif now - self._missing_since >= GONE_AFTER:
            self._gone()
        else:
            self._store.lost(self._kind)
        return NOT_INSTALLED_RETRY * random.uniform(0.5, 1)  # noqa: S311

    def _never_installed(self) -> None:
        """Treats a kind that was never installed as empty and complete."""
        if not self._store.feeds[self._kind.label].synced:
            log.info("not installed, waiting for it", kind=self._kind.label, api_version=self._kind.api_version)
        self._store.complete(self._kind, without=True)

    def _gone(self) -> None:
        """Handles the removal of a known kind. Objects that bind pods stay in force, if that was chosen."""
        kept = self._departures is not None
        if not kept:
            self._store.keep_only(self._kind, set())
        self._store.definition_lost(self._kind, kept=kept)
        self._store.complete(self._kind, without=True)


async def _check(response: aiohttp.ClientResponse) -> None:
    """Raises the exception for an answer other than 200."""
    if response.status == 200:  # noqa: PLR2004 - HTTP OK
        return
    body = await response.read()
    if response.status == 410:  # noqa: PLR2004 - HTTP Gone
        raise Expired
    if response.status == 404:  # noqa: PLR2004 - HTTP Not Found
        raise NotInstalled
    failure = Forbidden if response.status == 403 else Unanswered  # noqa: PLR2004 - HTTP Forbidden
    raise failure(f"{response.status} {said(body)}")


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yields the lines of a body as they come, however long one is."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
