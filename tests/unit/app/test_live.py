"""Server-sent events: what changes while somebody looks on, and nothing otherwise."""

import asyncio
import http.client

import msgspec
import pytest

from app.readiness import Readiness
from app.serving.server import SHUTDOWN
from app.settings import Settings
from app.store.pods import PODS
from app.web import live as live_module
from app.web.live import FULL, Live
from app.web.notifier import Notifier
from app.web.routes import Web, _state_of
from policy.preemption import plan_text
from tests.cases.serving import serving
from tests.unit.app.given import node, pod, quota, see, store_with
from tests.unit.app.situations import situations


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(live_module, "INTERVAL", 0.001)
    monkeypatch.setattr(live_module, "CALM", 0.001)
    monkeypatch.setattr(live_module, "RESTRAINT", 0)
    monkeypatch.setattr("app.web.board.INTERVAL", 0.0)
    monkeypatch.setattr("app.web.board.RESTRAINT", 0)


def news(event):
    """What an event says, and the version that it makes."""
    fields = dict(line.split(b": ", 1) for line in event.strip().split(b"\n"))
    return msgspec.json.decode(fields[b"data"]), fields.get(b"id", b"").decode()


async def next_news(stream):
    async for event in stream:
        if b"data:" in event:
            return news(event)
    raise AssertionError("the stream has ended")


def test_a_change_of_a_quota_is_sent_as_the_html_of_its_card():
    async def story():
        store = store_with(node("n1"), quota("a", max={"cpu": 2}), quota("b", max={"cpu": 2}))
        web = Web.over(Readiness(store), Settings())
        await web.board.refresh()
        stream = web.live.page(web.board.version)
        assert await anext(stream) == live_module.REOPEN
        coming = asyncio.create_task(next_news(stream))
        await asyncio.sleep(0)
        see(store, pod("p", "b", nodeName="n1"))
        told, version = await coming
        assert version == web.board.version
        cards = [change["html"] for change in told["changed"] if change["row_of"] == "quotas"]
        assert len(cards) == 1
        assert "used <b>1</b>, max 2" in cards[0]
        await stream.aclose()

    asyncio.run(story())


def test_a_long_list_of_changes_is_sent_in_pieces_and_the_last_says_the_version():
    async def story():
        web = Web.over(Readiness(store_with(*(quota(f"team-{number:03}") for number in range(250)))), Settings())
        before = web.board.version
        stream = web.live.page(before)
        assert await anext(stream) == live_module.REOPEN
        pieces = [await next_news(stream) for _ in range(3)]
        assert [len(told["changed"]) for told, _ in pieces[:2]] == [100, 100]
        assert [bool(version) for _, version in pieces] == [False, False, True]
        await stream.aclose()

    asyncio.run(story())


def test_nobody_who_looks_means_no_work():
    async def story():
        web = Web.over(Readiness(store_with(quota("a"))), Settings())
        stream = web.live.page(web.board.version)
        await anext(stream)
        await next_news(stream)
        await stream.aclose()
        version = web.board.version
        await asyncio.sleep(0.02)
        assert web.board.version == version

    asyncio.run(story())


def test_one_more_than_may_look_on_is_told_so_until_a_place_is_free():
    async def story():
        web = Web.over(Readiness(store_with()), Settings())
        live = Live(web.board, Notifier(), lambda: False, watchers=1)
        first, second = live.page(""), live.page("")
        await anext(first)
        assert [event async for event in second] == [FULL]
        assert [event async for event in live.pod(lambda: "1", "1")] == [FULL]
        await first.aclose()
        third = live.page("")
        assert await anext(third) == live_module.REOPEN
        await third.aclose()

    asyncio.run(story())


def test_when_all_places_are_taken_who_has_the_most_makes_room_for_others():
    async def story():
        web = Web.over(Readiness(store_with()), Settings())
        live = Live(web.board, Notifier(), lambda: False, watchers=4)
        of_a = [live.pod(lambda: "1", "1", "a") for _ in range(4)]
        of_b = [live.pod(lambda: "1", "1", "b") for _ in range(3)]
        begun = [await anext(stream) for stream in (*of_a, *of_b)]
        assert begun == [live_module.REOPEN] * 6 + [FULL]
        assert [await anext(stream) for stream in of_a[:2]] == [FULL, FULL]
        for stream in (*of_a, *of_b):
            await stream.aclose()
        assert live._places == []

    asyncio.run(story())


def test_all_who_look_on_are_let_go_when_the_process_ends():
    async def story():
        readiness = Readiness(store_with())
        web = Web.over(readiness, Settings())
        streams = [web.live.page(web.board.version), web.live.pod(lambda: "1", "1")]
        for stream in streams:
            await anext(stream)
        readiness.stopping = True
        for stream in streams:
            assert len([event async for event in stream]) <= 1

    asyncio.run(story())


def test_the_page_of_a_pod_is_told_when_what_is_said_of_it_has_changed():
    async def story():
        said = iter(["refused", "refused", "admissible"])
        stream = Web.over(Readiness(store_with()), Settings()).live.pod(lambda: next(said, "admissible"), "refused")
        await anext(stream)
        told, _ = await next_news(stream)
        assert told["reload"]
        assert next(said, None) is None
        await stream.aclose()

    asyncio.run(story())


@pytest.mark.parametrize("name", situations())
def test_what_is_said_of_a_pod_is_the_same_as_long_as_nothing_changes(name):
    store, states, others = store_with(*situations()[name]), set(), []
    for _ in range(20):
        states.add(_state_of(store.cluster, "b", "p"))
        others.append(
            plan_text.for_pod_steps(store.cluster, store.cluster.pods["b/p"])
        )  # takes the place of what was forgotten
    assert len(states) == 1


def test_the_page_of_a_pod_that_room_is_made_for_changes_with_how_far_that_has_come():
    store = store_with(*situations()["victims"])
    before = _state_of(store.cluster, "b", "p")
    store.delete(PODS, "a/leaving-0")
    assert _state_of(store.cluster, "b", "p") != before


def test_a_page_that_is_open_holds_up_no_shutdown(tmp_path):
    (tmp_path / "manifests").mkdir()
    with serving("--manifests", str(tmp_path / "manifests"), log=tmp_path / "log") as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        connection.request("GET", "/live?since=nothing")
        answer = connection.getresponse()
        assert answer.readline() == live_module.REOPEN.splitlines(keepends=True)[0]
        running.process.terminate()
        assert running.process.wait(SHUTDOWN - 2) == 0
        connection.close()
