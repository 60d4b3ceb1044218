"""Expected starts as REST and explanations show them, and how often they are computed."""

import asyncio

import pytest

from app.settings import Settings
from app.whatif import expected_starts
from app.whatif.expected_starts import ExpectedStarts
from tests.unit.app.given import Clock, client_of, node, pod, refused, store_with
from tests.unit.app.situations import NO_ROOM, cpus

STARTED = "2099-01-01T00:00:00Z"
RUNS = {"phase": "Running", "startTime": STARTED}


def world(**said):
    run = pod("run", "a", {"cpu": 1}, nodeName="n1", **said) | {"status": RUNS}
    return node("n1", **cpus(1)), run, refused(pod("p", "b"), NO_ROOM)


def test_rest_and_an_explanation_say_when_a_pod_is_expected_to_start():
    client = client_of(store_with(*world(activeDeadlineSeconds=90)))
    [row] = client.get("/api/v1/waiting").json()["items"]
    assert row["expectedStart"] == {
        "at": "2099-01-01T00:01:30Z",
        "basis": "declared",
        "after": ["a/run"],
        "assuming": "nobody of higher rank comes",
    }
    told = client.get("/api/v1/pods/b/p").json()
    assert told["expectedStart"] == row["expectedStart"]
    said = "Expected start: 2099-01-01T00:01:30Z, once a/run has ended, if nobody of higher rank comes."
    assert told["summary"].endswith(said)


def test_a_start_after_the_last_time_that_can_be_written_is_told_as_that():
    last, run, p = world(activeDeadlineSeconds=2**63 - 1)
    run["status"] = RUNS | {"startTime": "9990-01-01T00:00:00Z"}
    [row] = client_of(store_with(last, run, p)).get("/api/v1/waiting").json()["items"]
    assert row["expectedStart"]["at"] == "9999-12-31T23:59:59Z"


def test_without_a_run_time_there_is_no_expected_start():
    client = client_of(store_with(*world()))
    [row] = client.get("/api/v1/waiting").json()["items"]
    assert (row["expectedStart"]["at"], row["expectedStart"]["basis"]) == ("", "none")
    assert "Expected start" not in client.get("/api/v1/pods/b/p").json()["summary"]


@pytest.fixture
def computed(monkeypatch):
    """How often starts were computed."""
    times, real = [], expected_starts.copy_steps

    def counted(taken):
        times.append(taken.now)
        return real(taken)

    monkeypatch.setattr(expected_starts, "copy_steps", counted)
    return times


def test_starts_are_computed_if_somebody_asks_and_the_interval_is_over(computed):
    clock = Clock()
    starts = ExpectedStarts(store_with(*world(), clock=clock), Settings())
    assert len(computed) == 0
    for later, number in ((0, 1), (9, 1), (2, 2)):
        clock.now += later
        asyncio.run(starts.renew())
        assert len(computed) == number


def test_the_time_between_two_computations_is_four_times_that_of_the_work(computed, monkeypatch):
    monkeypatch.setattr(expected_starts.Pause, "worked", lambda _: 10.0)
    clock = Clock()
    starts = ExpectedStarts(store_with(*world(), clock=clock), Settings())
    for later, number in ((0, 1), (49, 1), (2, 2)):
        clock.now += later
        asyncio.run(starts.renew())
        assert len(computed) == number


def test_starts_that_cannot_be_computed_keep_nothing_else_from_the_asker(monkeypatch):
    monkeypatch.setattr(expected_starts, "copy_steps", lambda _: 1 / 0)
    [row] = client_of(store_with(*world())).get("/api/v1/waiting").json()["items"]
    assert row["expectedStart"] is None


def test_of_what_was_not_computed_to_the_end_nothing_is_said():
    starts = ExpectedStarts(store := store_with(*world()), Settings(whatif={"time_limit": 1e-9}))
    asyncio.run(starts.renew())
    assert not starts.was_sought(store.cluster.pods.values())


def test_starts_that_were_computed_long_ago_are_not_told(monkeypatch):
    clock = Clock()
    starts = ExpectedStarts(store := store_with(*world(activeDeadlineSeconds=90), clock=clock), Settings())
    pods = list(store.cluster.pods.values())
    asyncio.run(starts.renew())
    assert starts.of(pods) is not None
    monkeypatch.setattr(expected_starts, "copy_steps", lambda _: 1 / 0)
    for later, is_told in ((11, True), (3600, False)):
        clock.now += later
        asyncio.run(starts.renew())
        assert (starts.of(pods) is not None) == is_told
