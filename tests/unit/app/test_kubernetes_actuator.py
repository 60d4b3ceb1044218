"""Writes that are sent off, and how many are under way at a time: nothing waits for what hangs elsewhere."""

import asyncio

import pytest

from app.actuators import kubernetes
from app.actuators.events import Event, Subject
from app.actuators.kubernetes import KubernetesActuator
from policy.objects.reservation import PodName

EVENT = Event(Subject("v1", "Pod", "a", "p", "uid"), "Said", "something")


class ApiServer:
    """Answers once it is told to."""

    def __init__(self):
        self.asked, self.answered = 0, 0
        self.paths = []
        self.answers = asyncio.Event()

    async def send(self, _method, path, *_request, **_more):
        self.asked += 1
        self.paths.append(path)
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


def test_whether_the_api_server_answers_is_asked_of_no_namespace():
    class Ill(ApiServer):
        async def send(self, method, path, *_request, **_more):
            self.paths.append((method, path))
            return 500, b""

    api = Ill()
    asyncio.run(KubernetesActuator(api).be_answered())
    assert api.paths == [("GET", "/livez")]


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


def test_evictions_that_hang_in_one_namespace_keep_none_elsewhere_waiting(monkeypatch):
    monkeypatch.setattr(kubernetes, "EVICTIONS_AT_ONCE", 5)
    monkeypatch.setattr(kubernetes, "IN_ONE_NAMESPACE", 3)

    async def scenario():
        api = ApiServer()
        actuator = KubernetesActuator(api)
        async with asyncio.TaskGroup() as group:
            for namespace in (*["hangs"] * 9, "other"):
                group.create_task(actuator.evict(PodName(namespace, "p", "uid")))
            for _ in range(20):
                await asyncio.sleep(0)
            under_way = [path.split("/")[4] for path in api.paths]
            api.answers.set()
        return under_way, api.answered

    assert asyncio.run(scenario()) == (["hangs"] * 3 + ["other"], 10)
