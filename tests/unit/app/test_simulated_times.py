"""Folders that were taken from a cluster as stories: their dates, what is over already, and what is given up."""

import re
from math import inf

import pytest

from app.settings import Settings
from app.whatif import charts, scenario
from policy.stepwise import at_once
from tests.unit.app.given import node, pod, quota
from tests.unit.app.manifest_folder import Folder
from tests.unit.app.situations import cpus
from tests.unit.app.test_simulate import HOUR, run

NOON, MIDNIGHT = "2026-11-01T12:00:00Z", "2026-11-02T00:00:00Z"
DAY = 24 * HOUR


@pytest.fixture
def lives(tmp_path):
    """What becomes of the pods of a folder, by name."""

    def play(*items):
        Folder(tmp_path).write("all.yaml", *items)
        story, _ = at_once(scenario.play_steps(scenario.read(tmp_path), Settings(), inf))
        return {life.pod.name: life for life in story.lives.values()}

    return play


def simulated(tmp_path, *items, options=()):
    Folder(tmp_path).write("all.yaml", *items)
    return run("simulate", tmp_path, *options)


def job(name, cpu, created=None, node_name=None, started=None, **annotations):
    given = {f"simulation.quotaward.dev/{key}": value for key, value in annotations.items()}
    metadata = {"annotations": given} | ({"creationTimestamp": created} if created else {})
    status = {"phase": "Running", "startTime": started} if started else {"phase": "Pending"}
    rest = {"nodeName": node_name} if node_name else {}
    return pod(name, requests={"cpu": cpu}, metadata=metadata, **rest) | {"status": status}


def dated(created):
    return (
        node("n1", **cpus(4)),
        job("small", 2, created, "n1", created and NOON),
        job("big", 4, created, **{"for": "1h"}),
        job("later", 2, created, at="1h", **{"for": "60h"}),
        job("last", 2, created, at="58h", **{"for": "60h"}),
    )


def test_a_story_is_the_same_with_the_dates_of_a_cluster(tmp_path):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    with_dates = simulated(tmp_path / "with", *dated(NOON))
    assert with_dates == simulated(tmp_path / "without", *dated(None))
    assert "▒" in with_dates[1], "a node is reserved for who has waited for two days"


def test_what_has_waited_in_the_cluster_for_days_starves_at_once(lives):
    heartbeat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-04T00:00:00Z"}
    n1 = node("n1", **cpus(4))
    n1["status"]["conditions"] = [heartbeat]
    found = lives(n1, job("small", 2, MIDNIGHT, "n1", MIDNIGHT, **{"for": "3d"}), job("big", 4, MIDNIGHT))
    assert (found["big"].reserved, found["big"].started) == (pytest.approx(0, abs=2), DAY)


def test_a_pod_runs_on_for_what_is_left_of_its_time(lives):
    found = lives(node("n1", **cpus(4)), job("a", 2, NOON, "n1", NOON, **{"for": "15h"}), job("b", 2, MIDNIGHT))
    assert (found["a"].started, found["a"].ended) == (0, 3 * HOUR)


def test_a_pod_whose_time_was_over_before_ends_at_once(lives):
    found = lives(node("n1", **cpus(4)), job("a", 2, NOON, "n1", NOON, **{"for": "1h"}), job("b", 4, MIDNIGHT))
    assert (found["a"].ended, found["b"].started) == (1, 1)


def test_a_pod_that_comes_later_is_as_old_as_that_whatever_its_date(lives):
    found = lives(node("n1", **cpus(4)), job("a", 2, NOON, "n1", NOON, at="5h", **{"for": "2h"}), job("b", 1, MIDNIGHT))
    assert (found["a"].started, found["a"].ended) == (5 * HOUR, 7 * HOUR)


def test_a_date_that_cannot_be_read_does_not_matter(lives):
    n1 = node("n1", **cpus(4))
    n1["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "yesterday"}]
    assert lives(n1, job("a", 1, NOON))["a"].started == 0


def test_a_pod_that_has_succeeded_does_not_wait(tmp_path):
    done = pod("done", requests={"cpu": 4}, metadata={"creationTimestamp": NOON}, nodeName="n1")
    done["status"] = {"phase": "Succeeded", "startTime": NOON}
    status, text = simulated(tmp_path, node("n1", **cpus(8)), done, job("next", 8, MIDNIGHT))
    assert status == 0
    assert not re.search(r"^a/done +·", text, re.MULTILINE)
    assert "a/done had finished before the start, and is not drawn" in text.splitlines()
    assert re.search(r"^a/next +█+$", text, re.MULTILINE)


@pytest.mark.parametrize("fits", [True, False])
def test_a_pod_that_comes_last_is_drawn(tmp_path, fits):
    first, last = job("first", 1), job("last", 1 if fits else 9, at="60")
    _, text = simulated(tmp_path, node("n1", **cpus(8)), first, last, quota("a", max={"cpu": 2 if fits else 1}))
    assert re.search(rf"^a/last +{charts.RUNS if fits else charts.WAITS}$", text, re.MULTILINE)


def test_a_story_that_is_given_up_says_so_first_and_fails(tmp_path):
    pods = (job(f"p{n}", 1, at=f"{n}h") for n in range(1, 5))
    status, text = simulated(tmp_path, node("n1", **cpus(8)), *pods, options=("--time-limit", "0"))
    assert status == 1
    assert text.splitlines()[0] == "given up at 0s, as --time-limit was over: 4 of 4 pods had not appeared yet"


def test_a_story_that_ends_is_not_given_up(tmp_path):
    status, text = simulated(tmp_path, node("n1", **cpus(8)), job("p", 1))
    assert (status, "given up" in text) == (0, False)
