"""Reserving over time, and from one leader to the next: what stands in reservations is all that there is to know."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from app.actuators.protocol import ActionFailed, AlreadyThere, Blocked
from app.actuators.recording import RecordingActuator
from app.controllers import promises
from app.controllers.reserve import AGAIN, GRACE, Reserve
from policy.objects.reservation import STARVING, PodName, Reservation
from policy.reserve import first_of_lines, node_reservation, starving
from policy.reserve.node_reservation import ReserveDecision
from policy.reserve.starving import Terms
from tests.unit.app.given import (
    Clock,
    cancel_at_the_write,
    client_of,
    look_once,
    node,
    pod,
    pod_group,
    refused,
    see,
    store_with,
)
from tests.unit.app.test_reserved_nodes import NO_ROOM
from tests.worlds.anatomy import sizes

EPOCH = 1_800_000_000.0
CREATED = {"creationTimestamp": "2027-01-15T08:00:00Z"}  # at EPOCH
LABELS = {"labels": {"scheduling.x-k8s.io/pod-group": "gang"}}
SIZE = {"cpu": "3", "memory": "3Gi", "pods": "10"}


class ApiServer(RecordingActuator):
    """Acts on the store; the writes named in ``failing`` fail, by name of the reservation."""

    def __init__(self, store):
        super().__init__(store)
        self.failing: set[str] = set()
        self.there: set[str] = set()
        self.failing_notes = self.blocked = False
        self.at_an_eviction = lambda: None
        self.asked = []
        self.notes_under_way = self.most_notes = 0
        self.events = []

    async def reserve(self, reservation):
        if reservation.name in self.failing:
            raise ActionFailed("the API server answered 500")
        if reservation.name in self.there:
            raise AlreadyThere("the API server answered 409")
        await super().reserve(reservation)

    async def note_progress(self, reservation):
        if self.failing_notes:
            raise ActionFailed("the API server answered 500")
        self.notes_under_way += 1
        self.most_notes = max(self.most_notes, self.notes_under_way)
        await asyncio.sleep(0)
        self.notes_under_way -= 1
        await super().note_progress(reservation)

    async def evict(self, name, grace=None):
        self.asked.append(name.name)
        self.at_an_eviction()
        if self.blocked:
            raise Blocked("a budget")
        await super().evict(name, grace)

    async def unreserve(self, name):
        if name in self.failing:
            raise ActionFailed("the API server answered 500")
        await super().unreserve(name)

    def report(self, event):
        self.events.append((event.subject.name, event.reason, event.message))


class World:
    """Two nodes of three cores, and a clock that begins when everything was created."""

    def __init__(self, *items, **terms):
        self.clock = Clock(0)
        self.terms = Terms(**{"starving_after": 100, "max_nodes_percent": 100} | terms)
        self.store = store_with(node("n1", **SIZE), node("n2", **SIZE), *items, clock=self.clock)
        self.api = ApiServer(self.store)
        self.take_lead()

    def take_lead(self):
        """Another replica leads, and remembers nothing."""
        self.reserve = Reserve(self.store, self.api, self.terms, epoch=lambda: EPOCH + self.clock.now)

    def passes(self, seconds=0.0):
        self.clock.now += seconds
        asyncio.run(look_once(self.reserve))

    @property
    def reserved(self):
        return {each.pod.name: each.node for each in self.store.cluster.reservations.reserved}

    @property
    def told(self):
        return [(name, reason) for name, reason, _ in self.api.events]


def waiting(name="big", cpu="3", **metadata):
    return refused(pod(name, requests={"cpu": cpu}, metadata=CREATED | metadata), NO_ROOM)


def group(minimum=2):
    return pod_group(minimum=minimum, **CREATED)


def gang(*names, minimum=2, cpu="3"):
    return [group(minimum), *(waiting(name, cpu, **LABELS) for name in names)]


def test_the_first_in_line_has_a_promise_at_once_and_is_told_nothing_else():
    started = {"status": {"phase": "Running", "startTime": "2027-01-15T08:00:00Z"}}
    ending = [pod("r1", requests={"cpu": "3"}, nodeName="n1", activeDeadlineSeconds=600) | started]
    endless = pod("r2", requests={"cpu": "3"}, nodeName="n2") | started
    world = World(*ending, endless, waiting(), waiting("next"), ahead=2)
    world.store.cluster.protection.pass_time(EPOCH)
    world.passes(5)
    assert world.reserved == {"big": "n1"}
    [own] = world.store.cluster.reservations.reserved
    assert own.promised_start == EPOCH + 630
    assert world.told == [("big", "NodesReserved"), ("big", "StartPromised")]
    world.passes(100)
    assert world.told[2:] == [("next", "NodesReserved")], "it starves"


def test_among_very_many_the_first_in_line_are_not_found_anew_in_each_look(monkeypatch):
    monkeypatch.setattr(first_of_lines, "PODS_A_SECOND", 0.1)
    found = []
    monkeypatch.setattr(first_of_lines, "line_of", lambda *_: found.append(1) or ("a", ""))
    world = World(waiting(), ahead=2)
    for seconds, expected in ((5, 1), (9, 1), (1, 2)):
        world.passes(seconds)
        assert len(found) == expected


def test_a_node_is_reserved_as_soon_as_the_pod_starves_and_its_pods_are_told():
    world = World(waiting())
    world.passes(100)
    assert world.reserved == {}
    world.passes(1)
    assert world.reserved == {"big": "n1"}
    assert world.api.events == [
        ("big", "NodesReserved", "reserved for a/big, which waits since 2027-01-15T08:00:00Z: n1")
    ]
    world.passes(60)
    assert len(world.api.events) == 1


def test_a_node_is_reserved_for_two_jobs_in_different_seconds():
    world = World(waiting("first", "1"), waiting("second", "1"))
    world.passes(101)
    assert world.reserved == {"first": "n1"}
    world.passes(1)
    assert world.reserved == {"first": "n1"}
    world.passes(0.1)
    assert world.reserved == {"first": "n1", "second": "n1"}


def test_who_was_reserved_a_node_a_second_ago_is_forgotten_when_nobody_waits():
    world = World(waiting())
    world.passes(101)
    assert "Reserve._made_at" in sizes(world.reserve)
    world.store.cluster.delete_pod("a/big")
    world.passes(1.1)
    assert "Reserve._made_at" not in sizes(world.reserve)


def test_a_node_is_reserved_after_those_that_are_there_also_by_a_slow_clock():
    world = World(waiting("first", "1"), waiting("second", "1"))
    name = PodName("a", "first", "a/first")
    earlier = Reservation("starving-a.first", name, "n1", (), EPOCH + 500, STARVING, job="pods/first")
    world.store.cluster.upsert_reservation(earlier)
    world.passes(101)
    assert world.reserved == {"first": "n1", "second": "n1"}
    assert world.store.cluster.reservations.reserved.of_pod("a/second").since == EPOCH + 501


@pytest.mark.parametrize("another_leads", [False, True])
def test_the_next_leader_keeps_to_the_same_nodes(another_leads):
    world = World(*gang("w1", "w2"))
    world.passes(101)
    before = list(world.store.cluster.reservations.reserved)
    see(world.store, pod("late", nodeName="n1"))
    if another_leads:
        world.take_lead()
    world.passes(60)
    assert list(world.store.cluster.reservations.reserved) == before
    assert world.reserved == {"w1": "n1", "w2": "n2"}


def test_if_one_member_cannot_be_recorded_nothing_is_reserved_until_all_can():
    world = World(*gang("w1", "w2"))
    world.api.failing = {"starving-a.w2"}
    world.passes(101)
    assert (world.reserved, world.told) == ({}, [])
    world.api.failing = set()
    world.passes(1)
    assert world.reserved == {"w1": "n1", "w2": "n2"}


def test_one_that_is_there_already_and_not_seen_yet_does_not_undo_the_others():
    world = World(*gang("w1", "w2"))
    world.api.there = {"starving-a.w2"}
    world.passes(101)
    assert world.reserved == {"w1": "n1"}
    world.passes(1)
    assert world.reserved == {"w1": "n1"}


@pytest.mark.parametrize("end", ["held", "gone", "not ready"])
def test_no_node_is_reserved_that_is_promised_or_gone_by_the_end_of_a_decision(end, monkeypatch):
    world, deciding = World(waiting()), node_reservation.decide_steps

    def is_overtaken(cluster, *question):
        decision = yield from deciding(cluster, *question)
        if end == "held":
            see(world.store, pod("other", "b"))
            cluster.upsert_reservation(
                Reservation("reclaim-b.other", PodName("b", "other", "b/other"), "n1", (), EPOCH)
            )
        elif end == "gone":
            cluster.delete_node("n1")
        else:
            cluster.upsert_node(replace(cluster.table.node("n1"), ready=False))
        return decision

    with monkeypatch.context() as once:
        once.setattr(node_reservation, "decide_steps", is_overtaken)
        world.passes(101)
    assert (world.reserved, world.told) == ({}, [])
    world.passes()
    assert world.reserved == {"big": "n2"}


def test_nothing_is_reserved_on_a_picture_that_grew_stale_while_it_was_decided(monkeypatch):
    world, deciding = World(waiting()), node_reservation.decide_steps

    def is_overtaken(*question):
        decision = yield from deciding(*question)
        world.store.feeds["nodes"].connected_at = None
        yield
        return decision

    monkeypatch.setattr(node_reservation, "decide_steps", is_overtaken)
    world.passes(101)
    assert world.reserved == {}


def test_nobody_is_let_onto_a_node_while_it_is_written_down_who_it_is_reserved_for():
    world, kept = World(waiting(), pod("small")), []
    record = world.api.reserve

    async def record_slowly(reservation):
        kept.append(world.store.cluster.reservations.nodes_reserved_from(world.store.cluster.pods["a/small"]))
        await record(reservation)

    world.api.reserve = record_slowly
    world.passes(101)
    assert kept == [{"n1"}]
    world.store.cluster.delete_node("n1")
    world.api.failing = {"starving-a.big"}
    world.store.cluster.delete_reservation("starving-a.big")
    world.passes(1)
    assert (kept, world.reserved) == ([{"n1"}, {"n2"}], {}), "but not where that could not be done"


def test_who_loses_the_lead_while_it_is_written_down_reserves_nothing():
    world = World(*gang("w1", "w2"))
    world.clock.now += 101
    cancel_at_the_write(world.api, lambda: look_once(world.reserve))
    assert world.reserved == {}


def test_what_was_reserved_while_it_was_looked_who_starves_is_not_lifted(monkeypatch):
    world, in_turn_steps = World(waiting()), starving.in_turn_steps
    theirs = Reservation("starving-a.big", PodName("a", "big", "a/big"), "n2", (), EPOCH, STARVING, job="pods/big")

    def is_overtaken(*question):
        jobs = yield from in_turn_steps(*question)
        world.store.cluster.upsert_reservation(theirs)
        return jobs

    monkeypatch.setattr(starving, "in_turn_steps", is_overtaken)
    world.api.unreserve = None
    world.passes(1)
    assert world.reserved == {"big": "n2"}


def test_a_reservation_that_cannot_be_removed_is_tried_again():
    world = World(waiting())
    world.passes(101)
    world.api.failing = {"starving-a.big"}
    world.store.cluster.delete_pod("a/big")
    world.passes(1)
    assert world.reserved == {"big": "n1"}
    world.api.failing = set()
    world.passes(1)
    assert world.reserved == {}


@pytest.mark.parametrize("end", ["bound", "gone", "group gone"])
def test_nothing_is_reserved_any_more_when_the_job_runs_or_is_gone(end):
    world = World(*gang("w1", minimum=1))
    world.passes(101)
    assert world.reserved == {"w1": "n1"}
    if end == "bound":
        see(world.store, pod("w1", metadata=LABELS, nodeName="n2"))
    elif end == "gone":
        world.store.cluster.delete_pod("a/w1")
    else:
        world.store.cluster.delete_group("a", "podgroups.scheduling.x-k8s.io/gang")
    world.passes(1)
    assert [each.job for each in world.store.cluster.reservations.reserved] == (
        ["pods/w1"] if end == "group gone" else []
    )


def test_a_node_that_is_gone_is_replaced_by_another():
    world = World(waiting())
    world.passes(101)
    world.store.cluster.delete_node("n1")
    world.passes(1)
    assert world.reserved == {"big": "n2"}


def test_while_a_member_is_replaced_the_others_keep_their_nodes_for_a_while():
    world = World(*gang("w1", "w2"))
    world.passes(101)
    world.store.cluster.delete_pod("a/w1")
    world.passes(1)
    world.passes(GRACE - 1)
    assert world.reserved == {"w1": "n1", "w2": "n2"}
    see(world.store, pod("w9", requests={"cpu": "3"}, metadata=LABELS))
    world.passes(1)
    assert world.reserved == {"w2": "n2", "w9": "n1"}
    world.store.cluster.delete_pod("a/w9")
    world.passes(1)
    world.passes(GRACE)
    assert world.reserved == {}


def test_a_node_that_passes_from_one_member_to_another_is_reserved_all_the_time():
    world = World(*gang("w1", "w2"))
    world.passes(101)
    see(world.store, pod("w2", requests={"cpu": "3"}, metadata=LABELS, nodeName="n1"))
    other, seen = world.store.cluster.pods["a/w1"], []
    record = world.api.unreserve

    async def unreserve(name):
        await record(name)
        stranger = replace(other, uid="x", name="x", namespace="b", group="")
        seen.append(world.store.cluster.reservations.nodes_reserved_from(stranger))

    world.api.unreserve = unreserve
    world.passes(1)
    assert world.reserved == {"w1": "n2"}
    assert len(seen) == 2
    assert all("n2" in nodes for nodes in seen)


def test_after_the_longest_time_the_job_waits_anew_whoever_leads():
    world = World(waiting(), max_duration=50)
    world.passes(101)
    world.passes(51)
    assert world.reserved == {}
    world.take_lead()
    world.passes(99)
    assert world.reserved == {}
    world.passes(2)
    world.passes(1)
    assert world.reserved == {"big": "n1"}
    assert world.store.cluster.reservations.given_up == {}


def test_what_was_given_up_is_forgotten_when_the_pod_is_gone():
    world = World(waiting(), max_duration=50)
    world.passes(101)
    world.passes(51)
    assert world.store.cluster.reservations.given_up
    world.store.cluster.delete_pod("a/big")
    world.passes(1)
    assert world.store.cluster.reservations.given_up == {}


def test_a_job_that_is_too_large_is_told_once_and_nothing_is_reserved_for_it():
    world = World(*gang("w1", "w2", "w3", minimum=3))
    world.passes(101)
    for _ in range(5):
        world.passes(60)
    assert world.reserved == {}
    assert world.told == [("w1", "TooLarge"), ("w2", "TooLarge"), ("w3", "TooLarge")]


def test_a_job_for_which_there_was_no_node_gets_one_when_there_is():
    world = World(waiting(cpu="5"))
    world.passes(101)
    see(world.store, node("n3", cpu="5", pods="10"))
    world.passes(AGAIN[0])
    assert world.reserved == {"big": "n3"}


def test_nothing_is_done_on_a_picture_that_is_not_complete():
    world = World(waiting())
    world.store.feeds["pods"].synced = False
    world.passes(101)
    assert world.reserved == {}


def test_what_a_leader_before_left_halfway_is_completed():
    world = World(*gang("w1", "w2"))
    half = Reservation("starving-a.w1", PodName("a", "w1", "a/w1"), "n2", (), EPOCH, STARVING)
    world.store.cluster.upsert_reservation(replace(half, job="podgroups.scheduling.x-k8s.io/gang"))
    world.passes(1)
    assert world.reserved == {"w1": "n2", "w2": "n1"}


# What people see


def test_rest_shows_what_is_reserved_for_whom_and_since_when():
    world = World(*gang("w1", "w2"))
    world.passes(101)
    client = client_of(world.store)
    first, second = client.get("/api/v1/reservations").json()["items"]
    assert first == {
        "name": "starving-a.w1",
        "reason": "Starving",
        "pod": "a/w1",
        "job": "a/gang",
        "node": "n1",
        "victims": [],
        "since": "2027-01-15T08:01:41Z",
        "promisedStart": "",
        "moved": "",
    }
    assert (second["pod"], second["node"]) == ("a/w2", "n2")
    (shown,) = client.get("/api/v1/podgroups").json()["items"]
    assert shown == {
        "namespace": "a",
        "name": "gang",
        "kind": "podgroups.scheduling.x-k8s.io",
        "minimum": 2,
        "ready": 0,
        "pending": 2,
        "reserved": 2,
        "nodes": ["n1", "n2"],
        "conditions": [],
    }
    outlook = client.get("/api/v1/pods/a/w1").json()["outlook"]
    assert (
        outlook
        == "node n1 is reserved for it since 2027-01-15T08:01:41Z: other pods may start only beside its room there"
    )
    plan = client.get("/api/v1/plan").json()
    assert [(each["pod"], each["node"], each["since"]) for each in plan["reservations"]] == [
        ("a/w1", "n1", first["since"]),
        ("a/w2", "n2", second["since"]),
    ]


def long_ago(*items):
    return [each | {"metadata": each["metadata"] | {"creationTimestamp": "2020-01-01T00:00:00Z"}} for each in items]


def test_a_plan_shows_what_would_be_reserved_and_reserves_nothing():
    sizes = [node(name, **SIZE) for name in ("n1", "n2")]
    store = store_with(*sizes, *long_ago(waiting("b1"), waiting("b2"), waiting("b3")))
    plan = client_of(store).get("/api/v1/plan").json()
    assert [(each["pod"], each["node"], each["reason"]) for each in plan["reservations"]] == [
        ("a/b1", "n1", "Starving")
    ]
    assert [(each["pod"], each["reason"]) for each in plan["waiting"]] == [("a/b2", "NoNodes"), ("a/b3", "NoNodes")]
    assert len(store.cluster.reservations.reserved) == 0
    outlooks = [client_of(store).get(f"/api/v1/pods/a/{name}").json()["outlook"] for name in ("b1", "b2")]
    assert outlooks == ["it starves; to be reserved for it: node n1"] * 2, "each alone"


def test_a_group_that_is_too_large_has_a_condition():
    store = store_with(node("n1", **SIZE), *long_ago(*gang("w1", "w2")))
    (shown,) = client_of(store).get("/api/v1/podgroups").json()["items"]
    assert [condition["type"] for condition in shown["conditions"]] == ["TooLarge"]
    assert "together" in shown["conditions"][0]["message"]
    assert "together" in client_of(store).get("/api/v1/pods/a/w1").json()["outlook"]


# Promised starts


def running(name="r", cpu="3", node_name="n1", seconds=500, start="2027-01-15T08:01:40Z"):
    """A pod that has run since 100 seconds after EPOCH, unless another start is said."""
    spec = {"nodeName": node_name, "activeDeadlineSeconds": seconds, "terminationGracePeriodSeconds": 10}
    return pod(name, requests={"cpu": cpu}, **spec) | {"status": {"phase": "Running", "startTime": start}}


def starts_by(world):
    """Seconds after EPOCH at which the start is promised, by pod; none where it is not."""
    reserved = world.store.cluster.reservations.reserved
    return {each.pod.name: each.promised_start - EPOCH for each in reserved if each.promised_start}


def busy():
    """Both nodes are full; the pod on the first ends after 1110 seconds, that on the second after 2110."""
    return World(waiting(), running("r1", seconds=1000), running("r2", node_name="n2", seconds=2000))


def test_the_job_is_promised_its_start_and_told():
    world = busy()
    world.passes(101)
    assert starts_by(world) == {"big": 1110}
    told = ("big", "StartPromised", "its reserved nodes have room by 2027-01-15T08:18:30Z at the latest")
    assert told in world.api.events
    world.passes(50)
    assert len(world.told) == 2


def test_promises_are_looked_at_before_all_decisions(monkeypatch):
    world = World(waiting(), running("r1", cpu="2", seconds=1000), running("r2", node_name="n2", seconds=9000))
    world.passes(101)
    see(world.store, running("late", cpu="1", seconds=3000, start="2027-01-15T08:05:00Z"))
    decided = []

    def decide(cluster, job, *_):
        decided.append("a/late" in cluster.pods)
        return ReserveDecision(job, (), "NoNodes", "")
        yield

    monkeypatch.setattr(node_reservation, "decide_steps", decide)
    world.passes(1110 - 10 - 5 - 101)
    assert decided == [False], "it was evicted before"


def test_the_next_leader_keeps_the_promise():
    world = busy()
    world.passes(101)
    see(world.store, running("late", seconds=5000, start="2027-01-15T08:05:00Z"))
    before = starts_by(world)
    world.take_lead()
    world.passes(1)
    assert starts_by(world) == before


def test_a_promise_that_cannot_be_recorded_is_not_given():
    world = busy()
    world.api.failing_notes = True
    world.passes(101)
    assert (starts_by(world), world.told) == ({}, [("big", "NodesReserved")])
    world.api.failing_notes = False
    world.passes(1)
    assert starts_by(world) == {"big": 1110}


def test_who_would_be_late_is_evicted_once_and_in_time():
    world = World(waiting(), running("r1", cpu="2", seconds=1000), running("r2", node_name="n2", seconds=9000))
    world.passes(101)
    see(world.store, running("late", cpu="1", seconds=3000, start="2027-01-15T08:05:00Z"))
    world.passes(1110 - 10 - 5 - 101 - 1)
    assert "a/late" in world.store.cluster.pods
    world.passes(1)
    assert "a/late" not in world.store.cluster.pods
    assert world.told.count(("late", "PromisedStart")) == 1
    assert starts_by(world) == {"big": 1110}


def late_for_it(*names):
    """A job that is promised its start in 14 seconds, and pods of a core that would be late for it."""
    world = World(waiting(), running("r1", cpu="1", seconds=1000), running("r2", node_name="n2", seconds=9000))
    world.passes(101)
    for name in names:
        see(world.store, running(name, cpu="1", seconds=3000, start="2027-01-15T08:05:00Z"))
    world.passes(1110 - 10 - 5 - 101 - 1)
    return world


def test_an_eviction_for_a_promise_is_remembered():
    world = late_for_it("late")
    world.passes(1)
    [shown] = client_of(world.store).get("/api/v1/evictions").json()["items"]
    assert (shown["pod"], shown["node"], shown["for"], shown["reason"]) == ("a/late", "n1", "a/big", "promised-start")
    assert "promised its start by 2027-01-15T08:18:30Z" in shown["message"]


def test_a_blocked_eviction_for_a_promise_is_tried_again_after_a_pause():
    world = late_for_it("late")
    world.api.blocked = True
    for _ in range(20):
        world.passes(0.5)
    assert len(world.api.asked) == 3  # after 2 seconds, and after 4 more
    assert not world.store.cluster.leaving.has_been_asked("a/late")
    world.api.blocked = False
    world.passes(promises.AGAIN[1])
    assert "a/late" not in world.store.cluster.pods


def test_an_eviction_that_hangs_delays_no_look_and_no_other_eviction():
    world, hangs = late_for_it("late1", "late2"), asyncio.Event()
    evict = world.api.evict

    async def first_hangs(name, grace=None):
        if name.name == "late1":
            world.api.asked.append(name.name)
            await hangs.wait()
        else:
            await evict(name, grace)

    async def looks():
        async with asyncio.TaskGroup() as group:
            while "a/late2" in world.store.cluster.pods:
                await world.reserve.look(group)
                await asyncio.sleep(0)
            await world.reserve.look(group)
            hangs.set()

    world.api.evict = first_hangs
    world.clock.now += 1
    asyncio.run(asyncio.wait_for(looks(), 30))
    assert sorted(world.api.asked) == ["late1", "late2"]


def test_no_eviction_for_a_promise_begins_in_a_namespace_where_they_hang(monkeypatch):
    world = late_for_it("late")
    monkeypatch.setattr(promises.WriteSeats, "are_kept_from", lambda _, namespace: namespace == "a")
    world.passes(1)
    assert world.api.asked == []


@pytest.mark.parametrize("change", ["gone", "shorter", "unready", "old"])
def test_who_is_not_late_any_more_is_not_evicted(change, monkeypatch):
    monkeypatch.setattr(promises, "AT_ONCE", 1)  # the second is decided about after the first is evicted
    world = late_for_it("late1", "late2")

    def changes():
        [other] = {"late1", "late2"} - set(world.api.asked)
        if change == "gone":
            world.store.cluster.delete_pod(f"a/{other}")
        elif change == "shorter":
            see(world.store, running(other, cpu="1", seconds=800, start="2027-01-15T08:05:00Z"))
        elif change == "unready":
            monkeypatch.setattr(world.store, "unready", lambda: ["not synced"])
        else:
            world.clock.now += promises.FRESH + 1

    world.api.at_an_eviction = changes
    world.passes(1)
    assert len(world.api.asked) == 1


def test_a_promise_is_recorded_on_several_reservations_at_a_time():
    pods = [running("r1", seconds=1000), running("r2", node_name="n2", seconds=2000)]
    world = World(*gang("w1", "w2"), *pods)
    world.passes(101)
    assert starts_by(world) == {"w1": 2110, "w2": 2110}
    assert world.api.most_notes == 2


def test_a_job_that_starts_while_a_reservation_is_lifted_counts_as_started():
    pods = [running("r1", seconds=1000), running("r2", node_name="n2", seconds=2000)]
    world, before = World(*gang("w1", "w2"), *pods), outcomes()
    world.passes(101)
    for name in ("r1", "r2"):
        world.store.cluster.delete_pod(f"a/{name}")
    see(world.store, pod("w1", requests={"cpu": "3"}, metadata=LABELS, nodeName="n1"))
    unreserve = world.api.unreserve

    async def lift(name):
        await unreserve(name)
        see(world.store, pod("w2", requests={"cpu": "3"}, metadata=LABELS, nodeName="n2"))

    world.api.unreserve = lift
    world.passes(1)
    world.passes(1)
    assert (world.reserved, outcomes() - before) == ({}, Counter(kept=1))


def outcomes():
    """How many promises have ended in which way."""
    names = ("kept", "moved", "lost")
    return Counter(
        {each: REGISTRY.get_sample_value("quotaward_promises_total", {"outcome": each}) or 0 for each in names}
    )


def test_a_promise_that_is_moved_says_why():
    world = World(waiting(), running("r1", seconds=1000), running("r2", node_name="n2", seconds=2000))
    world.passes(101)
    see(world.store, node("n1", **(SIZE | {"cpu": "2"})))
    world.passes(1)
    [(name, message)] = [(name, text) for name, reason, text in world.api.events if reason == "PromiseMoved"]
    assert name == "big"
    assert message.endswith("was reserved instead of another one")


def test_rest_shows_the_promise():
    world = busy()
    world.passes(101)
    [shown] = client_of(world.store).get("/api/v1/reservations").json()["items"]
    assert (shown["promisedStart"], shown["moved"]) == ("2027-01-15T08:18:30Z", "")
