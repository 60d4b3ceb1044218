"""With ``runTime.evict`` pods go that outlive their run times, and nobody else. See docs/time.md."""

import asyncio

import pytest

from app.actuators.protocol import Blocked
from app.actuators.recording import RecordingActuator
from app.controllers.outlived import AGAIN, AT_A_LOOK, AT_ONCE, IN_A_NAMESPACE, Outlived
from app.settings import RunTimeSettings
from app.store.budgets import BUDGETS
from app.store.heeded import PREEMPTIBLE
from policy.cluster.run_times import LOOK
from tests.unit.app.given import (
    Clock,
    look_once,
    made,
    namespace,
    node,
    pod,
    queue,
    quota,
    refused,
    reserve,
    see,
    store_with,
)

EPOCH = 1_767_225_600.0
STARTED = "2026-01-01T00:00:00Z"
QUEUES = [namespace("a", **{"scheduling.volcano.sh/queue-name": "q"})]


def timed(item, **times):
    known = item["metadata"].setdefault("annotations", {})
    known.update({f"quotaward.dev/{key.replace('_', '-')}": time for key, time in times.items()})
    return item


def running(name="p", of="a", **fields):
    item = pod(name, of, metadata=fields.pop("metadata", {}), nodeName="n1", **fields)
    return item | {"status": {"startTime": STARTED, "phase": "Running"}}


def gone(seconds, *items, looks=1, bounds=None, **settings):
    """Who is gone so many seconds after all pods have started."""
    return looked(seconds, *items, looks=looks, bounds=bounds, **settings)[0]


class Noting(RecordingActuator):
    """Notes the messages of Events."""

    def __init__(self, store):
        super().__init__(store)
        self.told = []

    def report(self, event):
        self.told.append(event.message)
        assert [each.name for each in event.evicted] == [event.subject.name], "to who starts later"


def looked(seconds, *items, looks=1, bounds=None, **settings):
    """Who is gone so many seconds after all pods have started, and the messages of Events on them."""
    clock = Clock(0.0)
    store = store_with(node(), *(bounds if bounds is not None else [quota("a", max={"cpu": 9})]), *items, clock=clock)
    store.cluster.epoch, clock.now = EPOCH, seconds
    before, actuator = {each.name for each in store.cluster.pods.values()}, Noting(store)
    controller = Outlived(store, actuator, RunTimeSettings(**{"evict": True} | settings))

    async def look():
        for _ in range(looks):
            async with asyncio.TaskGroup() as group:
                await controller.look(group)
            clock.now += 2 * AGAIN[0]

    asyncio.run(look())
    return before - {each.name for each in store.cluster.pods.values()}, actuator.told


@pytest.mark.parametrize(
    ("item", "bounds", "why"),
    [
        (timed(running(), run_time="1h"), [quota("a")], "than its run time"),
        (running(), [timed(quota("a"), run_time="1h")], "than ElasticQuota a/quota says (run-time)"),
        (running(), [*QUEUES, timed(queue(), run_time="1h")], "than Queue q says (run-time)"),
        (running(), [*QUEUES, timed(queue(), max_run_time="1h")], "than Queue q allows (max-run-time)"),
        (running(), [timed(quota("a"), max_run_time="1h")], "than ElasticQuota a/quota allows (max-run-time)"),
        (
            timed(running(), run_time="2h"),
            [timed(quota("a"), max_run_time="1h")],
            "than ElasticQuota a/quota allows (max-run-time)",
        ),
        (timed(running(), run_time="1h"), [timed(quota("a"), max_run_time="1h")], "than its run time"),
    ],
)
def test_the_event_says_whose_limit_it_was(item, bounds, why):
    assert looked(9999, item, bounds=bounds)[1] == [f"evicted: it has run for longer {why}"]


@pytest.mark.parametrize(("seconds", "goes"), [(3600, False), (3659, False), (3661, True)])
def test_a_pod_goes_once_its_run_time_and_the_grace_are_over(seconds, goes):
    assert gone(seconds, timed(running(), run_time="1h")) == ({"p"} if goes else set())


def test_nobody_goes_unless_that_is_switched_on():
    assert gone(9999, timed(running(), run_time="1h"), evict=False) == set()


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


def test_a_disruption_budget_holds_for_as_many_as_it_says():
    budget = made(BUDGETS, "pdb", "a", spec={"selector": {}}, status={"disruptionsAllowed": 0})
    assert gone(9999, timed(running(), run_time="1h"), budget, looks=3) == set()
    budget["status"]["disruptionsAllowed"] = 1
    assert gone(9999, timed(running(), run_time="1h"), timed(running("q"), run_time="1h"), budget) in ({"p"}, {"q"})


def outlived(number, namespace="a"):
    return [timed(running(f"p{each}", namespace), run_time="1h") for each in range(number)]


def test_a_look_begins_some_evictions_and_the_next_the_others():
    assert len(gone(9999, *outlived(IN_A_NAMESPACE + 5))) == IN_A_NAMESPACE
    assert len(gone(9999, *outlived(IN_A_NAMESPACE + 5), looks=2)) == IN_A_NAMESPACE + 5


