"""Who asks for much waits himself: questions are answered in the turn of who asks them."""

import asyncio

import httpx
import pytest

from app import pause
from app.access.gate import Gate, User
from app.observability import metrics
from app.pause import Pause
from app.serving.seats import MOST, SEATS, Flow, Seats
from tests.unit.app.given import client_of, node, pod, store_with
from tests.unit.app.situations import cpus, group, member, situations

FLOODER, OTHER = "10.0.0.1", "10.0.0.2"
WHATIF = "/api/v1/whatif"


class Asking:
    """Those who have a seat, until they are told to leave it: each is named by asker and what is asked about."""

    def __init__(self):
        self.seats, self.seated, self._tasks = Seats(), [], {}

    async def ask(self, *names):
        for name in names:
            self._tasks.setdefault(name, []).append(asyncio.create_task(self._sit(name)))
        await turns(3)

    async def leave(self, name):
        """Who is seated by now that was not before."""
        before = list(self.seated)
        self.seated.remove(name)
        await turns(5)
        before.remove(name)
        return [each for each in self.seated if each not in before]

    async def go_away(self, name):
        self._tasks[name].pop().cancel()
        await turns(3)

    async def _sit(self, name):
        async with self.seats.seat(Flow(name[0], name[1:])):
            self.seated.append(name)
            while name in self.seated:
                await asyncio.sleep(0)


async def turns(number):
    for _ in range(number):
        await asyncio.sleep(0)


def test_one_asker_has_few_questions_at_a_time_and_one_about_each_namespace():
    async def story():
        asking = Asking()
        await asking.ask("a1", "a1", "a2", "a2", "a2", "a3", "a4", "b1")
        assert asking.seated == ["a1", "a2", "a3", "b1"]
        assert await asking.leave("b1") == []
        assert [await asking.leave("a2") for _ in range(2)] == [["a2"], ["a4"]]

    asyncio.run(story())


def test_askers_have_their_turns_however_much_one_of_them_asks():
    async def story():
        asking = Asking()
        await asking.ask("a1", "b1", "c1", "d1")
        await asking.ask("a2", "a3", "a4", "b2", "e1")
        assert [await asking.leave(name) for name in ("c1", "d1", "a1", "b1")] == [["a2"], ["b2"], ["e1"], ["a3"]]

    asyncio.run(story())


def test_who_goes_away_while_waiting_takes_nobodys_seat():
    async def story():
        asking = Asking()
        await asking.ask("a1", "a1", "a1")
        await asking.go_away("a1")
        assert await asking.leave("a1") == ["a1"]
        assert await asking.leave("a1") == []
        assert (asking.seats._lines, asking.seats._seated) == ({}, [])

    asyncio.run(story())


