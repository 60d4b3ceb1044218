"""The controller of resource quotas: what it writes, in which order, and what it takes away again."""

import asyncio

import pytest

from app.actuators import resource_quotas
from app.actuators.protocol import ActionFailed, Blocked
from app.actuators.recording import RecordingActuator
from app.controllers.resource_quota import AGAIN, ResourceQuotas
from app.store.resource_quotas import RESOURCE_QUOTAS
from policy.cluster import quota_manager
from policy.cluster.cluster import Cluster
from policy.cluster.quota_manager import Limit
from policy.quota.admission import Rules
from tests.unit.app.given import Clock, complete, empty_store, look_once, namespace, node, pod, queue, see

QUEUE = "scheduling.volcano.sh/queue-name"


class Recorded(RecordingActuator):
    """Applies what is done to the store, and notes it; fails where it is told to."""

    def __init__(self, store):
        super().__init__(store)
        self.done = []
        self.failing = set()

    async def write_limit(self, namespace, hard, owners, seen):
        self._note("write", namespace, hard.get("requests.cpu"))
        await super().write_limit(namespace, hard, owners, seen)

    async def remove_limit(self, namespace, seen):
        self._note("remove", namespace)
        await super().remove_limit(namespace, seen)

    async def evict(self, victim):
        self._note("evict", victim.name)
        await super().evict(victim)

    def _note(self, *what):
        self.done.append(what)
        if what[0] in self.failing:
            raise Blocked("not now") if what[0] == "evict" else ActionFailed("no")


class World:
    """A store with the quota manager on, its controller, and a clock that moves on with each look."""

    def __init__(self, *items, enabled=True):
        self.clock = Clock()
        self.store = empty_store(self.clock)
        self.store.cluster = Cluster(Rules(quota_manager=enabled), settle_time=0)
        see(self.store, *items)
        complete(self.store)
        self.actuator = Recorded(self.store)
        self.controller = ResourceQuotas(self.store, self.actuator, enabled=enabled)

    def look(self, times=1):
        """What was done."""
        before = len(self.actuator.done)
        for _ in range(times):
            asyncio.run(look_once(self.controller))
            self.clock.now += 1
        return self.actuator.done[before:]


def resource_quota(namespace="a", name="quotaward", *, ours=True, **hard):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}"}
    metadata |= {"labels": {"quotaward.dev/managed": "true"}} if ours else {}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


GIVEN = (node("n1", cpu=4), queue("q"), namespace("a", **{QUEUE: "q"}))


def test_a_limit_is_written_once():
    world = World(*GIVEN)
    assert world.look() == [("write", "a", 4000)]
    assert world.look(3) == []


def test_a_limit_follows_the_nodes():
    world = World(*GIVEN)
    world.look()
    see(world.store, node("n2", cpu=2))
    assert world.look(2) == [("write", "a", 6000)]


def test_who_is_above_a_lowered_limit_goes_after_it_was_lowered():
    pods = [pod(name, nodeName="n1") for name in "pqr"]
    world = World(*GIVEN, *pods)
    world.look()
    see(world.store, node("n1", cpu=2))
    assert world.look() == [("write", "a", 2000), ("evict", "p")]
    assert world.look(3) == []
    assert len(world.store.cluster.pods) == 2


def test_nobody_goes_whose_limit_could_not_be_lowered():
    world = World(*GIVEN, *[pod(name, nodeName="n1") for name in "pqr"])
    world.look()
    world.actuator.failing.add("write")
    see(world.store, node("n1", cpu=2))
    assert world.look(3) == [("write", "a", 2000)]
    world.clock.now += AGAIN
    assert world.look(3) == [("write", "a", 2000)]
    world.clock.now += AGAIN
    assert world.look(2) == []  # ever more seldom
    world.actuator.failing.clear()
    world.clock.now += 2 * AGAIN
    assert world.look() == [("write", "a", 2000), ("evict", "p")]


def overtaken(by):
    """What is decided, as it is when something happens in the last pause."""

    def steps(*question):
        yield from quota_manager_steps(*question)
        by()
        yield

    quota_manager_steps = quota_manager.decide_steps
    return steps


@pytest.mark.parametrize(
    ("end", "done"),
    [
        ("others are gone", [("write", "a", 1000), ("evict", "p")]),
        ("one is on its way out", [("write", "a", 1000), ("evict", "q")]),
        ("stale", []),
    ],
)
def test_nobody_goes_who_need_not_any_more_when_all_is_decided(end, done, monkeypatch):
    world = World(*GIVEN, *[pod(name, nodeName="n1") for name in "pqr"])
    world.look()
    see(world.store, node("n1", cpu=1))

    def happens():
        if end == "others are gone":
            world.store.cluster.delete_pod("a/r")
        elif end == "stale":
            world.store.feeds["pods"].connected_at, world.clock.now = None, world.clock.now + 100
        else:
            leaving = {"name": "p", "namespace": "a", "uid": "a/p", "deletionTimestamp": "2026-11-01T00:00:00Z"}
            see(world.store, pod("p", metadata=leaving, nodeName="n1"))

    monkeypatch.setattr(quota_manager, "decide_steps", overtaken(happens))
    assert world.look() == done


