"""What stands in the status of a quota is true, is written when it is not there, and at no other time."""

import asyncio

import pytest

from app.actuators.protocol import ActionFailed
from app.controllers import keyed_backoff
from app.controllers.status import AGAIN, INTERVAL, Status
from app.store.elastic_quotas import ELASTIC_QUOTAS
from tests.unit.app.given import Clock, empty_store, look_once, pod, quota, see, store_with

RUNNING = pod("p", requests={"cpu": "500m"}, nodeName="n1")


class ApiServer:
    """An actuator that keeps what is written, and shows it to the store when the test says so; and notes events."""

    def __init__(self):
        self.quotas = {}
        self.written = []
        self.events = []
        self.failures = 0

    async def write_quota_status(self, namespace, name, status, _kind):
        if self.failures:
            self.failures -= 1
            raise ActionFailed("the API server answered 500")
        self.written.append((namespace, name))
        self.quotas[namespace, name] = self.quotas[namespace, name] | {"status": status}

    def report(self, event):
        self.events.append((event.subject.name, event.reason, event.warning))


class World:
    """A store, and the controller of the replica that leads."""

    def __init__(self, *items):
        self.clock = Clock()
        self.store = store_with(clock=self.clock)
        self.api = ApiServer()
        self.take_lead()
        self.see(*items)

    def take_lead(self):
        """Another replica leads, and remembers nothing."""
        self.status = Status(self.store, self.api)

    def see(self, *items):
        for item in items:
            if item["kind"] == "ElasticQuota":
                self.api.quotas[item["metadata"]["namespace"], item["metadata"]["name"]] = item
        see(self.store, *items)

    def show(self):
        """The watch shows what was written."""
        see(self.store, *self.api.quotas.values())

    def look(self):
        """Whose status is written now."""
        self.api.written.clear()
        asyncio.run(look_once(self.status))
        return [name for _, name in self.api.written]

    def stored(self, name="quota"):
        return self.api.quotas["a", name]["status"]

    def since(self, name):
        return {each["type"]: each["lastTransitionTime"] for each in self.stored(name)["conditions"]}


def older(**bounds):
    return quota("a", "older", created="2026-01-01T00:00:00Z", **bounds)


def younger(**bounds):
    return quota("a", "younger", created="2026-02-01T00:00:00Z", **bounds)


@pytest.fixture
def settled():
    """What a quota uses is written, and seen."""
    world = World(quota("a", max={"cpu": 4}), RUNNING)
    assert world.look() == ["quota"]
    world.show()
    assert world.look() == []
    return world


def test_what_is_used_of_what_the_quota_bounds_is_written(settled):
    assert settled.stored() == {"used": {"cpu": "500m", "pods": "1"}, "conditions": []}


@pytest.mark.parametrize("restarted", [False, True])
def test_what_is_there_is_not_written_again_however_long_it_lasts(settled, restarted):
    if restarted:
        settled.take_lead()
    for _ in range(5):
        settled.clock.now += AGAIN
        assert settled.look() == []


def test_what_has_changed_is_written_also_by_one_who_has_not_written_before(settled):
    settled.take_lead()
    settled.see(pod("q", nodeName="n1"))
    assert settled.look() == ["quota"]
    assert settled.stored()["used"] == {"cpu": "1500m", "pods": "2"}


def test_nothing_is_written_twice_while_the_watch_lags():
    world = World(quota("a", max={"cpu": 4}), RUNNING)
    assert [world.look() for _ in range(3)] == [["quota"], [], []]
    world.clock.now += AGAIN
    assert world.look() == ["quota"]  # in case it was lost


@pytest.mark.parametrize(
    "theirs",
    [
        {},
        None,
        "nonsense",
        {"used": {"cpu": "9"}, "conditions": []},
        {"used": {"cpu": "500m", "pods": "1"}, "conditions": [{"type": "Invalid", "status": "True"}]},
        {"used": {"cpu": "500m", "pods": "1"}, "conditions": ["nonsense"]},
        {"used": {"cpu": "500m", "pods": "1"}, "conditions": 5},
        {"used": {"cpu": "500m", "pods": "1"}, "conditions": [], "more": 1},
    ],
    ids=str,
)
def test_what_somebody_else_has_written_is_put_right_at_once(settled, theirs):
    settled.see(quota("a", max={"cpu": 4}) | {"status": theirs})
    assert settled.look() == ["quota"]
    settled.show()
    assert settled.look() == []


