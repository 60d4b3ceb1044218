"""Refused pods that could run now are woken: no more than fit, each once, and again where the write failed."""

import asyncio

import pytest

from app.actuators.protocol import ActionFailed, TimedOut
from app.controllers import keyed_backoff, write_seats
from app.controllers.wake import AGAIN, AT_ONCE, BURST, RATE, SOON, Wake
from tests.unit.app.given import Clock, empty_store, pod, quota, refused, see, store_with


class Recorder:
    """An actuator that notes whom it wakes, and fails as often as it is told."""

    def __init__(self):
        self.woken = []
        self.failures = self.tried = 0
        self.waited_long_enough = asyncio.Event()
        self.under_way = self.most_under_way = 0

    async def bind(self, pod, node):
        raise AssertionError("nobody is bound here")

    async def wake(self, pod):
        if pod.namespace == "hanging":
            self.tried += 1
            await self.waited_long_enough.wait()
            raise TimedOut("not within 10 s")
        if pod.namespace == "failing":
            self.tried += 1
            raise ActionFailed("the API server answered 403")
        if pod.namespace == "slow":
            await asyncio.sleep(2 * write_seats.SLOW)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.failures:
            self.failures -= 1
            raise ActionFailed("the API server answered 500")
        self.woken.append(pod.name)


class Waking:
    """A store, whose refused pods are looked after at once whenever the test says so."""

    def __init__(self, *items, store=None):
        self.loop = asyncio.Runner()
        self.clock = Clock()
        self.store = store or store_with(*items, clock=self.clock)
        self.recorder = Recorder()
        self.wake = Wake(self.store, self.recorder)

    def look(self, until=lambda: True):
        """Who is woken now; those that hang are given up once this holds."""
        self.recorder.woken.clear()
        self.recorder.waited_long_enough.clear()

        async def look():
            async with asyncio.TaskGroup() as group:
                self.wake.look(group)
                async with asyncio.timeout(5):
                    while not until():
                        await asyncio.sleep(0)
                self.recorder.waited_long_enough.set()

        self.loop.run(look())
        return self.recorder.woken

    def see(self, *items):
        see(self.store, *items)


def waiting(name, namespace="a", priority=0, created=0, **rest):
    time = f"2026-11-27T20:55:{created:02}Z"
    return refused(pod(name, namespace, metadata={"creationTimestamp": time}, priority=priority, **rest))


def most(cpu, namespace="a"):
    return quota(namespace, max={"cpu": cpu})


@pytest.fixture
def full():
    """Ten pods wait for a quota that lets none in."""
    waking = Waking(most(0), *(waiting(f"w{number}", created=number) for number in range(10)))
    assert waking.look() == []
    return waking


def test_as_many_are_woken_as_fit(full):
    full.see(most(3))
    assert full.look() == ["w0", "w1", "w2"]


def test_they_are_woken_by_priority_and_then_creation():
    waking = Waking(
        most(3), waiting("new", created=9), waiting("old"), waiting("low", priority=-1), waiting("high", priority=1)
    )
    assert waking.look() == ["high", "old", "new"]


def test_none_is_woken_that_is_still_refused():
    waking = Waking(
        most(1), waiting("large", requests={"cpu": 2}), waiting("borrower", "b"), quota("b", min={"cpu": 0})
    )
    assert waking.look() == []


def test_none_is_woken_that_waits_for_something_else():
    elsewhere = refused(pod("p"), "0/1 nodes are available: 1 Insufficient cpu.")
    assert Waking(most(5), elsewhere, pod("never tried"), pod("bound", nodeName="n1")).look() == []


def test_a_pod_that_ends_makes_room_for_one():
    waking = Waking(most(1), pod("running", nodeName="n1"), waiting("w1", created=1), waiting("w2", created=2))
    assert waking.look() == []
    waking.see(pod("running", nodeName="n1") | {"status": {"phase": "Succeeded"}})
    assert waking.look() == ["w1"]


def test_nothing_is_looked_for_while_nothing_has_changed(full):
    full.see(most(3))
    full.look()
    for _ in range(3):
        full.clock.now += 1
        assert full.look() == []


def test_nobody_is_woken_twice_within_the_pause(full):
    full.see(most(3))
    full.look()
    full.clock.now += AGAIN - 1
    full.see(most(4))
    assert full.look() == ["w3"]


def test_who_still_waits_after_the_pause_is_woken_again(full):
    full.see(most(3))
    full.look()
    full.clock.now += AGAIN
    assert full.look() == ["w0", "w1", "w2"]


def test_who_was_admitted_meanwhile_is_left_alone(full):
    full.see(most(3))
    full.look()
    full.store.cluster.admit(full.store.cluster.pod("a", "w0"), full.clock())
    full.clock.now += AGAIN
    assert full.look() == ["w1", "w2"]


def test_a_failed_write_is_tried_again_a_little_later_after_those_of_others(full):
    full.recorder.failures = 2
    full.see(most(3))
    assert full.look() == ["w2"]
    full.see(most(4))
    full.clock.now += keyed_backoff.FIRST
    assert full.look() == ["w3", "w0", "w1"]


