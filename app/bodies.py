"""Limits of request bodies: their size, and what is decoded from them."""

from collections import Counter
from typing import Any

from starlette.types import Message, Receive

from app.observability import metrics
from app.problems import Problem

DISCARDED_AT_MOST = 8
"""Multiple of a body's limit that is read and discarded, so that the client sees the answer, before the cut."""
BYTES_PER_ITEM = 10
"""Bytes of a body's limit for each item (of a list or a map) that it may have. Manifests have one in some 20."""
WIDEST = 20_000
"""Maximum number of items of one object. A pod has about a hundred, a node with fifty images five hundred."""
DEEPEST = 64
"""Deepest nesting of lists and maps of one object. A pod's is ten."""
CLIENTS = 4
"""Clients that may send the maximum at the same time."""


class BodyMemory:
    """Bounds the memory for bodies of unauthenticated clients: for each client, and for all together."""

    def __init__(self, limit: int) -> None:
        """``limit``: of one body, in bytes."""
        self._each = limit * DISCARDED_AT_MOST
        self._most = self._each * CLIENTS
        self._taken: Counter[str] = Counter()

    async def read(self, client: str, receive: Receive, limit: int, setting: str) -> bytes:
        """Returns the whole body, like the function ``read``. Raises Problem (400, 413; 503 without room for it)."""
        taken = 0

        async def received() -> Message:
            nonlocal taken
            message = await receive()
            size = len(message.get("body", b""))
            taken += size
            self._taken[client] += size
            if self._taken[client] > self._each or self._taken.total() > self._most:
                raise Problem(503, "too many bodies are being read", retry_after=1)
            return message

        try:
            return await read(received, limit, setting)
        finally:
            self._taken[client] -= taken
            self._taken += Counter()  # forgets clients that have none


async def read(receive: Receive, limit: int, setting: str) -> bytes:
    """Returns the whole body. Raises Problem (413) if it exceeds the limit (bytes), which ``setting`` names.

    A body that is too large is read and discarded.
    """
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "the client went away")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        else:
            chunks.clear()
        if not message.get("more_body", False) or size > limit * DISCARDED_AT_MOST:
            break
    if size > limit:
        raise _refused("too-large", 413, f"the body is larger than {limit} bytes ({setting})")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def ensure_narrow(body: bytes, most: int, field: str | None = None) -> None:
    """Raises Problem (422) for JSON that may have more items than ``most``: decoding would take long.

    Also counts these characters within strings.
    """
    if body.count(b",") + body.count(b"[") + body.count(b"{") > most:
        raise _refused("too-wide", 422, f"has more than {most} items", field)


def ensure_shallow(document: Any, field: str) -> None:
    """Raises Problem (422) for an object whose lists and maps are nested too deeply."""
    level: list[Any] = [[document]]
    for _ in range(DEEPEST + 1):
        parts = (part for each in level for part in (each.values() if isinstance(each, dict) else each))
        level = [part for part in parts if isinstance(part, dict | list)]
        if not level:
            return
    raise too_deep(field)


def too_deep(field: str | None = None) -> Problem:
    """Returns the problem for lists and maps that are nested too deeply."""
    return _refused("too-deep", 422, f"is nested more than {DEEPEST} deep", field)


def _refused(reason: str, status: int, problem: str, field: str | None = None) -> Problem:
    metrics.BODIES_REFUSED.labels(reason).inc()
    return Problem(status, problem, field=field)
