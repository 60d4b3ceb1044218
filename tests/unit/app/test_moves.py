"""What is noted on pods that count in another queue than the one that they name, and what is told of them."""

import asyncio
from dataclasses import replace

import pytest

from app.actuators.protocol import ActionFailed
from app.controllers import keyed_backoff, moves
from app.controllers.moves import Moves
from tests.unit.app.given import Clock, look_once, namespace, node, pod, queue, see, store_with

OWN, ALLOWED = "scheduling.volcano.sh/queue-name", "quotaward.dev/allowed-queues"


class Recorded:
    """Notes what is written and told; the cluster sees it unless it is to be late. Fails as often as it is told to."""

    def __init__(self, store):
        self.store = store
        self.writes, self.events = [], []
        self.failures = 0
        self.late = False

    async def count_in(self, pod, queue):
        if self.failures:
            self.failures -= 1
            raise ActionFailed("no")
        self.writes.append((pod.name, queue))
        if not self.late:
            self.store.cluster.upsert_pod(replace(pod, counts_in=queue, version=pod.version + 1), self.store.clock())

    def report(self, event):
        self.events.append(event)


@pytest.fixture
def store():
    """Two pods run in queue from; queue to is full."""
    bounds = [queue("from"), queue("to", capability={"cpu": "0"}), namespace("a", **{OWN: "from", ALLOWED: "to"})]
    running = [pod(name, nodeName="n1") for name in ("p1", "p2")]
    return store_with(node("n1", cpu=8, pods=10), *bounds, *running, clock=Clock())


@pytest.fixture
def actuator(store):
    return Recorded(store)


def name_queue(store, queue, *names):
    for each in [each for each in store.cluster.pods.values() if each.name in names]:
        store.cluster.upsert_pod(replace(each, queue=queue, version=each.version + 1), store.clock())


def test_nothing_is_written_on_pods_that_count_where_they_say(store, actuator):
    asyncio.run(look_once(Moves(store, actuator)))
    assert actuator.writes == []


def test_the_queue_where_they_count_is_noted_once_until_they_have_moved(store, actuator):
    controller = Moves(store, actuator)
    name_queue(store, "to", "p1")
    for _ in range(2):
        asyncio.run(look_once(controller))
    assert actuator.writes == [("p1", "from")]
    see(store, queue("to"))
    for _ in store.cluster.divide_steps():
        pass
    store.cluster.tick(store.clock())
    for _ in range(2):
        asyncio.run(look_once(controller))
    assert actuator.writes == [("p1", "from"), ("p1", None)]
    assert store.cluster.ledger.queues.accounts["to"].taken["cpu"] == 1000


def test_what_is_not_seen_yet_is_not_written_again_and_what_was_lost_is(store, actuator):
    actuator.late = True
    controller = Moves(store, actuator)
    name_queue(store, "to", "p1")
    for _ in range(2):
        asyncio.run(look_once(controller))
    assert actuator.writes == [("p1", "from")]
    name_queue(store, "to", "p1")  # it has changed, and has no note
    asyncio.run(look_once(controller))
    assert actuator.writes == [("p1", "from")] * 2


def test_a_write_that_fails_is_tried_again_a_little_later(store, actuator):
    controller = Moves(store, actuator)
    actuator.failures = 1
    name_queue(store, "to", "p1")
    for _ in range(2):
        asyncio.run(look_once(controller))
    assert actuator.writes == []
    store.clock.now += keyed_backoff.FIRST
    asyncio.run(look_once(controller))
    assert actuator.writes == [("p1", "from")]


def test_a_pod_that_is_admitted_and_not_bound_yet_gets_its_note_once_it_is(store, actuator):
    controller = Moves(store, actuator)
    see(store, pod("new"))
    assert store.cluster.admit(store.cluster.pod("a", "new"), store.clock()) is None
    name_queue(store, "to", "new")
    asyncio.run(look_once(controller))
    assert actuator.writes == []
    store.cluster.upsert_pod(replace(store.cluster.pod("a", "new"), node="n1"), store.clock())
    asyncio.run(look_once(controller))
    assert actuator.writes == [("new", "from")]


def test_one_event_names_who_tried_and_where_it_counts(store, actuator):
    controller = Moves(store, actuator)
    name_queue(store, "to", "p1", "p2")
    for _ in range(3):
        asyncio.run(look_once(controller))
    [event] = actuator.events
    assert (event.reason, event.warning, event.subject.name) == ("Moved", True, "p1")
    assert event.message == (
        "a/p1 and 1 more pods of its namespace: queue to is named since the pod runs, and does not admit it; "
        "it counts in queue from, which admitted it"
    )
    for queue_named in ("from", "to"):
        name_queue(store, queue_named, "p1")
        asyncio.run(look_once(controller))
        asyncio.run(look_once(controller))
    assert len(actuator.events) == 1
    store.clock.now += moves.REPEAT + 1
    for queue_named in ("from", "to"):
        name_queue(store, queue_named, "p1")
        asyncio.run(look_once(controller))
        asyncio.run(look_once(controller))
    assert len(actuator.events) == 2


def test_a_note_that_is_found_after_a_restart_is_where_the_pod_counts(actuator):
    noted = {"conditions": [{"type": "quotaward.dev/CountsIn", "status": "True", "message": "from"}]}
    bounds = [queue("from"), queue("to", capability={"cpu": "0"}), namespace("a", **{OWN: "from", ALLOWED: "to"})]
    runs = pod("p1", metadata={"name": "p1", "annotations": {OWN: "to"}}, nodeName="n1")
    store = store_with(node("n1", cpu=8, pods=10), *bounds, runs | {"status": noted}, clock=Clock())
    actuator.store = store
    assert store.cluster.ledger.queues.accounts["from"].taken["cpu"] == 1000
    asyncio.run(look_once(Moves(store, actuator)))
    assert actuator.writes == []
