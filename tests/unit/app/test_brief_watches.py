"""Something between us and the API server that answers a watch and ends it at once: it is not asked all the time."""

import asyncio
import json

import pytest
import yaml

from app.kube import reflector
from app.kube.client import KubeClient
from app.kube.reflector import BRIEF, LONGEST_WAIT, PATIENCE, Reflector
from app.store.kinds import PODS
from tests.unit.app.given import empty_store, pod


class Proxy:
    """Answers a list with no pods, and a watch with what it ``brings``, after it has ``lasted`` for so many seconds."""

    def __init__(self):
        self.lists = self.watches = 0
        self.brings, self.lasting = [], 0.0

    async def answer(self, reader, writer):
        request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        if b"watch=true" in request:
            self.watches += 1
            await asyncio.sleep(self.lasting)
            body = b"".join(json.dumps(each).encode() + b"\n" for each in self.brings)
        else:
            self.lists += 1
            body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()


@pytest.fixture
def follow(tmp_path):
    """The waits after so many connections of a reflector of pods to a proxy."""

    def run(number, proxy):
        async def scenario():
            server = await asyncio.start_server(proxy.answer, "127.0.0.1", 0)
            config = {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [
                    {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}}
                ],
                "users": [{"name": "u", "user": {}}],
            }
            file = tmp_path / "kubeconfig"
            file.write_text(yaml.safe_dump(config))
            client = await KubeClient.connect(file)
            try:
                followed = Reflector(client, PODS, empty_store())
                return [await followed.follow() for _ in range(number)]
            finally:
                await client.close()
                server.close()

        return asyncio.run(scenario())

    return run


def event(kind, version):
    item = pod("p")
    item["metadata"]["resourceVersion"] = version
    return {"type": kind, "object": item}


@pytest.mark.parametrize(
    "brings", [[], [event("MODIFIED", "1")], [event("BOOKMARK", "1")]], ids=["nothing", "what is known", "a bookmark"]
)
def test_watches_that_end_at_once_are_asked_for_ever_more_seldom_and_in_the_end_lists_take_their_place(follow, brings):
    proxy = Proxy()
    proxy.brings = brings
    waits = follow(12, proxy)
    assert proxy.watches == 12
    for failures, wait in enumerate(waits):
        most = min(0.2 * 2**failures, LONGEST_WAIT)
        assert most / 2 <= wait <= most
    assert len({wait / min(0.2 * 2**failures, LONGEST_WAIT) for failures, wait in enumerate(waits)}) > 6  # jitter
    assert proxy.lists == 12 - PATIENCE


def test_a_watch_that_has_brought_something_new_or_has_lasted_is_asked_for_again_soon(follow, monkeypatch):
    versions = iter(range(2, 100))
    proxy = Proxy()

    async def answer(reader, writer):
        proxy.brings = [event("MODIFIED", str(next(versions)))]
        await Proxy.answer(proxy, reader, writer)

    proxy.answer = answer
    assert max(follow(8, proxy)) < BRIEF
    lasting = Proxy()
    monkeypatch.setattr(reflector, "BRIEF", 0.01)
    lasting.lasting = 0.05
    assert max(follow(8, lasting)) < BRIEF
