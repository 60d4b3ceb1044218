"""What stands in the status of queues, and when it is written."""

import asyncio

import pytest

from app.actuators.protocol import ActionFailed
from app.controllers import keyed_backoff, queue_status
from app.controllers.queue_status import QueueStatus, status_of
from tests.unit.app.given import Clock, look_once, node, pod, queue, see, store_with

IN_Q = {"scheduling.volcano.sh/queue-name": "q"}


def queued(name, **rest):
    return pod(name, metadata={"name": name, "namespace": "a", "uid": name, "annotations": IN_Q}, **rest)


class Recorded:
    """Notes what is written; fails as often as it is told to."""

    def __init__(self):
        self.writes = []
        self.failures = 0

    async def write_queue_status(self, name, status):
        if self.failures:
            self.failures -= 1
            raise ActionFailed("no")
        self.writes.append((name, status))


def status_in(store, name="q"):
    return status_of(store.cluster, name)


def test_used_is_on_nodes_and_allocated_is_admitted_too():
    store = store_with(node("n1", cpu=8, pods=10), queue("q"), queued("runs", nodeName="n1"), queued("comes"))
    store.cluster.grant(store.cluster.pods["comes"], store.clock())
    status = status_in(store)
    assert (status["used"]["cpu"], status["allocated"]["cpu"]) == ("1", "2")
    assert (status["used"]["pods"], status["allocated"]["pods"]) == ("1", "2")
    assert status["preempting"] == {}


def test_what_is_held_is_preempting_and_not_allocated():
    store = store_with(node("n1", cpu=8, pods=10), queue("q"), queued("waits"))
    reservation = {
        "apiVersion": "quotaward.dev/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "r"},
        "spec": {"reason": "Reclaim", "nodeName": "n1", "pod": {"namespace": "a", "name": "waits", "uid": "waits"}},
    }
    see(store, reservation)
    status = status_in(store)
    assert status["preempting"] == {"cpu": "1", "pods": "1"}
    assert status["allocated"]["cpu"] == "0"


def test_every_resource_that_the_queue_names_is_there_even_if_it_is_zero():
    bounds = {"capability": {"cpu": 4, "nvidia.com/gpu": 2}, "guarantee": {"resource": {"memory": "1Gi"}}}
    status = status_in(store_with(node("n1", cpu=8, memory="4Gi"), queue("q", **bounds)))
    for field in ("allocated", "used"):
        assert status[field] == {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}
    assert status["deserved"] == {"cpu": "0", "memory": "1Gi", "nvidia.com/gpu": "0"}


def test_conditions_of_one_type_are_one():
    store = store_with(node("n1", cpu=8), queue("q", capability={"cpu": 1}, guarantee={"resource": {"cpu": 2}}))
    see(store, queue("q", weight="x"))
    [condition] = status_in(store)["conditions"]
    assert (condition["type"], condition["status"]) == ("Invalid", "True")
    assert "spec.weight" in condition["message"]
    assert "guarantee exceeds capability" in condition["message"]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return store_with(node("n1", cpu=8, pods=10), queue("q", weight=0), queued("runs", nodeName="n1"), clock=clock)


def test_a_status_is_written_once_until_it_changes_and_again_after_a_while(store, clock):
    actuator = Recorded()
    status = QueueStatus(store, actuator)
    for _ in range(2):
        asyncio.run(look_once(status))
    [(name, written)] = actuator.writes
    assert name == "q"
    assert written["used"] == {"cpu": "1", "pods": "1"}
    assert written["conditions"][0]["type"] == "NotEnforced"

    see(store, queued("more", nodeName="n1"))
    asyncio.run(look_once(status))
    assert actuator.writes[1][1]["used"]["cpu"] == "2"
    assert actuator.writes[1][1]["conditions"] == written["conditions"]  # since the same time

    clock.now += queue_status.REFRESH + 1
    asyncio.run(look_once(status))
    assert len(actuator.writes) == 3


def test_a_write_that_fails_is_tried_again_a_little_later(store):
    actuator = Recorded()
    actuator.failures = 1
    status = QueueStatus(store, actuator)
    for _ in range(3):
        asyncio.run(look_once(status))
    assert actuator.writes == []
    store.clock.now += keyed_backoff.FIRST
    for _ in range(3):
        asyncio.run(look_once(status))
    assert len(actuator.writes) == 1


def test_after_a_write_that_failed_nobody_knows_what_stands_there(store):
    actuator = Recorded()
    status = QueueStatus(store, actuator)
    asyncio.run(look_once(status))
    actuator.failures = 1
    see(store, queued("more", nodeName="n1"))
    asyncio.run(look_once(status))
    store.cluster.delete_pod("more")
    store.clock.now += keyed_backoff.FIRST
    asyncio.run(look_once(status))
    assert [written["used"]["cpu"] for _, written in actuator.writes] == ["1", "1"]


def test_a_queue_that_was_made_anew_between_two_looks_has_no_status_yet(store):
    actuator = Recorded()
    status = QueueStatus(store, actuator)
    asyncio.run(look_once(status))
    see(store, queue("q", weight=0) | {"metadata": {"name": "q", "uid": "another"}})
    asyncio.run(look_once(status))
    assert len(actuator.writes) == 2


def test_nothing_is_written_of_a_queue_that_is_gone(store):
    actuator = Recorded()
    status = QueueStatus(store, actuator)
    store.cluster.delete_queue("q")
    asyncio.run(look_once(status))
    assert actuator.writes == []


def test_nothing_is_written_on_a_picture_that_is_not_complete(store):
    actuator = Recorded()
    store.feeds["pods"].synced = False
    asyncio.run(look_once(QueueStatus(store, actuator)))
    assert actuator.writes == []
