"""Asks a Prometheus, in the background, for the time before the start: amounts and waiting pods of queues and quotas.

One query is asked at a time, about one queue or quota, with a pause after it. Nobody waits for an
answer, and it fills in only figures that are recorded already, so that it takes no more memory.
"""

import asyncio
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import msgspec
import structlog

from app.history.answers import read_at_most
from app.history.recorder import DESERVED, EVICTED, MAX, MIN, QUOTA, USED, WAITING, Figure, Name, Recorder
from app.history.rows import MINUTES
from app.observability.quota_metrics import escaped
from app.observability.waiting_metrics import NAME
from app.store.store import TICK
from policy.cluster.cluster import Cluster

log = structlog.get_logger(__name__)

STEP = 5
"""Minutes between two values that are asked for."""
TIMEOUT = 10.0
"""Seconds that an answer may take."""
LARGEST = 2**20
"""Maximum number of bytes of an answer. A quota with eight resources has a third of that."""
REST = 0.1
"""Seconds between two questions."""
AGAIN = 60.0
"""Seconds after which a question that failed is asked again."""
ATTEMPTS = 10
"""Failures in a row after which nothing more is asked."""
BELOW = 50
"""Maximum number of queues whose waiting pods are summed up for a queue above them."""
METRIC = re.compile(r"quotaward_(?:elastic_quota|queue)_(\w+)")
FIGURES = {"used": USED, "allocated": USED, "min": MIN, "max": MAX, "deserved": DESERVED, "guarantee": MIN}


class CannotAsk(Exception):
    """Prometheus gave no answer that can be used; the text says why."""


class Sample(msgspec.Struct):
    """A series: its labels, and values with their times (seconds since the epoch)."""

    metric: dict[str, str]
    values: list[tuple[float, str]]


class Found(msgspec.Struct):
    """The result of a question."""

    result: list[Sample]


class Answer(msgspec.Struct):
    """An answer of Prometheus to a question over a range of time."""

    status: str
    data: Found | None = None
    error: str = ""


DECODER = msgspec.json.Decoder(Answer)


@dataclass(frozen=True, slots=True)
class Query:
    """``text`` is PromQL; ``figure`` is what its values are, None if the name and resource of each series say so."""

    text: str
    figure: Figure | None = None


class Restorer:
    """Fills in the time before the start. ``Recorder.lacking`` says why something is missing."""

    def __init__(self, recorder: Recorder, cluster: Cluster, url: str) -> None:
        """``url`` is that of Prometheus, without ``/api/v1``."""
        self._recorder = recorder
        self._cluster = cluster
        self._url = url.rstrip("/")
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]  # a password is told nobody
        self._shown = urlunsplit((parts.scheme, host, parts.path, "", ""))
        recorder.lacking = f"{self._shown} is being asked for the time before the start"

    async def run(self) -> None:
        """Asks about all that is recorded at the start, then waits for ever."""
        while not self._recorder.sampled:
            await asyncio.sleep(TICK)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session:
            await self._fill(session)
        await asyncio.Event().wait()

    async def _fill(self, session: aiohttp.ClientSession) -> None:
        end, failures = self._recorder.minute, 0
        for name in sorted(self._recorder.recorded):
            for query in queries(self._cluster, name):
                while True:
                    try:
                        self._take(name, query, await self._ask(session, query.text, end))
                    except CannotAsk as error:
                        failures += 1
                        self._recorder.lacking = f"the time before the start is not known: {error}"
                        log.warning("no history from before the start", error=str(error))
                        if failures >= ATTEMPTS:
                            return
                        await asyncio.sleep(AGAIN)
                        continue
                    failures = 0
                    break
                await asyncio.sleep(REST)
        self._recorder.lacking = ""

    async def _ask(self, session: aiohttp.ClientSession, text: str, end: int) -> list[Sample]:
        """Asks for the day before the minute ``end``. Raises CannotAsk."""
        asked = {"query": text, "start": str((end - MINUTES) * 60), "end": str(end * 60), "step": str(STEP * 60)}
        try:
            async with session.post(f"{self._url}/api/v1/query_range", data=asked, allow_redirects=False) as response:
                body = await read_at_most(response.content, LARGEST)
                if len(body) > LARGEST:
                    raise CannotAsk(f"{self._shown}: the answer is larger than {LARGEST} bytes")
                answer = DECODER.decode(body)
        except msgspec.MsgspecError:
            raise CannotAsk(f"{self._shown} does not answer as Prometheus does (status {response.status})") from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise CannotAsk(f"{self._shown}: {str(error) or type(error).__name__}") from error
        if answer.data is None:
            raise CannotAsk(f"{self._shown} answers {response.status}: {answer.error[:200]}")
        return answer.data.result

    def _take(self, name: Name, query: Query, samples: list[Sample]) -> None:
        for sample in samples:
            figure = query.figure or _figure_of(sample)
            if figure is None:
                continue
            scale = 1000 if figure[1] == "cpu" else 1  # Prometheus has cores
            try:
                numbers = [(int(at) // 60, float(text) * scale) for at, text in sample.values]
            except (ValueError, OverflowError) as error:
                raise CannotAsk(f"{self._shown}: {error}") from error
            values = {minute: round(number) for minute, number in numbers if math.isfinite(number)}
            self._recorder.restore(name, figure, values, STEP)


def queries(cluster: Cluster, name: Name) -> Iterator[Query]:
    """Yields what is asked about a queue or quota."""
    kind, own = name
    if kind == QUOTA:
        metrics, chosen = "quotaward_elastic_quota_(used|min|max)", f"namespace={_quoted(own)}"
        yield Query(f"sum(max by (queue) ({NAME}{{{chosen}}}))", (WAITING, ""))
    else:
        metrics, chosen = "quotaward_queue_(allocated|deserved|guarantee)", f"queue={_quoted(own)}"
        below = sorted(cluster.ledger.queues.tree.inside(own)) if own in cluster.queues else [own]
        if len(below) <= BELOW:
            inside = f"queue=~{_quoted('|'.join(re.escape(each) for each in below))}"
            yield Query(f"sum(max by (queue, namespace) ({NAME}{{{inside}}}))", (WAITING, ""))
            evicted = f"sum(increase(quotaward_queue_evictions_total{{{inside}}}[{STEP}m]))"
            yield Query(evicted, (EVICTED, ""))
    yield Query(f'max by (__name__, resource) ({{__name__=~"{metrics}",{chosen}}})')


def _quoted(text: str) -> str:
    return f'"{escaped(text)}"'


def _figure_of(sample: Sample) -> Figure | None:
    named = METRIC.fullmatch(sample.metric.get("__name__", ""))
    figure, resource = FIGURES.get(named[1]) if named else None, sample.metric.get("resource")
    return (figure, resource) if figure and resource else None