def promised(number, *others, promise=1.0, api=RecordingActuator):
    """A look at so many pods whose node has a promised start, and at these others, with what notes the writes."""
    clock = Clock(0.0)
    bounds = [quota(name, max={"cpu": 9999}) for name in ("a", "free")]
    store = store_with(node(cpu="9999", pods="9999"), node("n2"), *bounds, *outlived(number), *others, clock=clock)
    see(store, refused(pod("big", "b", {"cpu": "9999"})), refused(pod("next", "b", {"cpu": "9999"})))
    for name, start in {"next": 0.0, "big": promise}.items():
        reserve(store, name, namespace="b", promised=start)
    store.cluster.epoch, clock.now = EPOCH, 9999.0
    actuator = api(store)
    asyncio.run(look_once(Outlived(store, actuator, RunTimeSettings(evict=True))))
    return {each.name for each in store.cluster.pods.values()}, actuator


@pytest.mark.parametrize(("promise", "stay"), [(1.0, 0), (0.0, 150 - IN_A_NAMESPACE)], ids=["promised", "reserved"])
def test_those_on_whose_end_a_promised_start_relies_all_go_at_the_first_look(promise, stay):
    left, _ = promised(150, promise=promise)
    assert len(left & {f"p{each}" for each in range(150)}) == stay


def test_those_on_whose_end_a_promised_start_relies_delay_no_other_namespace():
    left, _ = promised(2 * AT_A_LOOK, timed(running("other", "free") | {"spec": {"nodeName": "n2"}}, run_time="1h"))
    assert "other" not in left


def test_a_promised_start_relies_on_nobody_whom_a_budget_protects():
    budget = made(BUDGETS, "pdb", "a", spec={"selector": {}}, status={"disruptionsAllowed": 999})
    left, _ = promised(150, budget)
    assert len(left & {f"p{each}" for each in range(150)}) == 150 - IN_A_NAMESPACE


class Counting(RecordingActuator):
    """Counts the evictions that are under way at a time. Each takes a few turns of the event loop."""

    under_way = most = 0

    async def evict(self, name, grace=None):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        self.under_way -= 1
        await super().evict(name, grace)


def test_however_many_a_promised_start_relies_on_few_writes_are_under_way():
    left, actuator = promised(150, api=Counting)
    assert (left, actuator.most) == ({"big", "next"}, AT_ONCE)


def test_a_pod_that_may_not_be_evicted_stays_while_it_is_within_min():
    item = timed(running(metadata={"annotations": {PREEMPTIBLE: "false"}}), run_time="1h")
    assert gone(9999, item, bounds=[quota(min={"cpu": 9}, max={"cpu": 9})]) == set()
    assert gone(9999, item, bounds=[quota(min={"cpu": 0}, max={"cpu": 9})]) == {"p"}


class Barred(RecordingActuator):
    """Budgets bar all evictions outside ``free``, or they hang. ``asked``: of which pods evictions were asked."""

    def __init__(self, store, *, hang):
        super().__init__(store)
        self.hang, self.asked, self.under_way = hang, [], 0

    async def evict(self, name, grace=None):
        self.asked.append(f"{name.namespace}/{name.name}")
        if name.namespace != "free" and self.hang:
            await asyncio.Event().wait()
        if name.namespace != "free":
            raise Blocked("a budget")
        await super().evict(name, grace)


def barred(number, namespaces=("a",), looks=1, *, hang=False):
    """Looks at so many barred pods in each namespace, and one that may go."""
    names, clock = [*namespaces, "free"], Clock(0.0)
    pods = [each for name in namespaces for each in outlived(number, name)]
    bounds = [quota(name, max={"cpu": 9}) for name in names]
    store = store_with(node(), *bounds, *pods, *outlived(1, "free"), clock=clock)
    store.cluster.epoch, clock.now = EPOCH, 9999.0
    actuator = Barred(store, hang=hang)
    controller = Outlived(store, actuator, RunTimeSettings(evict=True))

    async def look():
        async with asyncio.TaskGroup() as group:
            for _ in range(looks):
                await controller.look(group)
                for _ in range(20):
                    await asyncio.sleep(0)
                clock.now += LOOK
            others = asyncio.all_tasks() - {asyncio.current_task()}
            actuator.under_way = len(others)
            for task in others:
                task.cancel()

    asyncio.run(look())
    return actuator


@pytest.mark.parametrize("number", [AT_A_LOOK + 50, 10 * AT_A_LOOK])
def test_pods_that_budgets_protect_do_not_delay_other_namespaces(number):
    assert "free/p0" in barred(number).asked


def test_namespaces_take_turns():
    names = [f"a{number}" for number in range(2 * AT_A_LOOK // IN_A_NAMESPACE)]
    assert "free/p0" not in barred(IN_A_NAMESPACE, names).asked
    assert "free/p0" in barred(IN_A_NAMESPACE, names, looks=3).asked


def test_those_that_have_not_failed_come_first():
    number = 3 * IN_A_NAMESPACE
    assert len({*barred(number, looks=3).asked}) == number + 1


def test_evictions_that_hang_count_against_their_namespace_at_each_look():
    assert barred(3 * IN_A_NAMESPACE, looks=3, hang=True).under_way == IN_A_NAMESPACE + 1  # and the free one


def test_a_blocked_eviction_is_not_tried_again_at_the_next_look():
    assert barred(1, looks=2).asked.count("a/p0") == 1
    assert barred(1, looks=4).asked.count("a/p0") == 2
