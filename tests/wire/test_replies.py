"""However a request comes, the verbs answer the same: at once where it comes as schedulers send it, else by ASGI."""

import signal
import socket

import pytest

from tests.controlplane.processes import wait_until
from tests.wire.cluster import NODES, pending
from tests.wire.raw import RawConnection, head
from tests.wire.recordings import recording

GOOD = recording("filter.node-names")
LENGTH = f"Content-Length: {len(GOOD.content)}"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD.content), GOOD.content)
PATH = "/extender/filter"

WAYS = {
    "as schedulers send it": (head(PATH, LENGTH) + GOOD.content,),
    "in pieces": (head(PATH, LENGTH)[:50], head(PATH, LENGTH)[50:], GOOD.content[:9], GOOD.content[9:]),
    "in chunks": (head(PATH, "Transfer-Encoding: chunked") + CHUNKED,),
    "with a query": (head(f"{PATH}?timeout=1s", LENGTH) + GOOD.content,),
    "with an escaped path": (head("/extender/%66ilter", LENGTH) + GOOD.content,),
}
CLOSING = {
    "of HTTP/1.0": head(PATH, LENGTH).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "asked to close": head(PATH, LENGTH, "Connection: close"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_good_call_is_answered_however_it_comes(server, way):
    with RawConnection(server.port) as connection:
        answer = connection.send(*WAYS[way])
    assert (answer.status, answer.json["NodeNames"]) == (200, ["n1", "n2"])
    assert {"content-type", "content-length", "date"} <= {name.lower() for name in answer.headers}


def listens(server):
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
    except OSError:
        return False
    return True


def test_what_is_waited_for_is_said_before_the_body_comes(server):
    with RawConnection(server.port) as connection:
        connection.start(head(PATH, LENGTH, "Expect: 100-continue"))
        assert connection.line() == b"HTTP/1.1 100 Continue\r\n"
        assert connection.line() == b"\r\n"
        assert connection.send(GOOD.content).status == 200


@pytest.mark.parametrize("way", CLOSING)
def test_a_connection_ends_with_the_answer_where_the_client_wants_that(server, way):
    with RawConnection(server.port) as connection:
        answer = connection.send(CLOSING[way] + GOOD.content)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert connection.line() == b""


def test_a_call_behind_one_that_is_waited_for_is_answered_after_it(server):
    slow = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
    with RawConnection(server.port) as connection:
        first = connection.send(slow + head(PATH, LENGTH) + GOOD.content)
        assert "openapi" in first.json
        assert connection.send().json["NodeNames"] == ["n1", "n2"]


def test_a_call_half_sent_at_a_stop_is_answered_and_ends_the_connection(serve):
    server = serve({"nodes": NODES, "pods": [pending("filter.node-names")]})
    with RawConnection(server.port) as connection:
        connection.start(head(PATH, LENGTH) + GOOD.content[:100])
        wait_until(lambda: server.get("/readyz").status == 200, "the beginning has arrived")
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not listens(server), "it stops", every=0.01)
        answer = connection.send(GOOD.content[100:])
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert connection.line() == b""
    assert server.process.wait(10) == 0
