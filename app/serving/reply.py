"""Replies without waiting, and the handlers that give them: a connection passes the body and sends the reply.

For a request that the scheduler waits for, this takes a third of the time through ASGI: no task, events or messages.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

from starlette.types import Send

from app.problems import Problem

Headers = tuple[tuple[bytes, bytes], ...]


class Reply(NamedTuple):
    """A whole HTTP response; ``headers`` omit the length of the body."""

    status: int
    headers: Headers
    body: bytes

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Returns the reply for a problem."""
        headers = tuple((name.encode(), value.encode()) for name, value in problem.headers().items())
        return cls(problem.status, headers, problem.body())

    async def send(self, send: Send) -> None:
        """Sends the reply by ASGI."""
        headers = [*self.headers, (b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class AtOnce(Protocol):
    """Replies at once to POSTs whose body is not larger than ``limit`` bytes."""

    limit: int

    def reply(self, body: bytes) -> Reply:
        """Returns the reply to a request with this body. Raises nothing."""


WhoRepliesAtOnce = Callable[[bytes, float], AtOnce | None]
"""Returns the handler that replies at once to a path, for a client whose certificate is valid until then; else None."""


def nobody(_path: bytes, _client_valid_until: float) -> None:
    """Leaves all requests to ASGI."""
