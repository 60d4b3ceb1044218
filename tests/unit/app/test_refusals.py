"""Whose quota keeps pods waiting learns it in events: one for each rule, seldom repeated, never one per attempt."""

import asyncio

import pytest

from app.controllers.refusals import AT_MOST, EXPIRES, REPEAT, Refusals
from tests.unit.app.given import Clock, empty_store, pod, quota, refused, see, store_with
from tests.unit.app.test_queued_jobs import job, labelled

BORROWING = "0/1 nodes are available: 1 ElasticQuota borrowing exhausted: cpu."
HELD = "0/1 nodes are available: 1 node(s) held for a pod that is being given room."


class Recorder:
    """An actuator that notes what it is told."""

    def __init__(self):
        self.events = []

    def report(self, event):
        self.events.append(event)


def events_of(controller, store, looks=1):
    """What a controller that is made of a store and an actuator tells in so many looks."""
    recorder = Recorder()
    made = controller(store, recorder)
    for _ in range(looks):
        asyncio.run(made.look())
    return recorder.events


class Telling:
    """A store whose refusals are told whenever the test says so."""

    def __init__(self, *items, store=None):
        self.clock = Clock()
        self.store = store or store_with(*items, clock=self.clock)
        self.recorder = Recorder()
        self.refusals = Refusals(self.store, self.recorder)

    def look(self):
        """What is told now."""
        self.recorder.events.clear()
        asyncio.run(self.refusals.look())
        return list(self.recorder.events)

    def see(self, *items):
        see(self.store, *items)


def waiting(name, namespace="a", message=None, **spec):
    item = pod(name, namespace, **spec)
    return refused(item) if message is None else refused(item, message)


def full(namespace="a", **rest):
    item = quota(namespace, max={"cpu": 0}, **rest)
    item["metadata"]["uid"] = f"uid-of-{namespace}"
    return item


def test_all_who_wait_for_a_rule_are_told_in_one_event_on_the_quota():
    telling = Telling(full(), waiting("low", priority=-1), *(waiting(f"w{number}") for number in range(3)))
    [event] = telling.look()
    assert str(event.subject) == "ElasticQuota a/quota"
    assert (event.subject.api_version, event.subject.uid) == ("scheduling.x-k8s.io/v1alpha1", "uid-of-a")
    assert (event.reason, event.warning, event.series.count) == ("MaxExceeded", False, 1)
    assert event.message == "ElasticQuota max exceeded: cpu; pods that wait: 4, next of them w0"


def test_each_rule_and_each_quota_has_an_event_of_its_own():
    telling = Telling(full(), full("b"), waiting("w"), waiting("x", message=BORROWING), waiting("y", "b"))
    told = {(event.subject.namespace, event.reason) for event in telling.look()}
    assert told == {("a", "MaxExceeded"), ("a", "BorrowingExhausted"), ("b", "MaxExceeded")}


def test_attempts_and_further_pods_are_not_told_before_it_is_time():
    telling = Telling(full(), waiting("w"))
    telling.look()
    for number in range(5):
        telling.clock.now += 5
        telling.see(waiting(f"another{number}"), waiting("w", message=BORROWING), waiting("w"))
        assert telling.look() == []


def test_what_goes_on_is_the_same_event_with_a_higher_count():
    telling = Telling(full(), waiting("w"))
    [first] = telling.look()
    telling.see(waiting("v"))
    telling.clock.now += REPEAT
    [second] = telling.look()
    assert second.series.name == first.series.name
    assert (second.series.since, second.series.count) == (first.series.since, 2)
    assert "pods that wait: 2, next of them v" in second.message


def test_one_that_comes_and_goes_is_told_no_more_often():
    telling = Telling(full(), waiting("w"))
    telling.look()
    telling.see(pod("w", nodeName="n1"))
    assert telling.look() == []
    telling.see(waiting("v"))
    assert telling.look() == []


def test_what_the_api_server_has_forgotten_is_told_anew():
    telling = Telling(full(), waiting("w"))
    [first] = telling.look()
    telling.clock.now += EXPIRES
    [anew] = telling.look()
    assert anew.series.count == 1
    assert anew.series.name != first.series.name


def test_of_many_quotas_some_are_told_now_and_the_others_with_the_next_looks():
    names = [f"team-{number}" for number in range(2 * AT_MOST + 1)]
    telling = Telling(*map(full, names), *(waiting("w", name) for name in names))
    looks = [telling.look() for _ in range(4)]
    assert [len(told) for told in looks] == [AT_MOST, AT_MOST, 1, 0]
    assert {event.subject.namespace for told in looks for event in told} == set(names)


@pytest.mark.parametrize(
    "item",
    [
        pod("never tried"),
        refused(pod("other"), "0/1 nodes are available: 1 Insufficient cpu."),
        waiting("kept off", message=HELD),
        waiting("leaves", metadata={"deletionTimestamp": "2026-11-27T20:55:00Z"}),
        waiting("bound", nodeName="n1"),
        waiting("no quota", "b"),
    ],
    ids=lambda item: item["metadata"]["name"],
)
def test_nothing_is_told_of_one_that_no_quota_keeps_waiting(item):
    assert Telling(full(), item).look() == []


def test_jobs_as_a_whole_and_pods_at_gates_are_told_too():
    gated = pod("p", schedulingGates=[{"name": "quotaward.dev/quota"}], priority=-1)
    telling = Telling(full(), waiting("w", priority=-1), labelled(), gated, job("one", 1), job("late", 3, created=2))
    [event] = telling.look()
    assert (str(event.subject), event.reason) == ("ElasticQuota a/quota", "MaxExceeded")
    text = "ElasticQuota max exceeded: cpu; pods that wait: 2, Jobs that wait: 2, next of them Job one (1 pod)"
    assert event.message == text


@pytest.mark.parametrize("items", [(full(), labelled("b"), job("other", namespace="b")), (full(), job("let go"))])
def test_nothing_is_told_of_a_job_that_no_quota_keeps_waiting(items):
    assert Telling(*items).look() == []


def test_of_two_quotas_it_is_told_on_the_one_in_force():
    older = full(name="older", created="2026-01-01T00:00:00Z")
    younger = full(name="younger", created="2026-02-01T00:00:00Z")
    [event] = Telling(younger, older, waiting("w")).look()
    assert event.subject.name == "older"


def test_nothing_is_told_on_a_picture_that_is_not_complete():
    store = empty_store()
    see(store, full(), waiting("w"))
    assert Telling(store=store).look() == []