async def asked(app, asker, path, content=None):
    """The answer to a question from an address."""
    transport = httpx.ASGITransport(app, client=(asker, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://quotaward", timeout=None) as http:
        return await http.request("POST" if content else "GET", path, content=content)


def steps_of_the_other(monkeypatch, app):
    """In how many slices the other's explanation is answered."""
    slices = 0

    class Counted(Pause):
        async def if_due(self):
            nonlocal slices
            slices += 1
            return await super().if_due()

    monkeypatch.setattr(pause, "Pause", Counted)
    asyncio.run(asked(app, OTHER, "/api/v1/pods/b/p"))
    monkeypatch.setattr(pause, "Pause", Pause)
    return slices


def test_an_explanation_is_answered_while_another_asker_floods_with_endless_ones(monkeypatch):
    monkeypatch.setattr(pause, "SLICE", 0.0)
    app = client_of(store_with(*situations()["max"])).app
    app.state.trials._known = {}
    alone, steps = steps_of_the_other(monkeypatch, app), 0
    app.state.trials._known = {}

    def run_on(*_):
        nonlocal steps
        while True:
            steps += 1
            assert steps <= 100 * alone, "nobody else has their turn"
            yield

    async def story():
        nonlocal steps
        flood = [asyncio.create_task(asked(app, FLOODER, WHATIF, b"{}")) for _ in range(2 * MOST)]
        await turns(500)
        assert steps
        steps = 0
        answer = await asked(app, OTHER, "/api/v1/pods/b/p")
        refused = [task.result() for task in flood if task.done()]
        for task in flood:
            task.cancel()
        return answer, refused

    monkeypatch.setattr("app.whatif.service.run_on_steps", run_on)
    before = metrics.QUESTIONS_REFUSED._value.get()
    answer, refused = asyncio.run(story())
    assert answer.json()["searched"] == "complete"
    assert steps <= 2 * alone
    assert len(refused) == MOST
    assert {(each.status_code, each.headers["retry-after"]) for each in refused} == {(429, "1")}
    assert metrics.QUESTIONS_REFUSED._value.get() - before == MOST


def test_where_all_have_one_address_questions_about_something_else_are_answered_too(monkeypatch):
    monkeypatch.setattr(pause, "SLICE", 0.0)
    app = client_of(store_with(*situations()["max"])).app

    def run_on(*_):
        while True:
            yield

    async def story():
        flood = [asyncio.create_task(asked(app, FLOODER, WHATIF, b"{}")) for _ in range(2 * MOST)]
        await turns(500)
        answer = await asked(app, FLOODER, "/api/v1/pods/b/p")
        for task in flood:
            task.cancel()
        return answer.json()["searched"]

    monkeypatch.setattr("app.whatif.service.run_on_steps", run_on)
    assert asyncio.run(story()) == "complete"


def test_large_gangs_of_others_delay_an_explanation_by_no_more_than_its_own_work(monkeypatch):
    monkeypatch.setattr(pause, "SLICE", 0.0)
    gang = [group("b", 100), *(member(f"m{number}") for number in range(100))]
    app = client_of(store_with(*situations()["max"])).app
    body = httpx.Request("POST", "http://x", json={"apply": gang}).content

    async def story():
        flood = [asyncio.create_task(asked(app, FLOODER, WHATIF, body)) for _ in range(MOST)]
        await turns(500)
        assert metrics.QUESTIONS_WAITING._value.get() == MOST - 1
        answer = await asked(app, OTHER, "/api/v1/pods/b/p")
        answered = sum(task.done() for task in flood)
        for task in flood:
            task.cancel()
        return answer, answered

    answer, answered = asyncio.run(story())
    assert answer.json()["searched"] == "complete"
    assert answered <= 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/extender/filter"])
def test_health_metrics_and_the_scheduler_wait_behind_no_question(path, monkeypatch):
    app = client_of(store_with(node("n1", **cpus(4)))).app

    async def story():
        leave = asyncio.Event()

        async def never(_):
            await leave.wait()

        monkeypatch.setattr(app.state.trials, "what_if", never)
        flood = [asyncio.create_task(asked(app, f"10.0.1.{each}", WHATIF, b"{}")) for each in range(2 * SEATS)]
        await turns(500)
        assert metrics.QUESTIONS_UNDER_WAY._value.get() == SEATS
        body = httpx.Request("POST", "http://x", json={"Pod": pod("p"), "NodeNames": ["n1"]}).content
        answer = await asked(app, FLOODER, path, body if "filter" in path else None)
        for task in flood:
            task.cancel()
        return answer.status_code

    assert asyncio.run(story()) == 200


def test_a_body_that_is_slow_to_come_has_no_seat():
    app = client_of(store_with(node("n1"))).app

    async def story():
        async def slowly():
            yield b"{"
            await asyncio.Event().wait()

        slow = [asyncio.create_task(asked(app, f"10.0.1.{each}", WHATIF, slowly())) for each in range(2 * SEATS)]
        await turns(500)
        answer = await asked(app, OTHER, WHATIF, b"{}")
        for task in slow:
            task.cancel()
        return answer.status_code

    assert asyncio.run(story()) == 200


def test_an_answer_that_is_slow_to_be_read_has_no_seat():
    app = client_of(store_with(node("n1"))).app

    async def story():
        reading = asyncio.Event()

        async def read_slowly(_):
            reading.set()
            await asyncio.Event().wait()

        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [], "client": (OTHER, 1)}
        slow = asyncio.create_task(app(scope, asyncio.Event().wait, read_slowly))
        await reading.wait()
        answer = await asked(app, OTHER, "/")
        slow.cancel()
        return answer.status_code

    assert asyncio.run(asyncio.wait_for(story(), 60)) == 200


@pytest.mark.parametrize(
    ("user", "asker"),
    [
        ("alice", "alice"),
        ("system:serviceaccount:team-a:ci", "system:serviceaccount:team-a"),
        ("system:serviceaccount:team-a:other", "system:serviceaccount:team-a"),
    ],
)
def test_users_have_a_share_and_so_have_all_service_accounts_of_a_namespace(user, asker):
    class Reviews:
        async def user(self, _):
            return User(b"", {"username": user})

        async def may(self, *_):
            return True

    async def app(scope, *_):
        seen.append(scope["state"]["asker"])

    seen = []
    scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"authorization", b"Bearer x")]}
    asyncio.run(Gate(app, Reviews())(scope, None, None))
    assert seen == [asker]
