"""Listening sockets, and uvicorn on them."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from app.serving.connections import LINGER, Connection, Waiting
from app.serving.reply import WhoRepliesAtOnce, nobody
from app.settings import split_address

KEEP_ALIVE = 120
"""Seconds that an idle connection is kept: longer than kube-scheduler's 90, so that it never uses a closing one."""
SHUTDOWN = 10
"""Seconds for answers under way when the server stops."""
HANDSHAKE = 10.0
"""Seconds for a TLS handshake."""
BACKLOG = 1024


def listen(address: str) -> socket.socket:
    """Opens a listening socket. Done before anything else, so that an unusable address ends the start at once."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


class Server(uvicorn.Server):
    """Serves one application on one socket until stopped.

    It leaves signals to us: there may be several servers, and the background tasks stop after all of them.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        at_once: WhoRepliesAtOnce = nobody,
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=SHUTDOWN,
                lifespan="off",
                ws="none",
            )
        )
        self._listener = listener
        self._at_once = at_once
        self._context = context

    async def run_until_stopped(self) -> None:
        """Serves until ``should_exit`` is set, then until all requests so far are answered."""
        await self.serve(sockets=[self._listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens, with limits that uvicorn leaves at their defaults."""
        loop = asyncio.get_running_loop()
        waiting: Waiting = {}
        self.servers = [
            await loop.create_server(
                lambda: Connection(self.config, self.server_state, loop, waiting, self._at_once),
                sock=listener,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE if self._context else None,
                backlog=BACKLOG,
            )
            for listener in sockets or []
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answers requests with a note to close the connection, then stops listening."""
        if self.server_state.connections:
            for connection in list(self.server_state.connections):
                connection.shutdown()
            await asyncio.sleep(LINGER / 2)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles no signals."""
        yield
