"""Verbs over HTTP: reads a bounded body, answers and counts it. A failure is answered with a problem document."""

import time
from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import Counter
from starlette.types import Receive, Scope, Send

from app import bodies
from app.extender.endpoints import Answer
from app.observability import metrics
from app.problems import Problem
from app.serving.reply import Reply

log = structlog.get_logger(__name__)

Answering = Callable[[bytes], Answer]
WaitedFor = Callable[[bytes], Awaitable[Answer]]

JSON = ((b"content-type", b"application/json"),)


class Verb:
    """A verb that is answered without waiting: directly (see app.serving.reply), or as an ASGI application."""

    def __init__(self, name: str, answer: Answering, limit: int) -> None:
        """``limit``: of a body, in bytes."""
        self.limit = limit
        self._answer = answer
        self._count = _Count(name)

    def reply(self, body: bytes) -> Reply:
        """Returns the reply to a request with this body."""
        started = time.perf_counter()
        try:
            result, content = self._answer(body)
        except Exception as error:  # noqa: BLE001 - it is logged
            return self._count.failed(error, started)
        self._count.answered(result, started)
        return Reply(200, JSON, content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        started = time.perf_counter()
        try:
            body = await _body(scope, receive, self.limit)
        except Problem as problem:
            reply = self._count.failed(problem, started)
        else:
            reply = self.reply(body)
        await reply.send(send)


class WaitingVerb:
    """A verb that awaits its answer, as an ASGI application."""

    def __init__(self, name: str, answer: WaitedFor, limit: int) -> None:
        """``limit``: of a body, in bytes."""
        self._limit = limit
        self._answer = answer
        self._count = _Count(name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        started = time.perf_counter()
        try:
            body = await _body(scope, receive, self._limit)
            started = time.perf_counter()
            result, content = await self._answer(body)
        except Exception as error:  # noqa: BLE001 - it is logged
            reply = self._count.failed(error, started)
        else:
            self._count.answered(result, started)
            reply = Reply(200, JSON, content)
        await reply.send(send)


class _Count:
    """Metrics of one verb, looked up once. Times are of ``time.perf_counter()``."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._duration = metrics.DURATION.labels(verb)
        self._last_request = metrics.LAST_REQUEST.labels(verb)
        self._requests: dict[str, Counter] = {}

    def answered(self, result: str, started: float) -> None:
        """Counts a request that was answered with this result."""
        requests = self._requests.get(result)
        if requests is None:
            requests = self._requests[result] = metrics.REQUESTS.labels(self._verb, result)
        requests.inc()
        self._duration.observe(time.perf_counter() - started)
        self._last_request.set_to_current_time()

    def failed(self, error: Exception, started: float) -> Reply:
        """Counts and logs a request that could not be answered, and returns the reply that says why."""
        self.answered("error", started)
        if not isinstance(error, Problem):
            log.error("request failed", verb=self._verb, exc_info=error)
            error = Problem(500, "an error of Quotaward's own; its log has the details")
        elif error.status != 503:  # noqa: PLR2004 - expected while the state is incomplete
            log.warning("bad request", verb=self._verb, status=error.status, field=error.field, problem=error.detail)
        reply = Reply.of(error)
        if error.status == 405:  # noqa: PLR2004
            return reply._replace(headers=(*reply.headers, (b"allow", b"POST")))
        return reply


async def _body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Returns the body of a request. Raises Problem."""
    if scope["method"] != "POST":
        raise Problem(405, "kube-scheduler's verbs are called by POST")
    return await bodies.read(receive, limit, "extender.bodyLimit")
