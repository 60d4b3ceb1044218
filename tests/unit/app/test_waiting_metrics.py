"""How many pods wait, and how long those that were admitted have waited, as Prometheus gets it."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.observability import wait_times
from app.observability.wait_times import WaitTimes
from app.observability.waiting_metrics import waiting_lines
from tests.unit.app.given import namespace, node, pod, queue, refused, see, store_with
from tests.unit.app.test_history import Day
from tests.unit.app.test_queued_jobs import job, world

CREATED = {"creationTimestamp": "2027-01-15T07:58:00Z"}
"""Two minutes before the day of a history begins."""


def samples(text):
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found[sample.name, *sample.labels.values()] = sample.value
    return found


def waiting(store):
    return {key[1:]: value for key, value in samples(asyncio.run(waiting_lines(store.cluster))).items()}


def test_waiting_pods_are_counted_by_queue_and_namespace():
    annotations = {"annotations": {"scheduling.volcano.sh/queue-name": "invented"}}
    store = store_with(
        queue("team"),
        namespace("a", **{"scheduling.volcano.sh/queue-name": "team"}),
        node("n1"),
        *(refused(pod(f"w{number}")) for number in range(3)),
        refused(pod("strange", "b", metadata=annotations | {"uid": "x"})),
        pod("runs", "b", nodeName="n1"),
    )
    assert waiting(store) == {("team", "a"): 3, ("", "b"): 1}


def test_a_job_that_waits_as_a_whole_counts_with_its_pods():
    assert waiting(world(job("train", 3)))["", "a"] == 3


@pytest.fixture
def observed(monkeypatch):
    times = WaitTimes()
    monkeypatch.setattr("app.history.recorder.WAIT_TIMES", times)
    return lambda: samples(asyncio.run(times.lines()))


def test_the_time_until_the_admission_counts_once_the_pod_is_bound(observed):
    day = Day(refused(pod("late", metadata=CREATED | {"uid": "late"})))
    day.record()
    late = day.store.cluster.pod("a", "late")
    for _ in range(2):
        day.store.cluster.grant(late, day.clock())
        day.decisions.note(late, "admitted", None)
        day.decisions._latest[-1] = day.decisions._latest[-1]._replace(at=day.clock())
        day.record()
    assert observed() == {}
    see(day.store, pod("late", metadata=CREATED | {"uid": "late"}, nodeName="n1"))
    day.record()
    day.record()
    found = observed()
    assert found["quotaward_wait_seconds_count", "team", "a"] == 1
    assert found["quotaward_wait_seconds_sum", "team", "a"] == pytest.approx(120)
    assert found["quotaward_wait_seconds_bucket", "team", "a", "60"] == 0
    assert found["quotaward_wait_seconds_bucket", "team", "a", "300"] == 1


def test_a_pod_that_is_not_bound_is_not_counted(observed):
    day = Day()
    day.record()
    day.answers(1)
    day.record()
    day.record()
    assert observed() == {}
    assert day.recorder._admitted == {}


def test_the_number_of_series_is_bounded():
    times = WaitTimes()
    for number in range(wait_times.MOST + 50):
        times.observe("q", f"n{number}", 2)
    found = samples(asyncio.run(times.lines()))
    counts = {key[1:]: value for key, value in found.items() if key[0].endswith("_count")}
    assert len(counts) == wait_times.MOST + 1
    assert counts["", ""] == 50
    assert len(found) == (wait_times.MOST + 1) * (len(wait_times.BUCKETS) + 3)
