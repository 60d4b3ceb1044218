"""Replies that need no waiting, and who gives them: a connection hands the body over and sends what it gets.

For a request that the scheduler waits for, that is a third of what the way through ASGI takes: no task, no events, no
messages.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

from starlette.types import Send

from app.problems import Problem

Headers = tuple[tuple[bytes, bytes], ...]


class Reply(NamedTuple):
    """A whole HTTP response; ``headers`` without the length of the body."""

    status: int
    headers: Headers
    body: bytes

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The reply that is an error."""
        headers = tuple((name.encode(), value.encode()) for name, value in problem.headers().items())
        return cls(problem.status, headers, problem.body())

    async def send(self, send: Send) -> None:
        """Sends it by ASGI."""
        headers = [*self.headers, (b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class AtOnce(Protocol):
    """Replies at once to POSTs whose body is not larger than ``limit`` bytes."""

    limit: int

    def reply(self, body: bytes) -> Reply:
        """The reply to a request with this body. Raises nothing."""


WhoRepliesAtOnce = Callable[[bytes, float], AtOnce | None]
"""Who replies at once to requests for a path, from a client whose certificate is valid until then; None: the others."""


def nobody(_path: bytes, _client_valid_until: float) -> None:
    """All is answered by ASGI."""
