"""Reads evictions of the time before the start from the Events that were written of them.

The API server keeps Events for an hour by default. Users who may write Events may invent evictions. Such an Event
counts for nothing but the history of its own namespace and of the queues that its pods may choose, and nothing decides
by it.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import nlargest
from http import HTTPStatus
from itertools import chain

import aiohttp
import msgspec
import structlog

from app.actuators.events import MOST_CHARACTERS
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
LARGEST = 2**20
"""Maximum number of bytes of an answer."""
OF_A_NAMESPACE = 500
"""Maximum number of evictions of one namespace, so that none crowds out the others."""
LARGEST_EVICTION = 4096
"""Maximum number of bytes of what is told of one eviction."""
TIMEOUT = 10.0
"""Seconds that an answer may take."""
AGAIN = 60.0
"""Seconds after which it is tried again."""
ATTEMPTS = 10
"""Failures after which nothing more is asked."""


class CannotRead(Exception):
    """The Events cannot be read; the text says why."""


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
    """Hands evictions of earlier processes, and of other replicas before the start, on to the recorder."""

    def __init__(self, cluster: Cluster, client: KubeClient) -> None:
        """Make it before anything can be evicted: later evictions are not read."""
        self._cluster = cluster
        self._client = client
        self._start = time.time()

    async def run(self, recorder: Recorder) -> None:
        """Reads them once, then waits for ever."""
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
        """Reads what Events tell, the latest of each namespace. Raises CannotRead."""
        query = {"labelSelector": f"{EVICTED}=true", "limit": str(PAGE)}
        by_namespace: dict[str, list[Evicted]] = {}
        pause = Pause()
        for _ in range(PAGES):
            page = await self._page(query)
            for raw in page.items or ():
                for each in evictions_in(raw, self._cluster, self._start):
                    of = by_namespace.setdefault(each.namespace, [])
                    of.append(each)
                    if len(of) >= 2 * OF_A_NAMESPACE:
                        of[:] = _latest(OF_A_NAMESPACE, of)
                await pause.if_due()
            if not page.metadata.continue_:
                recorder.evictions_lacking = ""
                break
            query["continue"] = page.metadata.continue_
        else:
            recorder.evictions_lacking = f"of the time before the start, only {PAGE * PAGES} Events were read"
        latest = chain.from_iterable(_latest(OF_A_NAMESPACE, of) for of in by_namespace.values())
        await at_leisure(recorder.restore_evictions_steps(_latest(MOST, latest)))

    async def _page(self, query: dict[str, str]) -> _Page:
        body = b""
        try:
            async with self._client.get("/api/v1/events", query, read_timeout=TIMEOUT) as response:
                while chunk := await response.content.read(LARGEST + 1 - len(body)):
                    body += chunk
            if len(body) > LARGEST:
                raise CannotRead(f"{PAGE} Events have more than {LARGEST} bytes")
            if response.status != HTTPStatus.OK:
                raise CannotRead(f"the API server answers {response.status}: {said(body)[:200]}")
            return _page_decoder.decode(body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise CannotRead(f"the API server cannot be reached: {type(error).__name__}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CannotRead(f"the API server's answer cannot be read: {error}") from error


def evictions_in(raw: msgspec.Raw, cluster: Cluster, before: float) -> Iterator[Evicted]:
    """Yields the evictions before a time that an Event tells of, in a queue that the namespace's pods may choose."""
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
