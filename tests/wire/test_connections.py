"""Connections that no scheduler makes: the next good call is answered all the same, and memory stays bounded."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.controlplane.processes import wait_until
from tests.wire.raw import RawConnection, head
from tests.wire.recordings import recording

MIB = 2**20
GOOD = recording("filter.node-names")
START = head("/extender/filter", f"Content-Length: {len(GOOD.content)}")


def goes_on(server, within=10):
    started = time.monotonic()
    answer = GOOD.send(server)
    assert (answer.status, answer.json["NodeNames"]) == (200, ["n1", "n2"]), server.log_tail()
    assert time.monotonic() - started < within


def memory(server):
    """Bytes of memory that the process has now."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * 4096


@contextlib.contextmanager
def connections(server, count, *sent):
    """Opens as many connections, and sends the beginning of something on each."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            made = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            with contextlib.suppress(OSError):
                for piece in sent:
                    made.sendall(piece)
            opened.append(made)
        yield opened


def is_closed(connection):
    """Whether the other side has ended the connection."""
    connection.settimeout(0)
    try:
        return connection.recv(65536, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /extender/filter HTTP/1.1\r\nHost: a\r\nX-Slow: ", START + GOOD.content[:100]],
    ids=["nothing", "half a head", "half a body"],
)
def test_of_thousands_of_connections_some_go_and_the_next_good_call_is_answered(server, sent):
    goes_on(server)
    before = memory(server)
    with connections(server, 1500, *([sent] if sent else [])) as opened:
        goes_on(server)
        assert memory(server) - before < 64 * MIB
        if not sent:
            wait_until(lambda: sum(map(is_closed, opened)) >= 400, "what is idle the longest makes room", 20)
    goes_on(server)


def test_a_request_that_does_not_come_to_an_end_is_given_up_after_a_while(server):
    began = time.monotonic()
    slow = [START[:40], START + GOOD.content[:100], b"\r\n"]
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connections(server, 1, sent))[0] for sent in slow]
        drips = threading.Event()

        def drip():
            while not drips.wait(1):
                with contextlib.suppress(OSError):
                    for connection, piece in zip(opened, (b"x", b" ", b"\r\n"), strict=True):
                        connection.sendall(piece)

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            wait_until(lambda: all(map(is_closed, opened)), "the connections are ended", 40)
        finally:
            drips.set()
            thread.join()
    assert time.monotonic() - began > 10, "a client on a bad line has some time"
    goes_on(server)


def test_an_answer_that_nobody_reads_does_not_fill_the_memory(server):
    before = memory(server)
    asks = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 2000
    with connections(server, 20) as opened:
        for connection in opened:
            connection.settimeout(0)
            with contextlib.suppress(OSError):
                connection.send(asks)
        goes_on(server)
        assert memory(server) - before < 64 * MIB


@pytest.mark.parametrize(
    "content",
    [
        b"POST /extender/filter HTTP/1.1\r\nHost: a\r\nX-Large: " + b"x" * 32 * MIB,
        b"POST /extender/filter HTTP/1.1\r\nHost: a\r\n" + b"X-Many: x\r\n" * 200 + b"\r\n",
        b"POST /" + b"x" * 32 * MIB,
    ],
    ids=["one header", "many headers", "the path"],
)
def test_a_head_without_end_is_turned_down(server, content):
    before = memory(server)
    with RawConnection(server.port) as connection:
        with contextlib.suppress(ConnectionError):  # the answer may be lost where so much is still on its way
            assert connection.send(content).status == 400
        assert memory(server) - before < 16 * MIB
    goes_on(server)


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5, 6",),
        ("Content-Length: +5",),
        ("Content-Length: 0x5",),
        ("Content-Length: -1",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Content-Length: 5\nTransfer-Encoding: chunked",),
        (" Content-Length: 5",),
        ("X: a\0b",),
    ],
    ids=repr,
)
def test_a_request_with_an_ambiguous_end_is_refused_and_nothing_after_it_is_read(server, lines):
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    with connections(server, 1, head("/extender/filter", *lines), b"0\r\n\r\n", smuggled) as [connection]:
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                received += piece
    assert b"HTTP/1.1 200" not in received
    assert received.count(b"HTTP/1.1 ") <= 1
    assert not received or received.startswith(b"HTTP/1.1 4")
    goes_on(server)


@pytest.mark.parametrize(
    "content",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://other.example/api/v1/none HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x00" * 1000,
        b"GET /%00%ff/../extender/filter HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /extender/filter HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    ],
    ids=lambda content: repr(content[:20]),
)
def test_what_is_no_request_of_ours_is_turned_down(server, content):
    with connections(server, 1, content) as [connection], contextlib.suppress(ConnectionError):
        assert connection.recv(65536)[:10] == b"HTTP/1.1 4"
    goes_on(server)


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x", ""])
def test_the_type_that_a_scheduler_says_does_not_matter(server, kind):
    assert server.call("POST", "/extender/filter", GOOD.content, {"Content-Type": kind}).status == 200


def test_requests_without_end_that_are_sent_together_are_not_all_answered(server):
    goes_on(server)
    before = answered(server)
    small = head("/extender/filter", "Content-Length: 2") + b"{}"
    with connections(server, 1, small * 1000) as [connection], contextlib.suppress(ConnectionError):
        while connection.recv(65536):
            pass
    assert answered(server) - before <= 50
    goes_on(server)


def answered(server):
    """How many requests of verbs were answered so far."""
    metrics = server.get("/metrics").content.decode().splitlines()
    return sum(float(line.split()[-1]) for line in metrics if line.startswith("quotaward_extender_requests_total"))


def test_requests_sent_together_are_answered_in_turn(server):
    request = START + GOOD.content
    with connections(server, 1, request * 10) as [connection]:
        received = b""
        while received.count(b"HTTP/1.1 200") < 10:
            piece = connection.recv(65536)
            assert piece
            received += piece
    assert b"HTTP/1.1 4" not in received