def test_a_failed_write_is_tried_again_after_the_pause_at_the_latest(full):
    full.recorder.failures = 3
    full.see(most(3))
    assert full.look() == []
    full.clock.now += AGAIN
    assert full.look() == ["w0", "w1", "w2"]


def test_a_failed_write_is_tried_again_within_two_seconds(full):
    full.recorder.failures = 3
    full.see(most(3))
    full.look()
    full.clock.now += 2
    assert full.look() == ["w0", "w1", "w2"]


def test_whose_write_fails_leaves_the_room_to_the_others(full):
    full.see(most(3), quota("failing", max={"cpu": 0}))
    full.recorder.failures = 3
    assert full.look() == []
    full.see(most(4), most(3))
    assert full.look() == ["w3", "w4", "w5"]


def test_failing_writes_use_up_no_rate_of_others_and_are_retried_ever_more_seldom():
    number = 2 * BURST
    failing = (waiting(f"f{each}", "failing", priority=1) for each in range(number))
    waking = Waking(*failing, waiting("other"), most(0), most(number, "failing"))
    waking.look()
    while waking.recorder.tried < number:
        waking.clock.now += SOON
        waking.look()
    waking.see(most(1))
    waking.clock.now += SOON
    assert waking.look() == ["other"]
    for _ in range(2 * int(keyed_backoff.LONGEST)):
        waking.clock.now += SOON
        waking.look()
    tried = waking.recorder.tried
    for _ in range(int(keyed_backoff.LONGEST)):
        waking.clock.now += SOON
        waking.look()
    assert waking.recorder.tried - tried <= 2 * number


def test_a_namespace_in_which_writes_hang_keeps_no_other_waiting(monkeypatch):
    monkeypatch.setattr(write_seats, "SLOW", 0.01)
    stuck = (waiting(f"h{each}", "hanging", priority=1) for each in range(2 * AT_ONCE))
    waking = Waking(*stuck, waiting("other"), most(1), most(100, "hanging"))
    assert waking.look(until=lambda: waking.recorder.woken) == ["other"]
    assert waking.recorder.tried == AT_ONCE
    waking.clock.now += write_seats.AGAIN[0]
    waking.see(most(101, "hanging"))
    waking.look(until=lambda: waking.recorder.tried > AT_ONCE)
    assert waking.recorder.tried == AT_ONCE + 1  # one, to see whether it is well again


def test_a_namespace_in_which_writes_take_long_uses_up_no_rate_that_others_need(monkeypatch):
    monkeypatch.setattr(write_seats, "SLOW", 0.05)
    slow = (waiting(f"s{each}", "slow", priority=1) for each in range(2 * BURST))
    waking = Waking(*slow, waiting("other"), most(1), most(2 * BURST, "slow"))
    waking.look()
    waking.clock.now += SOON
    assert "other" in waking.look()


def test_where_all_writes_take_long_and_are_done_they_are_not_made_one_by_one(monkeypatch):
    monkeypatch.setattr(write_seats, "SLOW", 0)
    number = 5 * AT_ONCE
    waking = Waking(*(waiting(f"w{each}") for each in range(number)), most(number))
    woken = set(waking.look())
    for _ in range(5):
        waking.clock.now += SOON
        woken |= set(waking.look())
    assert len(woken) == number
    assert waking.recorder.most_under_way == AT_ONCE


def test_no_more_wait_for_a_hand_than_are_woken_at_once_however_long_writes_hang():
    stuck = (waiting(f"h{each}", "hanging") for each in range(2 * BURST))
    waking = Waking(*stuck, most(2 * BURST, "hanging"))

    async def look():
        async with asyncio.TaskGroup() as group:
            before = len(asyncio.all_tasks())
            for _ in range(2 * int(AGAIN)):
                waking.clock.now += SOON
                waking.wake.look(group)
                await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) - before <= AT_ONCE + BURST
            waking.recorder.waited_long_enough.set()

    waking.loop.run(look())


def test_only_so_many_writes_are_under_way_at_a_time():
    waking = Waking(*(waiting(f"w{number}", created=number % 60) for number in range(5 * AT_ONCE)), most(1000))
    assert len(waking.look()) == 5 * AT_ONCE
    assert waking.recorder.most_under_way == AT_ONCE


def test_many_are_woken_at_a_bounded_rate_the_most_important_first():
    number = BURST + 2 * int(RATE)
    waking = Waking(*(waiting(f"w{each}", priority=-each) for each in range(number)), most(number))
    woken = list(waking.look())
    assert woken == [f"w{each}" for each in range(BURST)]
    waking.see(most(number + 1))
    assert waking.look() == []  # also where something changes all the time
    for _ in range(2):
        waking.clock.now += SOON
        woken += waking.look()
        assert waking.look() == []
    assert woken == [f"w{each}" for each in range(number)]


def test_nobody_is_woken_on_a_picture_that_is_not_complete():
    store = empty_store()
    see(store, most(1), waiting("w"))
    assert Waking(store=store).look() == []


def test_who_is_woken_still_counts_for_nothing(full):
    full.see(most(3))
    full.look()
    assert full.store.cluster.ledger.account("a").used == {}
