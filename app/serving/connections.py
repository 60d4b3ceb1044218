"""Connections with limits of time and memory, whatever is sent on them.

uvicorn waits for a request as long as the client likes, and keeps what has arrived meanwhile. Its work for one request
also takes longer than our answer. So handlers that reply at once (see app.serving.reply) bypass it.
"""

import asyncio
import ssl

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from app.problems import Problem
from app.serving.reply import AtOnce, WhoRepliesAtOnce

HEAD_LIMIT = 64 * 2**10
"""Maximum number of bytes of a request's line and headers."""
REQUEST_TIME = 20.0
"""Seconds from the first byte of a request to its last; also for the client to read an answer."""
MOST = 1000
"""Maximum number of connections of one listener. One more ends the one that has waited for a request the longest."""
HEADERS = 128
"""Maximum number of headers of a request, trailers included."""
PIPELINED = 16
"""Maximum number of requests that may arrive before the answer to an earlier one. Schedulers send none."""
LONGEST_LENGTH = 16
"""Maximum number of digits of the length of a body."""
LINGER = 0.5
"""Seconds that a connection stays open when the server stops, for a request that was just sent."""

TOO_LARGE = "The head of the request is too large."

Waiting = dict["Connection", None]
"""Connections of a listener that wait for a request or the rest of one, the longest waiting first."""


class TooMany(Exception):
    """Too many headers or pipelined requests. The parser treats it as invalid HTTP."""


class Connection(HttpToolsProtocol):
    """One connection. The state of each request's scope has the end of the client certificate's validity."""

    def __init__(
        self,
        config: Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
        waiting: Waiting,
        at_once: WhoRepliesAtOnce,
    ) -> None:
        super().__init__(config, state, {"client_valid_until": 0.0}, loop)
        self._waiting = waiting
        self._who_replies = at_once
        self._asked: AtOnce | None = None
        self._body: list[bytes] = []  # of a request that it answers
        self._replied = False  # at once to a request in this data: only to one, so that others get their turn
        self._head = 0  # bytes of a head in earlier pieces of data
        self._in_head = False
        self._partial = False
        self._ending = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Registers the connection, and closes another if there are too many."""
        super().connection_made(transport)
        self.app_state["client_valid_until"] = valid_until(transport.get_extra_info("peercert"))
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self._waiting[self] = None
        if len(self.connections) > MOST:
            next(iter(self._waiting)).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops all timers."""
        self._waiting.pop(self, None)
        self._stop_clock()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def abort(self) -> None:
        """Closes the connection at once, without an answer."""
        self._waiting.pop(self, None)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Reads data. A request that is not complete gets a limit of time and size."""
        self._replied = False
        self._partial = True  # until a message is complete; blank lines are no request, but not idle either
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._partial:
            if not self.flow.write_paused:  # else the time to read an answer is running
                self._stop_clock()
        else:
            if self._clock is None:
                self._start_clock()
            if self._in_head:
                self._head += len(data)
                if self._head > HEAD_LIMIT:  # the parser buffers an endless header
                    self.send_400_response(TOO_LARGE)

    def on_message_begin(self) -> None:
        """Notes that a request begins."""
        super().on_message_begin()
        self._partial = True
        self._head = 0
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes one more header. Raises TooMany."""
        if len(self.headers) >= HEADERS:
            raise TooMany
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Passes the request on. Raises TooMany."""
        self._in_head = False
        if len(self.pipeline) >= PIPELINED:
            raise TooMany
        self._asked = self._who_replies(self.url, self.app_state["client_valid_until"])
        if self._asked is not None and self._is_plain(self._asked.limit):
            return
        self._asked = None
        super().on_headers_complete()
        if self._ending:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Takes a piece of the body of a request."""
        if self._asked is None:
            super().on_body(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Answers the complete request, or passes it on."""
        self._partial = False
        self._waiting.pop(self, None)
        if self._asked is None:
            super().on_message_complete()
            if self.cycle.response_complete:
                self._rest()  # it was answered before its end arrived
        else:
            self._reply(self._asked)

    def on_response_complete(self) -> None:
        """Waits for the next request after an answer, or for the client to read it."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_clock()  # time for the client to read the answer, which is kept until then
        elif not self.pipeline:
            self._waiting[self] = None

    def send_400_response(self, msg: str) -> None:
        """Answers that this is no HTTP, with a problem document, and closes the connection."""
        body = Problem(400, msg).body()
        lines = [STATUS_LINE[400], b"content-type: application/problem+json\r\n"]
        lines += [b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body), body]
        self.transport.write(b"".join(lines))
        self.transport.close()
        self._start_clock()

    def timeout_keep_alive_handler(self) -> None:
        """Closes a connection that was idle for too long."""
        super().timeout_keep_alive_handler()
        self._start_clock()

    def shutdown(self) -> None:
        """Closes the connection after the answer under way, or after one to a request that arrives soon."""
        self._ending = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        else:
            self.loop.call_later(LINGER, self._end)

    def pause_writing(self) -> None:
        """Starts the time limit for a client that does not read its answer."""
        super().pause_writing()
        self._start_clock()

    def resume_writing(self) -> None:
        """Ends the time limit once the client reads. If another request has begun meanwhile, its limit runs on."""
        super().resume_writing()
        if not self._partial:
            self._stop_clock()

    def _is_plain(self, limit: int) -> bool:
        """Whether a request is as schedulers send it, nothing is under way, and its body has at most ``limit`` bytes.

        The speed of all other requests does not matter.
        """
        parser = self.parser
        if parser.get_method() != b"POST" or parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return False
        if self.expect_100_continue or parser.should_upgrade():
            return False
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way or self._replied or self._ending or self.flow.write_paused:
            return False
        length = next((value for name, value in self.headers if name == b"content-length"), b"")
        return len(length) <= LONGEST_LENGTH and length.isdigit() and int(length) <= limit

    def _reply(self, asked: AtOnce) -> None:
        self._replied = True
        body, self._body = self._body, []
        reply = asked.reply(body[0] if len(body) == 1 else b"".join(body))
        headers = [*self.server_state.default_headers, *reply.headers]
        if self._ending and CLOSE_HEADER not in headers:
            headers.append(CLOSE_HEADER)
        lines = [b"%b: %b\r\n" % header for header in headers]
        lines += [b"content-length: %d\r\n\r\n" % len(reply.body), reply.body]
        self.transport.write(STATUS_LINE[reply.status] + b"".join(lines))
        if CLOSE_HEADER in headers:
            self.transport.close()
        self.on_response_complete()

    def _rest(self) -> None:
        """Marks the connection as idle: it gets the keep-alive time, and may be closed for another."""
        if not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
            self._waiting[self] = None

    def _end(self) -> None:
        if not self._partial and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()

    def _start_clock(self) -> None:
        """Starts the time limit for what the connection is doing now."""
        self._stop_clock()
        self._clock = self.loop.call_later(REQUEST_TIME, self.abort)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def valid_until(certificate: dict[str, object] | None) -> float:
    """Returns the end of a client certificate's validity, in seconds since the epoch; 0 if it showed none."""
    return float(ssl.cert_time_to_seconds(str(certificate["notAfter"]))) if certificate else 0.0
