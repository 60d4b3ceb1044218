"""Connections that take neither time nor memory without limit, whatever is sent on them.

uvicorn waits for a request as long as the client likes, and keeps what comes of it meanwhile. And what it does for one
takes longer than an answer of ours: who replies at once (see app.serving.reply) is asked without.
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
"""Bytes of a request's line and headers."""
REQUEST_TIME = 20.0
"""Seconds from the first byte of a request to its last, and that an answer may wait for its reader."""
MOST = 1000
"""Connections of one listener. For one more that goes which has waited for a request the longest."""
HEADERS = 128
"""Headers of a request, trailers included."""
PIPELINED = 16
"""Requests that may come before the answer to the one ahead of them. Schedulers send none."""
LONGEST_LENGTH = 16
"""Digits of the length of a body, at most."""
LINGER = 0.5
"""Seconds that a connection is kept when the server stops: for a request that was sent just then."""

TOO_LARGE = "The head of the request is too large."

Waiting = dict["Connection", None]
"""Connections of a listener that wait for a request, or for the rest of one, those first that have the longest."""


class TooMany(Exception):
    """More headers, or requests at once, than are taken. The parser takes it for no HTTP."""


class Connection(HttpToolsProtocol):
    """One connection. The certificate that its client showed is in the state of each request's scope."""

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
        self._body: list[bytes] = []  # of a request to it
        self._replied = False  # at once to a request in the data at hand; to one, so that others get their turn
        self._head = 0  # bytes of it in pieces of data that it did not end in
        self._in_head = False
        self._partial = False
        self._ending = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes its place, if need be that of another."""
        super().connection_made(transport)
        self.app_state["client_valid_until"] = valid_until(transport.get_extra_info("peercert"))
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self._waiting[self] = None
        if len(self.connections) > MOST:
            next(iter(self._waiting)).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leaves no timer behind."""
        self._waiting.pop(self, None)
        self._stop_clock()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def abort(self) -> None:
        """Ends at once, without a word."""
        self._waiting.pop(self, None)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Reads on. A request that is not complete gets a limit of time and size."""
        self._replied = False
        self._partial = True  # until a message is complete; blank lines between two are no request, but no rest either
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._partial:
            if not self.flow.write_paused:  # else the time to read an answer runs
                self._stop_clock()
        else:
            if self._clock is None:
                self._start_clock()
            if self._in_head:
                self._head += len(data)
                if self._head > HEAD_LIMIT:  # the parser keeps an endless header to itself
                    self.send_400_response(TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._partial = True
        self._head = 0
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more header. Raises TooMany."""
        if len(self.headers) >= HEADERS:
            raise TooMany
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request is handed on. Raises TooMany."""
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
        """A piece of the body of a request."""
        if self._asked is None:
            super().on_body(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """A request is complete."""
        self._partial = False
        self._waiting.pop(self, None)
        if self._asked is None:
            super().on_message_complete()
            if self.cycle.response_complete:
                self._rest()  # it was answered before it had come to its end
        else:
            self._reply(self._asked)

    def on_response_complete(self) -> None:
        """An answer was given."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_clock()  # to read the answer, as it is kept until then
        elif not self.pipeline:
            self._waiting[self] = None

    def send_400_response(self, msg: str) -> None:
        """Says that this is no HTTP, as a problem document, and ends the connection."""
        body = Problem(400, msg).body()
        lines = [STATUS_LINE[400], b"content-type: application/problem+json\r\n"]
        lines += [b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body), body]
        self.transport.write(b"".join(lines))
        self.transport.close()
        self._start_clock()

    def timeout_keep_alive_handler(self) -> None:
        """Nobody has asked for too long."""
        super().timeout_keep_alive_handler()
        self._start_clock()

    def shutdown(self) -> None:
        """Ends after the answer that is under way, or that to a request which comes before long."""
        self._ending = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        else:
            self.loop.call_later(LINGER, self._end)

    def pause_writing(self) -> None:
        """The client does not read what it asked for. It has some time to."""
        super().pause_writing()
        self._start_clock()

    def resume_writing(self) -> None:
        """It reads on. If it has begun to ask for something else meanwhile, the time for that runs."""
        super().resume_writing()
        if not self._partial:
            self._stop_clock()

    def _is_plain(self, limit: int) -> bool:
        """Whether a request is one as schedulers send them, nothing is under way, and its body has at most ``limit``.

        For all else it does not matter how long it takes.
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
        """Nothing is under way: it gets the time of one that is kept alive, and may have to make room."""
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
        """It has that long for what it is at now."""
        self._stop_clock()
        self._clock = self.loop.call_later(REQUEST_TIME, self.abort)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def valid_until(certificate: dict[str, object] | None) -> float:
    """Until when the certificate of a client is valid, in seconds since the epoch; 0 where it showed none."""
    return float(ssl.cert_time_to_seconds(str(certificate["notAfter"]))) if certificate else 0.0