def test_an_eviction_that_is_blocked_is_tried_again_after_a_while():
    world = World(*GIVEN, *[pod(name, nodeName="n1") for name in "pqr"])
    world.actuator.failing.add("evict")
    see(world.store, node("n1", cpu=2))
    assert [what for what, *_ in world.look(3)] == ["write", "evict"]
    world.clock.now += AGAIN
    assert world.look() == [("evict", "p")]


def test_a_hand_edit_is_put_back():
    world = World(*GIVEN)
    world.look()
    see(world.store, resource_quota(**{"requests.cpu": "3999m"}))
    assert world.look() == [("write", "a", 4000)]
    see(world.store, resource_quota(**{"requests.cpu": "4", "limits.cpu": "8"}))
    assert world.look() == [("write", "a", 4000)]


def test_a_limit_that_somebody_has_deleted_comes_back():
    world = World(*GIVEN)
    world.look()
    world.store.cluster.delete_limit("a")
    assert world.look() == [("write", "a", 4000)]


def test_what_is_not_ours_is_left_alone():
    world = World(*GIVEN, resource_quota(ours=False, **{"requests.cpu": "1"}))
    assert world.look(3) == []


def test_resource_quotas_of_other_names_are_nothing_to_us():
    world = World(*GIVEN, resource_quota(name="other", **{"requests.cpu": "1"}), resource_quota("b", "quota"))
    assert world.look(3) == [("write", "a", 4000)]


def test_a_queue_that_is_deleted_takes_its_limits_with_it():
    world = World(*GIVEN)
    world.look()
    world.store.cluster.delete_queue("q")
    assert world.look(2) == [("remove", "a")]


def test_with_the_option_off_earlier_limits_are_removed_and_none_is_written():
    world = World(*GIVEN, resource_quota(), resource_quota("b", ours=False), enabled=False)
    assert world.look(3) == [("remove", "a")]


def test_nothing_is_done_on_a_picture_that_is_not_complete():
    for enabled in (True, False):
        world = World(*GIVEN, resource_quota("b"), enabled=enabled)
        world.store.feeds["pods"].synced = False
        assert world.look() == []


def test_nobody_goes_while_bindings_of_an_earlier_process_may_arrive():
    world = World(*GIVEN, pod("p"))
    world.store.cluster.in_flight.suspect(world.clock())
    assert world.look() == []


@pytest.mark.parametrize("value", ["x", None, True, ["1"]])
def test_a_resource_quota_with_nonsense_in_it_stops_nothing(value):
    world = World(*GIVEN, resource_quota(**{"requests.cpu": value}))
    assert world.look() == [("write", "a", 4000)]


def test_a_new_one_belongs_to_its_queues():
    body = resource_quotas.to_create("a", {"requests.cpu": 1500, "pods": 3}, {"q": "uid-q"})
    assert body["metadata"]["name"] == "quotaward"
    assert body["spec"]["hard"] == {"pods": "3", "requests.cpu": "1500m"}
    [owner] = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Queue", "q", "uid-q")
    assert "controller" not in owner


def test_a_change_takes_out_what_is_no_longer_limited():
    seen = Limit("uid-a", {"requests.cpu": 1, "requests.x.io/gpu": 2}, ours=True)
    body = resource_quotas.to_change(seen, {"requests.cpu": 4000, "requests.memory": 2**30}, {})
    assert body["metadata"]["uid"] == "uid-a"
    assert body["spec"]["hard"] == {"requests.cpu": "4", "requests.memory": "1Gi", "requests.x.io/gpu": None}


def test_a_limit_belongs_to_a_queue_that_was_made_anew():
    world = World(*GIVEN)
    world.look()
    anew = queue("q")
    anew["metadata"]["uid"] = "another"
    see(world.store, anew)
    assert world.look(2) == [("write", "a", 4000)]
    assert world.store.cluster.limits["a"].owners == {"another"}


def test_a_limit_whose_deletion_was_missed_is_written_again():
    world = World(*GIVEN, resource_quota(**{"requests.cpu": "4", "pods": "0"}))
    world.look()
    world.store.keep_only(RESOURCE_QUOTAS, set())
    assert world.look() == [("write", "a", 4000)]
