"""The next hours of a queue on its page: how many still wait, and who starts first."""

import pytest

from app.web.ahead import NAMED, STEP, STEPS
from policy.stepwise import at_once
from tests.unit.app.given import Clock, client_of, namespace, node, pod, queue, refused, store_with
from tests.unit.app.situations import NO_ROOM, cpus
from tests.unit.app.test_page import Parsed

EPOCH = 4_070_908_800.0
"""The beginning of 2099, when the pods that run have started."""
STARTED = {"phase": "Running", "startTime": "2099-01-01T00:00:00Z"}


@pytest.fixture(autouse=True)
def _in_2099(monkeypatch):
    monkeypatch.setattr("app.web.pages.time.time", lambda: EPOCH)
    monkeypatch.setattr("app.whatif.expected_starts.PATIENCE", 60)


def runs(name, seconds=0, at="n1", **spec):
    deadline = {"activeDeadlineSeconds": seconds} if seconds else {}
    return pod(name, "a", {"cpu": 1}, nodeName=at, **deadline) | {"status": STARTED}


def told(*items, path="/queues/team"):
    tree = [queue("company"), queue("team", parent="company"), queue("other")]
    belongs = {"scheduling.volcano.sh/queue-name": "team"}
    store = store_with(*tree, namespace("a", **belongs), *items, clock=Clock(0.0))
    store.cluster.epoch = EPOCH
    at_once(store.cluster.divide_steps())
    answer = client_of(store).get(path)
    assert answer.status_code == 200
    return answer.text


def waits(number):
    return [refused(pod(f"w{each}", "a", {"cpu": 1}, activeDeadlineSeconds=60), NO_ROOM) for each in range(number)]


@pytest.mark.parametrize("path", ["/queues/team", "/queues/company"])
def test_a_queue_shows_who_starts_in_the_next_hours_and_those_below_it(path):
    text = told(node("n1", **cpus(2)), runs("soon", 3600), runs("late", 7200), *waits(1), path=path)
    words = Parsed(text).words
    assert "The next hours As pods are expected to start" in words
    assert "Waiting pods 1 now, 0 in twelve hours" in words
    assert f'viewBox="0 0 {STEPS} 100"' in text
    assert 'd="M0 100V0H4V100H48V100Z"' in text
    assert "a/w0 2099-01-01T01:00:00Z a/soon" in words.replace("2099-01-01 01:00:00 UTC", "2099-01-01T01:00:00Z")


def test_those_that_start_later_or_nobody_knows_when_are_counted():
    beyond = int(STEP * STEPS) + 60
    text = told(node("n1", **cpus(1)), node("n2", **cpus(1)), runs("r1", beyond), runs("r2", at="n2"), *waits(1))
    assert "1 start later than that." in Parsed(text).words
    assert "Waiting pods 1 now, 1 in twelve hours" in Parsed(text).words
    text = told(node("n1", **cpus(1)), runs("r1"), *waits(2))
    assert "The start of 2 is not known." in Parsed(text).words
    assert "Who starts first" not in text


def test_the_first_to_start_are_named_and_the_others_counted():
    first = refused(pod("x", "a", {"cpu": 1}, priority=1, activeDeadlineSeconds=60), NO_ROOM)
    text = told(node("n1", **cpus(1)), runs("r1", 60), *waits(NAMED + 2), first)
    assert text.count('<th scope="row">a/w') == NAMED - 1
    assert text.index('<th scope="row">a/x') < text.index('<th scope="row">a/w0')
    assert "and 3 more" in Parsed(text).words


def test_where_nobody_waits_nothing_is_drawn():
    waiting = [node("n1", **cpus(1)), runs("r1", 60), *waits(1)]
    assert 'id="ahead"' not in told(node("n1", **cpus(1)), runs("r1", 60))
    assert 'id="ahead"' not in told(*waiting, path="/queues/other")
    assert 'id="ahead"' in told(*waiting)
