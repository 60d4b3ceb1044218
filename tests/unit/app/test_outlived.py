"""With ``runTime.evict`` pods go that outlive their run times, and nobody else. See docs/time.md."""

import asyncio

import pytest

from app.actuators.recording import RecordingActuator
from app.controllers.keyed_backoff import FIRST
from app.controllers.outlived import AT_A_LOOK, Outlived
from app.settings import RunTimeSettings
from app.store.budgets import BUDGETS
from tests.unit.app.given import Clock, made, namespace, node, pod, queue, quota, store_with

EPOCH = 1_767_225_600.0
STARTED = "2026-01-01T00:00:00Z"


def timed(item, **times):
    known = item["metadata"].setdefault("annotations", {})
    known.update({f"quotaward.dev/{key.replace('_', '-')}": time for key, time in times.items()})
    return item


def running(name="p", of="a", **fields):
    item = pod(name, of, metadata=fields.pop("metadata", {}), nodeName="n1", **fields)
    return item | {"status": {"startTime": STARTED, "phase": "Running"}}


def gone(seconds, *items, looks=1, bounds=None, **settings):
    """Who is gone so many seconds after all pods have started, and the Events on them."""
    clock = Clock(0.0)
    store = store_with(node(), *(bounds if bounds is not None else [quota("a", max={"cpu": 9})]), *items, clock=clock)
    store.cluster.epoch, clock.now = EPOCH, seconds
    before, actuator = {each.name for each in store.cluster.pods.values()}, RecordingActuator(store)
    controller = Outlived(store, actuator, RunTimeSettings(**{"evict": True} | settings))

    async def look():
        for _ in range(looks):
            async with asyncio.TaskGroup() as group:
                await controller.look(group)
            clock.now += 2 * FIRST

    asyncio.run(look())
    return before - {each.name for each in store.cluster.pods.values()}


@pytest.mark.parametrize(("seconds", "goes"), [(3600, False), (3659, False), (3661, True)])
def test_a_pod_goes_once_its_run_time_and_the_grace_are_over(seconds, goes):
    assert gone(seconds, timed(running(), run_time="1h")) == ({"p"} if goes else set())


def test_nobody_goes_unless_that_is_switched_on():
    assert gone(9999, timed(running(), run_time="1h"), evict=False) == set()


QUEUES = [namespace("a", **{"scheduling.volcano.sh/queue-name": "q"})]


@pytest.mark.parametrize(
    ("item", "bounds"),
    [
        (running(), [timed(quota("a"), max_run_time="1h")]),
        (running(), [timed(quota("a"), run_time="1h")]),
        (running(), [*QUEUES, timed(queue(), max_run_time="1h")]),
        (running(), [*QUEUES, timed(queue("top"), max_run_time="1h"), queue(parent="top")]),
        (timed(running(), run_time="9h"), [timed(quota("a"), max_run_time="1h")]),
        (timed(running(), run_time="soon"), [timed(quota("a"), max_run_time="1h")]),
        (timed(running(), run_time="1h"), [timed(quota("a"), run_time="9h")]),
    ],
)
def test_limits_and_defaults_count_as_well(item, bounds):
    assert gone(3661, item, bounds=bounds) == {"p"}
    assert gone(3659, item, bounds=bounds) == set()


@pytest.mark.parametrize(
    ("item", "bounds"),
    [
        (running(), None),
        (timed(running(), run_time="soon"), None),
        (timed(running(), run_time="soon"), [timed(quota("a"), run_time="1h")]),
        (timed(running(), run_time="9h"), [timed(quota("a"), run_time="1h")]),
        (running(activeDeadlineSeconds=60), None),
        (timed(running(), run_time="1h"), []),
        (timed(running(of="kube-system", priority=2_000_000_000), run_time="1h"), [quota("kube-system")]),
        (timed(pod("p", nodeName="n1"), run_time="1h"), None),
        (timed(running() | {"status": {"startTime": STARTED, "phase": "Succeeded"}}, run_time="1h"), None),
        (timed(running(metadata={"deletionTimestamp": "2099-01-01T00:00:00Z"}), run_time="1h"), None),
        (
            timed(running(metadata={"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}), run_time="1h"),
            None,
        ),
    ],
    ids=[
        *("nobody says", "unreadable", "unreadable, and a default", "it says more than the default", "a deadline"),
        *("not governed", "exempt", "not started", "finished", "terminating", "of a DaemonSet"),
    ],
)
def test_others_stay(item, bounds):
    assert gone(9999, item, bounds=bounds) == set()


def test_a_budget_holds_and_it_is_tried_again():
    budget = made(BUDGETS, "pdb", "a", spec={"selector": {}}, status={"disruptionsAllowed": 0})
    assert gone(9999, timed(running(), run_time="1h"), budget, looks=3) == set()
    budget["status"]["disruptionsAllowed"] = 1
    assert gone(9999, timed(running(), run_time="1h"), timed(running("q"), run_time="1h"), budget) in ({"p"}, {"q"})


def test_a_look_begins_some_evictions_and_the_next_the_others():
    pods = [timed(running(f"p{number}"), run_time="1h") for number in range(AT_A_LOOK + 5)]
    assert len(gone(9999, *pods)) == AT_A_LOOK
    assert len(gone(9999, *pods, looks=2)) == AT_A_LOOK + 5
