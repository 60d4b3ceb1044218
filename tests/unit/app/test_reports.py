"""Events are sent off: nobody waits for them, also where a webhook of them hangs, and they are not piled up."""

import asyncio

import pytest

from app.actuators import kubernetes
from app.actuators.kubernetes import KubernetesActuator
from app.observability.events import Event, Subject

EVENT = Event(Subject("v1", "Pod", "a", "p", "uid"), "Said", "something")


class ApiServer:
    """Answers once it is told to."""

    def __init__(self):
        self.asked, self.answered = 0, 0
        self.answers = asyncio.Event()

    async def send(self, *_request, **_more):
        self.asked += 1
        await self.answers.wait()
        self.answered += 1
        return 201, b""


def reported(number, then):
    """So many events, and what the API server and the actuator are asked for after that."""

    async def scenario():
        api = ApiServer()
        actuator = KubernetesActuator(api)
        for _ in range(number):
            actuator.report(EVENT)
        await asyncio.sleep(0)
        await then(api, actuator)
        return api

    return asyncio.run(scenario())


async def nothing(_api, _actuator):
    pass


async def answer(api, actuator):
    api.answers.set()
    await actuator.finish()


async def give_up(_api, actuator):
    await actuator.finish()
    assert asyncio.all_tasks() == {asyncio.current_task()}  # or they would go on without a connection


def test_nobody_waits_for_an_event():
    api = reported(3, nothing)
    assert (api.asked, api.answered) == (3, 0)


def test_what_is_under_way_at_the_end_arrives():
    api = reported(3, answer)
    assert api.answered == 3


def test_what_does_not_arrive_soon_at_the_end_is_lost(monkeypatch):
    monkeypatch.setattr(kubernetes, "FINISHING", 0.01)
    monkeypatch.setattr(kubernetes, "REPORTS_AT_ONCE", 2)
    api = reported(3, give_up)
    assert (api.asked, api.answered) == (2, 0)


@pytest.mark.parametrize(("at_once", "at_most", "asked", "answered"), [(2, 9, 2, 5), (9, 4, 4, 4)])
def test_few_are_under_way_at_a_time_and_not_many_wait(monkeypatch, at_once, at_most, asked, answered):
    monkeypatch.setattr(kubernetes, "REPORTS_AT_ONCE", at_once)
    monkeypatch.setattr(kubernetes, "REPORTS_AT_MOST", at_most)
    assert reported(5, nothing).asked == asked
    assert reported(5, answer).answered == answered
