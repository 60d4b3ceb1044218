"""What limits a connection in time, on real sockets: with shorter limits, and buffers that are soon full."""

import asyncio
import contextlib
import socket

import pytest
import uvloop
from starlette.responses import Response
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.serving import connections, server
from app.serving.reply import Reply, nobody

ASK = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
BEYOND_BUFFERS = 2**17
WITHIN_BUFFERS = 2**15
"""Bytes of an answer: more than are taken before it is said that nobody reads; less, but too many for the sockets."""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(connections, "REQUEST_TIME", 0.3)
    monkeypatch.setattr(server, "KEEP_ALIVE", 0.3)


@contextlib.asynccontextmanager
async def serving(answer, at_once=nobody):
    """A server that gives this answer at once, whatever of the request has come; a client, and who is connected."""
    listener = server.listen("127.0.0.1:0")
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    running = server.Server(answer, listener, at_once)
    task = asyncio.create_task(running.run_until_stopped())
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(listener.getsockname())
        client.settimeout(0)
        await until(lambda: running.server_state.connections)
        yield client, running.server_state.connections
    running.should_exit = True
    await task


async def until(holds):
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.01)


async def unread(client, there):
    """The connection of a client that has asked, once the answer waits for it to read."""
    client.send(ASK)
    [connection] = there
    await until(lambda: connection.flow.write_paused)
    return connection


OF_UVICORN = [
    "_unset_keepalive_if_required",
    "app_state",
    "connections",
    "cycle",
    "expect_100_continue",
    "flow",
    "headers",
    "loop",
    "on_body",
    "on_header",
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
    "on_response_complete",
    "parser",
    "pipeline",
    "send_400_response",
    "server_state",
    "timeout_keep_alive",
    "timeout_keep_alive_handler",
    "timeout_keep_alive_task",
    "transport",
    "url",
]
"""What a connection uses of uvicorn's own, which promises none of it: why its version has an upper bound."""


def test_what_a_connection_uses_of_uvicorn_is_there():
    async def scenario():
        config = Config(Response(), ws="none")
        protocol = HttpToolsProtocol(config, ServerState(), {}, asyncio.get_running_loop())
        protocol.on_message_begin()
        assert [name for name in OF_UVICORN if not hasattr(protocol, name)] == []

    uvloop.run(scenario())


def test_who_asks_on_and_does_not_read_has_no_more_time_for_that():
    async def scenario():
        async with serving(Response(bytes(BEYOND_BUFFERS))) as (client, there):
            await unread(client, there)
            client.send(ASK)
            await until(lambda: not there)

    uvloop.run(scenario())


def test_who_reads_at_last_has_no_more_time_for_a_request_that_was_begun_meanwhile():
    async def scenario():
        async with serving(Response(bytes(BEYOND_BUFFERS))) as (client, there):
            connection = await unread(client, there)
            client.send(ASK[:10])
            while connection.flow.write_paused:
                await asyncio.get_running_loop().sock_recv(client, 4096)
            assert there
            await until(lambda: not there)

    uvloop.run(scenario())


def test_a_client_answered_before_its_request_ended_is_kept_no_longer_than_others():
    async def scenario():
        async with serving(Response(status_code=404)) as (client, there):
            client.send(b"POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
            assert (await asyncio.get_running_loop().sock_recv(client, 100)).startswith(b"HTTP/1.1 404")
            client.send(b"{}")
            await until(lambda: not there)

    uvloop.run(scenario())


@pytest.mark.parametrize(
    ("headers", "after"),
    [({"connection": "close"}, b""), ({}, b""), ({}, b"no request")],
    ids=["it is the last", "nothing more is asked", "what is asked is no request"],
)
def test_a_client_that_reads_no_answer_gets_no_more_time_when_the_connection_ends(headers, after):
    async def scenario():
        async with serving(Response(bytes(WITHIN_BUFFERS), headers=headers)) as (client, there):
            client.send(ASK)
            [connection] = there
            await until(connection.transport.get_write_buffer_size)
            client.send(after)
            await until(connection.transport.is_closing)
            assert there
            await until(lambda: not there)

    uvloop.run(scenario())


def test_nor_has_who_is_replied_to_at_once_and_for_the_last_time():
    class Last:
        limit = 10

        def reply(self, _body):
            return Reply(503, (CLOSE_HEADER,), bytes(WITHIN_BUFFERS))

    async def scenario():
        async with serving(Response(), lambda *_: Last()) as (client, there):
            client.send(b"POST /verb HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
            [connection] = there
            await until(connection.transport.is_closing)
            assert there
            await until(lambda: not there)

    uvloop.run(scenario())
