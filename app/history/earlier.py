"""Reads evictions of the time before the start from the Events that were written of them.

The API server keeps Events for an hour by default. Users who may write Events may invent evictions. Such an Event
counts for nothing but the history of its own namespace and of the queues that its pods may choose, and nothing decides
by it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from heapq import nlargest
from http import HTTPStatus
from itertools import chain

import aiohttp
import msgspec
import structlog

from app.actuators.events import MOST_CHARACTERS
from app.history.answers import read_at_most
from app.history.recorder import HIGHEST, Recorder
from app.kube.client import KubeClient
from app.kube.said import said
from app.observability.evictions import MOST, Evicted, Figures
from app.observability.queue_metrics import label_of
from app.pause import Pause, at_leisure
from app.store.heeded import EVICTED
from app.store.store import TICK
from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod

log = structlog.get_logger(__name__)

PAGE, PAGES = 50, 200
"""Maximum number of Events that are asked for at a time, and of such questions."""
FEWER = 4
"""Divisor of the number of Events that are asked for, after an answer that is too large. Users decide on their size."""
LARGEST = 2**20
"""Maximum number of bytes of an answer."""
OF_A_NAMESPACE = 500
"""Maximum number of evictions of one namespace, so that none crowds out the others."""
LARGEST_EVICTION = 4096
"""Maximum number of bytes of one eviction in an Event."""
TIMEOUT = 10.0
"""Seconds that an answer may take."""
AGAIN = 60.0
"""Seconds after which it is tried again."""
ATTEMPTS = 10
"""Failures after which nothing more is asked."""


class CannotRead(Exception):
    """The Events cannot be read; the text says why."""


class _TooLarge(Exception):
    """An answer is too large to be read; ``following`` is what follows the Events in it, if the answer says so."""

    def __init__(self, following: str) -> None:
        super().__init__(following)
        self.following = following


class _Metadata(msgspec.Struct, gc=False):
    namespace: str = ""
    annotations: dict[str, str] | None = None


class _Event(msgspec.Struct, gc=False):
    metadata: _Metadata


class _ListMeta(msgspec.Struct, gc=False):
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_page_decoder = msgspec.json.Decoder(_Page)
_event_decoder = msgspec.json.Decoder(_Event)
_told_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_evicted_decoder = msgspec.json.Decoder(Evicted)


class EarlierEvictions:
    """Passes evictions from before the start, by earlier processes and other replicas, on to the recorder."""

    def __init__(self, cluster: Cluster, client: KubeClient) -> None:
        """Evictions after this moment are not read, so create it before anything can be evicted."""
        self._cluster = cluster
        self._client = client
        self._start = time.time()

    async def run(self, recorder: Recorder) -> None:
        """Reads the Events once, then waits for ever."""
        while not recorder.sampled:
            await asyncio.sleep(TICK)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self.read(recorder)
                break
            except CannotRead as error:
                recorder.evictions_lacking = f"evictions of the time before the start are not known: {error}"
                log.warning("no evictions from before the start", error=str(error))
                if attempt < ATTEMPTS:
                    await asyncio.sleep(AGAIN)
        await asyncio.Event().wait()

    async def read(self, recorder: Recorder) -> None:
        """Reads the evictions in Events, and keeps the latest of each namespace. Raises CannotRead."""
        by_namespace: dict[str, list[Evicted]] = {}
        pages = _Pages(self._client)
        pause = Pause()
        async for events in pages:
            for raw in events:
                for each in evictions_in(raw, self._cluster, self._start):
                    of = by_namespace.setdefault(each.namespace, [])
                    of.append(each)
                    if len(of) >= 2 * OF_A_NAMESPACE:
                        of[:] = _latest(OF_A_NAMESPACE, of)
                await pause.if_due()
        recorder.evictions_lacking = pages.lacking()
        latest = chain.from_iterable(_latest(OF_A_NAMESPACE, of) for of in by_namespace.values())
        await at_leisure(recorder.restore_evictions_steps(_latest(MOST, latest)))


class _Pages:
    """Reads Events page by page. Asks for fewer at a time where they are large, and skips one that is too large."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._query = {"labelSelector": f"{EVICTED}=true"}
        self._read = self._skipped = 0
        self._all = False

    def lacking(self) -> str:
        """Returns which Events were not read, or nothing."""
        lacking = [] if self._all else [f"only {self._read} Events were read"]
        lacking += [f"Events too large to be read: {self._skipped}"] if self._skipped else []
        return f"of the time before the start, {'; '.join(lacking)}" if lacking else ""

    async def __aiter__(self) -> AsyncIterator[list[msgspec.Raw]]:
        """Yields the Events of each page. Raises CannotRead."""
        limit = PAGE
        for _ in range(PAGES):
            try:
                page = await self._page(limit)
            except _TooLarge as answer:
                if limit > 1:
                    limit = max(1, limit // FEWER)
                    continue
                self._skipped += 1
                following = answer.following
            else:
                yield (events := page.items or [])
                self._read += len(events)
                following = page.metadata.continue_
            limit = min(PAGE, limit * FEWER)
            if not following:
                self._all = True
                return
            self._query["continue"] = following

    async def _page(self, limit: int) -> _Page:
        try:
            query = self._query | {"limit": str(limit)}
            async with self._client.get("/api/v1/events", query, read_timeout=TIMEOUT) as response:
                body = await read_at_most(response.content, LARGEST)
            if response.status != HTTPStatus.OK:
                raise CannotRead(f"the API server answers {response.status}: {said(body)[:200]}")
            return _decoded(body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise CannotRead(f"the API server cannot be reached: {type(error).__name__}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CannotRead(f"the API server's answer cannot be read: {error}") from error


def _decoded(body: bytes) -> _Page:
    """Decodes a page. Raises _TooLarge for one that was cut off, or is nested too deep.

    The API server writes the Events last, so what follows them is known even then.
    """
    try:
        if len(body) <= LARGEST:
            return _page_decoder.decode(body)
    except RecursionError:
        pass
    before = body.partition(b'"items":')[0].rstrip(b", ")
    raise _TooLarge(_page_decoder.decode(before + b"}").metadata.continue_)


def evictions_in(raw: msgspec.Raw, cluster: Cluster, before: float) -> Iterator[Evicted]:
    """Yields the evictions before a time that an Event reports, with a queue that pods of its namespace may choose."""
    try:
        meta = _event_decoder.decode(raw).metadata
        text = (meta.annotations or {}).get(EVICTED, "")
        told = _told_decoder.decode(text) if 0 < len(text) <= MOST_CHARACTERS else []
        evictions = [_evicted_decoder.decode(each) for each in told if len(each) <= LARGEST_EVICTION]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # somebody else wrote it
    for each in evictions:
        if each.namespace == meta.namespace and 0 <= each.at < before and all(map(_is_possible, each.figures)):
            as_pod = Pod("", each.namespace, each.name, {}, queue=each.queue)
            yield replace(each, queue=each.queue and label_of(cluster, as_pod))


def _is_possible(figures: Figures) -> bool:
    amounts = (figures.request, figures.used, figures.min, figures.max, figures.allocated, figures.deserved)
    return all(amount is None or 0 <= amount <= HIGHEST for amount in amounts)


def _latest(number: int, evictions: Iterable[Evicted]) -> list[Evicted]:
    return nlargest(number, evictions, key=lambda each: each.at)
