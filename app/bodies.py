"""Bodies of requests, which are limited."""

from starlette.types import Receive

from app.problems import Problem

DISCARDED_AT_MOST = 8
"""How many times the limit of a body is read away, so that the client sees the answer, before the line is cut."""


async def read(receive: Receive, limit: int) -> bytes:
    """The whole body. Raises Problem (413) for one beyond the limit (bytes); such a body is read away, not kept."""
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
        raise Problem(413, f"the body is larger than {limit} bytes")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
