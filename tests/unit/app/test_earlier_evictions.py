"""Evictions of the time before a start, as Events tell of them; and Events that somebody else has written."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import pytest

from app.actuators.events import MOST_CHARACTERS, Event, Subject, told
from app.actuators.kubernetes import KubernetesActuator
from app.history import earlier
from app.history.earlier import CannotRead, EarlierEvictions
from app.observability.evictions import MOST, Evicted, Figures
from policy.stepwise import at_once
from tests.unit.app.given import namespace, queue, quota
from tests.unit.app.test_history import START, Day
from tests.unit.app.test_page import Parsed

BEFORE = 60.0 * START
"""When the process starts, in seconds since the epoch."""


def evicted(name="gone", minutes=10.0, of="a", **more):
    figures = (Figures("cpu", 1000, used=3000, max=4000),)
    known = {"uid": f"uid-{name}", "queue": "team", "node": "n1", "reason": "reclaim", "for_whom": "b/owner"}
    known |= {"why": "Queue team uses more than it deserves", "figures": figures, **more}
    return Evicted(BEFORE - 60 * minutes, namespace=of, name=name, **known)


def event(*evictions, of="a", **marks):
    """An Event as the actuator writes it; ``marks`` are others of its metadata."""
    written = []

    class Api:
        async def send(self, _method, _path, body, *_more, **_options):
            written.append(body)
            return 201, b""

    async def write():
        actuator = KubernetesActuator(Api())
        actuator.report(Event(Subject("v1", "Pod", of, "gone", "uid"), "Reclaimed", "evicted", evicted=evictions))
        await actuator.finish()

    asyncio.run(write())
    return written[0] | {"metadata": written[0]["metadata"] | marks}


class Api:
    """Answers with pages of Events, then with nothing more; an exception is raised instead."""

    def __init__(self, *pages):
        self.pages, self.asked = list(pages), []

    @asynccontextmanager
    async def get(self, path, query, *, read_timeout):
        assert (path, read_timeout > 0) == ("/api/v1/events", True)
        self.asked.append(dict(query))
        page = self.pages.pop(0)
        if isinstance(page, Exception):
            raise page
        more = {"continue": str(len(self.pages))} if self.pages else {}
        body = page if isinstance(page, bytes) else json.dumps({"metadata": more, "items": page}).encode()
        yield Response(200 if b'"items"' in body else 403, body)


class Response:
    """An answer whose body is read in pieces."""

    def __init__(self, status, body):
        self.status, self.content, self._body = status, self, memoryview(body)

    async def read(self, size):
        size = min(size, 2**16)
        piece, self._body = self._body[:size], self._body[size:]
        return bytes(piece)


def started(*pages, day=None):
    """A process that has started and read these pages."""
    day = day or Day()
    day.record()
    reading = EarlierEvictions(day.store.cluster, Api(*pages))
    reading._start = BEFORE
    asyncio.run(reading.read(day.recorder))
    return day


def minutes_with_evictions(day, of="quota=a/quota", minutes=30):
    numbers = day.ask(f"{of}&since={minutes}m&step=1m")["items"][0]["evicted"]
    return {minutes - 1 - index: number for index, number in enumerate(numbers) if number}


def test_an_evicted_pod_has_its_page_after_a_restart():
    day = started([event(evicted())])
    document = day.client.get("/api/v1/pods/a/gone").json()["evicted"]
    assert (document["for"], document["node"]) == ("b/owner", "n1")
    assert document["numbers"] == {"cpu": {"request": "1", "used": "3", "max": "4"}}
    assert (
        "to make room for b/owner: Queue team uses more than it deserves"
        in Parsed(day.client.get("/pods/a/gone").text).words
    )


def test_evictions_count_in_their_minute_for_the_quota_and_all_queues_above():
    day = started([event(evicted()), event(evicted("q"), evicted("r"))], [event(evicted("s", minutes=20))])
    for of in ("quota=a/quota", "queue=team", "queue=company"):
        assert minutes_with_evictions(day, of) == {10: 3, 20: 1}
    document = day.ask("quota=a/quota")
    assert (document["evictionsSince"], document["since"]) == ("2027-01-15T07:40:00Z", "2027-01-15T08:00:00Z")
    assert "evictions since" in day.client.get("/quotas/a/quota").text
    day.record()
    assert minutes_with_evictions(day) == {10: 3, 20: 1}, "not once more, as new ones"


def test_evictions_of_this_process_come_on_top():
    day = Day()
    day.record()
    day.store.evictions.note(evicted("own", minutes=0))
    day = started([event(evicted("same-minute", minutes=-0.5)), event(evicted("first", minutes=3))], day=day)
    day.record()
    assert minutes_with_evictions(day) == {0: 1, 3: 1}
    assert [each.name for each in day.store.evictions] == ["own", "first"]


def test_what_a_prometheus_has_told_is_not_counted_twice():
    day = Day()
    day.record()
    day.recorder.restore(("queue", "team"), ("evicted", ""), {START - 10: 7}, 5)
    started([event(evicted())], day=day)
    assert minutes_with_evictions(day, "queue=team") == {10: 7}
    assert minutes_with_evictions(day) == {10: 1}
    day.recorder.restore(("queue", "company"), ("evicted", ""), {START - 8: 4}, 5)
    assert minutes_with_evictions(day, "queue=company") == {8: 4}


@pytest.mark.parametrize(
    "forged",
    [
        event(evicted(of="b")),
        event(evicted(minutes=-1)),
        event(evicted(), annotations={}),
        event(evicted(), annotations=None),
        event(evicted(), annotations={"quotaward.dev/evicted": "[" * 10_000}),
        event(evicted(), annotations={"quotaward.dev/evicted": '[{"at": "now"}]'}),
        event(evicted(why="x" * 5000)),
        event(evicted(figures=(Figures("cpu", -1),))),
        event(evicted(figures=(Figures("cpu", 1, used=10**40),))),
        {"metadata": []},
    ],
    ids=range(10),
)
def test_what_cannot_be_true_is_left_out(forged):
    day = started([forged, event(evicted("true"))])
    assert [each.name for each in day.store.evictions] == ["true"]


def test_a_tenant_can_invent_none_for_a_queue_that_is_not_its_own():
    day = Day(queue("theirs"), namespace("b"), quota("b"))
    started([event(evicted(queue="theirs"), evicted("in-none", queue=""))], day=day)
    assert {each.name: each.queue for each in day.store.evictions} == {"gone": "team", "in-none": ""}
    assert minutes_with_evictions(day, "queue=theirs") == {}


def test_one_namespace_does_not_crowd_out_the_others(monkeypatch):
    monkeypatch.setattr(earlier, "OF_A_NAMESPACE", 3)
    flood = [event(evicted(f"f{number}", minutes=number)) for number in range(1, 9)]
    day = started(flood[:4], [*flood[4:], event(evicted("first", minutes=99, of="b"), of="b")])
    assert [each.name for each in day.store.evictions] == ["f1", "f2", "f3", "first"]


def test_what_is_read_is_bounded_and_it_says_so(monkeypatch):
    monkeypatch.setattr(earlier, "PAGES", 2)
    day = started(*[[event(evicted(str(number)))] for number in range(4)])
    assert [each.name for each in day.store.evictions] == ["0", "1"]
    assert day.ask("")["incomplete"] == "of the time before the start, only 2 Events were read"


class Events:
    """Answers as the API server does: as many Events as are asked for, and where to go on."""

    def __init__(self, *events):
        self.events, self.asked = events, []

    @asynccontextmanager
    async def get(self, _path, query, *, read_timeout):
        assert read_timeout > 0
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        self.asked.append((start, limit))
        more = {"continue": str(start + limit)} if start + limit < len(self.events) else {}
        items, length = [], 0
        for each in self.events[start : start + limit]:
            items.append(each if isinstance(each, str) else json.dumps(each))
            length += len(items[-1])
            if length > 2 * earlier.LARGEST:  # of so much the rest is not read
                break
        text = f'{{"kind":"EventList","metadata":{json.dumps(more)},"items":[{",".join(items)}]}}'
        yield Response(200, text.encode())


def read_from(*events):
    day, api = Day(), Events(*events)
    day.record()
    reading = EarlierEvictions(day.store.cluster, api)
    reading._start = BEFORE
    asyncio.run(reading.read(day.recorder))
    return day, api


MANY = [event(evicted(str(number))) for number in range(120)]


@pytest.mark.parametrize("position", [0, 60, 119])
@pytest.mark.parametrize(
    "unreadable",
    [json.dumps({"message": "x" * 2**20}), '{"metadata":' + '{"a":' * 5000 + "1" + "}" * 5001],
    ids=["large", "deep"],
)
def test_an_event_that_is_too_large_hides_no_other(position, unreadable):
    day, api = read_from(*MANY[:position], unreadable, *MANY[position:])
    assert {each.name for each in day.store.evictions} == set(map(str, range(len(MANY))))
    assert day.ask("")["incomplete"] == "of the time before the start, Events too large to be read: 1"
    assert len(api.asked) < 20


def test_events_that_are_too_large_together_are_read_one_after_the_other():
    day, _ = read_from(*[event(evicted(str(number))) | {"message": "x" * 2**16} for number in range(100)])
    assert len(list(day.store.evictions)) == 100
    assert day.ask("")["incomplete"] == ""


def test_however_many_are_too_large_the_questions_are_bounded():
    day, api = read_from(*["{" + " " * 2**20 + "}"] * 500)
    assert len(api.asked) == earlier.PAGES
    assert "only 0 Events were read; Events too large to be read: " in day.ask("")["incomplete"]


def test_only_the_latest_are_remembered_and_a_later_one_of_the_name_counts():
    day = Day()
    day.store.evictions.note(evicted("later", minutes=0))
    day.store.evictions.remember([evicted("later", minutes=number) for number in range(1, MOST + 9)])
    assert len(list(day.store.evictions)) == MOST
    assert day.store.evictions.of("a", "later").at == BEFORE


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b'{"kind": "Status", "message": "events is forbidden"}', "answers 403: events is forbidden"),
        (b'{"items": [' + b" " * 2**20 + b"]}", "cannot be read"),
        (b'{"items": []}', "cannot be read"),
        (aiohttp.ClientConnectionError(), "cannot be reached: ClientConnectionError"),
    ],
    ids=["forbidden", "large", "strange", "gone"],
)
def test_if_events_cannot_be_read_it_says_so_and_tries_again(monkeypatch, answer, why):
    monkeypatch.setattr(earlier, "AGAIN", 0)
    with pytest.raises(CannotRead, match=why):
        started(answer)
    day = Day()
    day.record()
    reading = EarlierEvictions(day.store.cluster, Api(answer, answer, [event(evicted())]))
    reading._start = BEFORE

    async def read(until):
        running = asyncio.create_task(reading.run(day.recorder))
        while not until():
            assert not running.done()
            await asyncio.sleep(0)
        running.cancel()

    asyncio.run(read(lambda: day.store.evictions.of("a", "gone")))
    assert day.ask("")["incomplete"] == ""
    api = reading._client = Api(*[answer] * earlier.ATTEMPTS)
    asyncio.run(read(lambda: not api.pages))
    assert why in day.ask("")["incomplete"]


def test_an_event_tells_of_as_many_as_there_is_room_for():
    many = tuple(evicted(str(number)) for number in range(100))
    text = told(many)
    assert 10 < len(json.loads(text)) < 100
    assert len(text) <= MOST_CHARACTERS
    assert json.loads(told(many[:2]))[1]["name"] == "1"


def test_they_are_taken_over_in_small_steps():
    day = Day()
    day.record()
    many = [evicted(str(number)) for number in range(50)]
    steps = day.recorder.restore_evictions_steps(many)
    assert sum(1 for _ in steps) >= 50
    at_once(day.recorder.restore_evictions_steps([]))
