"""Something between us and the API server that answers in its place: the lead is lost by it, and nothing else."""

import asyncio
import json

import pytest
from kubernetes.aio.client import Configuration

from app.kube.client import KubeClient
from app.kube.lease import Lease
from app.settings import LeaderSettings


class Proxy:
    """Answers with ``nonsense``; where there is none, keeps a Lease as an API server does."""

    def __init__(self):
        self.nonsense = None
        self._lease = b'{"metadata": {"name": "quotaward"}}'

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        _, has_body, rest = head.partition("content-length: ")
        if has_body:
            body = await reader.readexactly(int(rest.split("\r\n")[0]))
            assert json.loads(body)
            self._lease = body
        body = self._lease if self.nonsense is None else self.nonsense
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()


@pytest.mark.parametrize("nonsense", [b"<html>", b"", b"null", b"[]", b"\xff", b'{"spec": 5}'], ids=repr)
def test_an_answer_that_is_no_lease_does_not_end_the_process(nonsense):
    async def scenario():
        proxy, configuration = Proxy(), Configuration()
        server = await asyncio.start_server(proxy.answer, "127.0.0.1", 0)
        configuration.host = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = KubeClient(configuration)
        lease = Lease(client, LeaderSettings.model_construct(lease_duration=0.3))
        leading = asyncio.create_task(lease.lead(asyncio.Event().wait))

        async def until(leads):
            async with asyncio.timeout(5):
                while lease.leads is not leads:
                    assert not leading.done(), leading.exception()
                    await asyncio.sleep(0.01)

        await until(leads=True)
        proxy.nonsense = nonsense
        await until(leads=False)
        proxy.nonsense = None
        await until(leads=True)
        leading.cancel()
        await asyncio.wait([leading])
        await client.close()
        server.close()

    asyncio.run(scenario())