def test_that_no_condition_holds_need_not_be_said(settled):
    settled.see(quota("a", max={"cpu": 4}) | {"status": {"used": {"cpu": "500m", "pods": "1"}}})
    assert settled.look() == []


def test_what_comes_back_while_the_watch_lags_is_put_right(settled):
    settled.see(pod("q", nodeName="n1"))
    assert settled.look() == ["quota"]
    settled.see(pod("q", nodeName="n1") | {"status": {"phase": "Succeeded"}})
    assert settled.look() == []  # as far as is seen, it stands there
    settled.show()
    assert settled.look() == ["quota"]
    assert settled.stored()["used"] == {"cpu": "500m", "pods": "1"}


def test_a_quota_that_is_made_anew_gets_its_status(settled):
    settled.store.delete(ELASTIC_QUOTAS, ("a", "quota"))
    settled.look()
    settled.see(quota("a", max={"cpu": 4}))
    assert settled.look() == ["quota"]


def test_a_write_that_fails_is_tried_again_ever_more_seldom():
    world = World(quota("a", max={"cpu": 4}), RUNNING)
    tried = []
    world.api.failures = failures = 5
    while world.api.failures:
        assert world.look() == []
        tried.append(failures - world.api.failures)
        world.clock.now += INTERVAL
    assert tried == [1, *[2] * 2, *[3] * 4, *[4] * 8, 5]
    world.clock.now += keyed_backoff.LONGEST
    assert world.look() == ["quota"]


def test_nothing_is_written_on_a_picture_that_is_not_complete():
    world = World()
    world.store = empty_store()
    world.take_lead()
    world.see(quota("a"))
    assert world.look() == []


# Conditions


def test_a_condition_keeps_its_time_and_is_told_once():
    world = World(older(max={"cpu": 2}), younger(max={"cpu": 2}))
    world.look()
    [conflict] = world.stored("younger")["conditions"]
    assert (conflict["type"], conflict["status"], conflict["reason"]) == ("Conflict", "True", "OlderQuotaInForce")
    assert world.stored("older")["conditions"] == []
    world.see(pod("p", nodeName="n1"))
    world.look()
    world.show()
    world.look()
    assert world.api.events == [("younger", "OlderQuotaInForce", True)]


def test_a_condition_keeps_its_time_when_another_leads_and_is_not_told_again():
    world = World(quota("a", max={"cpu": 2}, min={"cpu": 3}))
    world.look()
    assert world.api.events == [("quota", "MinExceedsMax", True)]
    world.api.quotas["a", "quota"]["status"]["conditions"][0]["lastTransitionTime"] = "2026-03-04T05:06:07Z"
    world.show()
    world.take_lead()
    assert world.look() == []
    world.see(world.api.quotas["a", "quota"] | {"spec": {"max": {"cpu": 2}, "min": {"cpu": 3, "memory": 5}}}, RUNNING)
    assert world.look() == ["quota"]
    assert world.since("quota") == {"Invalid": "2026-03-04T05:06:07Z"}
    assert len(world.api.events) == 1


def test_a_condition_that_comes_back_has_a_new_time_and_is_told_again():
    world = World(older(max={"cpu": 2}), younger(max={"cpu": 2}))
    world.look()
    world.api.quotas["a", "younger"]["status"]["conditions"][0]["lastTransitionTime"] = "2026-03-04T05:06:07Z"
    world.show()
    world.take_lead()
    world.store.delete(ELASTIC_QUOTAS, ("a", "older"))
    del world.api.quotas["a", "older"]
    assert world.look() == ["younger"]
    assert world.stored("younger")["conditions"] == []
    world.show()
    world.look()
    world.see(older(max={"cpu": 2}))
    world.look()
    assert world.since("younger")["Conflict"] > "2026-03-04T05:06:07Z"
    assert world.api.events == [("younger", "OlderQuotaInForce", True)] * 2


@pytest.mark.parametrize(
    "conditions", [[{"type": "Invalid", "status": "False", "lastTransitionTime": "x"}], 5], ids=["another", "nonsense"]
)
def test_what_is_said_of_one_condition_is_not_taken_for_another(conditions):
    status = {"used": {}, "conditions": conditions}
    world = World(quota("a", max={"cpu": 2}, min={"cpu": 3}) | {"status": status})
    world.look()
    assert world.since("quota")["Invalid"] != "x"
    assert world.api.events == [("quota", "MinExceedsMax", True)]
