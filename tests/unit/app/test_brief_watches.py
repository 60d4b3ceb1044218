"""Something between us and the API server that fails, or ends a watch at once: how often we ask, and what is logged."""

import asyncio
import json

import pytest
from structlog.testing import capture_logs

from app.kube import reflector
from app.kube.client import KubeClient
from app.kube.reflector import BRIEF, LONGEST_WAIT, PATIENCE, Reflector
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.pods import PODS
from tests.unit.app.given import empty_store, kubeconfig, pod


class Proxy:
    """Answers a list with its ``items``, and a watch with what it ``brings``, after ``lasting`` so many seconds."""

    def __init__(self, *items):
        self.items = items
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
            body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": self.items}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()


@pytest.fixture
def follow(tmp_path):
    """The waits after so many connections of a reflector to a proxy."""

    def run(number, proxy, kind=PODS):
        async def scenario():
            server = await asyncio.start_server(proxy.answer, "127.0.0.1", 0)
            file = tmp_path / "kubeconfig"
            file.write_text(kubeconfig(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
            client = await KubeClient.connect(file)
            try:
                followed = Reflector(client, kind, empty_store())
                return [await followed.follow() for _ in range(number)]
            finally:
                await client.close()
                server.close()

        return asyncio.run(scenario())

    return run


@pytest.fixture
def any_watch_is_brief(monkeypatch):
    """However long this machine stands still while a watch is answered, it has ended at once."""
    monkeypatch.setattr(reflector, "BRIEF", 1e6)


def event(kind, version):
    item = pod("p")
    item["metadata"]["resourceVersion"] = version
    return {"type": kind, "object": item}


@pytest.mark.parametrize(
    "brings", [[], [event("MODIFIED", "1")], [event("BOOKMARK", "1")]], ids=["nothing", "what is known", "a bookmark"]
)
@pytest.mark.usefixtures("any_watch_is_brief")
def test_watches_that_end_at_once_become_rarer_and_then_lists_take_their_place(follow, brings):
    proxy = Proxy(pod("p"))
    proxy.brings = brings
    waits = follow(12, proxy)
    assert proxy.watches == 12
    for failures, wait in enumerate(waits):
        most = min(0.2 * 2**failures, LONGEST_WAIT)
        assert most / 2 <= wait <= most
    assert len({wait / min(0.2 * 2**failures, LONGEST_WAIT) for failures, wait in enumerate(waits)}) > 6  # jitter
    assert proxy.lists == 12 - PATIENCE


def test_a_watch_that_brought_something_new_or_lasted_is_asked_for_again_soon(follow, monkeypatch):
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


class Failing(Proxy):
    """Answers each request with the next status; a watch lasts until ``lasting_until`` says so."""

    def __init__(self, *statuses, lasting_until=lambda: True):
        super().__init__()
        self._statuses, self._lasting_until = iter(statuses), lasting_until

    async def answer(self, reader, writer):
        status = next(self._statuses)
        request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        writer.write(f"HTTP/1.1 {status} X\r\nConnection: close\r\n\r\n".encode())
        if status == 200 and b"watch=true" not in request:
            writer.write(json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode())
        await writer.drain()
        while status == 200 and b"watch=true" in request and not self._lasting_until():
            await asyncio.sleep(0.001)
        writer.close()


def said(logs):
    return [
        each["event"] if each["event"] == "watching again" else each["error"].strip()
        for each in logs
        if each["event"] in {"watch lost", "watching again"}
    ]


def test_a_lost_watch_is_logged_again_for_another_reason_or_after_it_has_lasted(follow, monkeypatch):
    monkeypatch.setattr(reflector, "BRIEF", 0.01)
    with capture_logs() as logs:
        proxy = Failing(
            503, 503, 503, 500, 500, 200, 200, 500, 500, 500, lasting_until=lambda: "watching again" in said(logs)
        )
        follow(8, proxy)
    assert said(logs) == ["503", "500", "watching again", "500"]


@pytest.mark.usefixtures("any_watch_is_brief")
def test_a_watch_that_ends_at_once_does_not_count_as_back(follow):
    with capture_logs() as logs:
        follow(5, Proxy())
    assert said(logs) == ["Brief"]


def test_the_loss_of_a_kind_that_was_not_installed_meanwhile_is_logged_again(follow):
    with capture_logs() as logs:
        follow(4, Failing(503, 503, 404, 404, 503), ELASTIC_QUOTAS)
    assert said(logs) == ["503", "503"]
