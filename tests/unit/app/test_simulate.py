"""Folders of manifests as stories: the seeds' examples in time, and what the commands print of them."""

import re
from math import inf
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.settings import Settings
from app.whatif import scenario
from policy.stepwise import at_once
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import client_of, node, pod, quota, store_with
from tests.unit.app.manifest_folder import Folder
from tests.unit.app.situations import cpus, running

EXAMPLES = Path(__file__).parents[3] / "examples"
HOUR, MINUTE = 3600, 60

# by example, for each pod: when it starts and ends, and how; None: never
STORIES = {
    "big-job": (
        HOUR,
        {
            "pod-1": (0, 6, "finished"),
            "pod-4": (60, 70, "finished"),
            "pod-5": (6, 56, "finished"),
            "pod-6": (20, 60, "finished"),
            "pod-7": (70, 80, "finished"),
        },
    ),
    "lend-and-take-back": (
        HOUR,
        {
            "a-2": (1, 6, "finished"),
            "a-3": (2, 3, "evicted"),
            "a-4": (5, 7, "finished"),
            "b-2": (3, 6, "finished"),
        },
    ),
    "company": (
        HOUR,
        {
            "speech-2": (0, 4, "finished"),
            "speech-3": (0, 1, "evicted"),
            "search-4": (0, 4, "finished"),
            "search-5": (0, 1, "evicted"),
            "vision-1": (1, 3, "finished"),
            "vision-2": (1, 3, "finished"),
            "vision-3": (3, 5, "finished"),
        },
    ),
    "devices": (
        MINUTE,
        {
            "extended": (0, 1, "evicted"),
            "implicit": (0, 1, "evicted"),
            "of-template": (0, 1, "evicted"),
            "sharing": (0, 10, "finished"),
            "owner": (1, 6, "finished"),
        },
    ),
    "growing-guarantee": (
        MINUTE,
        {
            "job-1": (0, 20, "evicted"),
            "job-3": (0, 60, "finished"),
            "report": (20, 40, "finished"),
        },
    ),
}


def play(directory, until=inf, settings=None):
    story, _ = at_once(scenario.play_steps(scenario.read(directory), settings or Settings(), until))
    return story


def run(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("example", STORIES)
def test_the_seeds_stories_happen_as_they_are_told(example):
    unit, expected = STORIES[example]
    lives = {life.pod.name: life for life in play(EXAMPLES / example).lives.values()}
    for name, (started, ended, end) in expected.items():
        life = lives[name]
        assert (life.started / unit, life.ended / unit, life.end) == (started, ended, end), name


def test_a_node_is_reserved_for_the_big_job_when_it_has_starved_and_not_before():
    [life] = [each for each in play(EXAMPLES / "big-job").lives.values() if each.pod.name == "pod-4"]
    assert life.reserved == pytest.approx(48 * HOUR + 1, abs=1)


def test_with_other_settings_the_story_is_another():
    settings = Settings(reserve={"max_nodes_percent": 0})
    lives = {life.pod.name: life for life in play(EXAMPLES / "big-job", settings=settings).lives.values()}
    assert (lives["pod-4"].reserved, lives["pod-7"].started) == (None, 50 * HOUR), "pod-7 has slipped in before it"


def test_the_chart_shows_who_waits_for_whom_a_node_is_reserved_and_who_runs(tmp_path):
    status, text = run("simulate", EXAMPLES / "big-job", "--html", tmp_path / "chart.html")
    assert status == 0
    [row] = [line for line in text.splitlines() if line.startswith("jobs/pod-4")]
    assert re.fullmatch(r"jobs/pod-4 ·+▒+█+", row)
    page = (tmp_path / "chart.html").read_text()
    assert "jobs/pod-4 a node is reserved for it, 2d to 2d 12h" in page
    assert "http" not in page


def test_the_chart_shows_who_was_evicted_and_how_much_is_used():
    _, text = run("simulate", EXAMPLES / "lend-and-take-back")
    assert re.search(r"^team-a/a-3 +█+x$", text, re.MULTILINE)
    assert re.search(r"^team-b nvidia.com/gpu \(peak 6\) ▄+█+▄+$", text, re.MULTILINE)


def test_who_waits_in_the_end_is_told_why():
    assert (
        "team-a/a-4 waits: ElasticQuota max exceeded: nvidia.com/gpu"
        in run("simulate", EXAMPLES / "lend-and-take-back", "--until", "2h45m")[1]
    )


def test_a_change_of_a_folder_is_told_as_what_would_be_different(tmp_path):
    folder = Folder(tmp_path)
    bounds = [quota("a", min={"cpu": 2}, max={"cpu": 3}), quota("b", min={"cpu": 1})]
    folder.write("all/all.yaml", node("n1", **cpus(3)), *bounds, *running("a", 3), pod("p", "b"))
    changes = folder.write("changes.yaml", node("n2", **cpus(3)))
    told = run("simulate", tmp_path / "all", "--apply", changes)[1].splitlines()
    assert told == [
        "runs: b/p on n2 (anyway)",
        "spared: a/r-2, which would be evicted otherwise",
        "ElasticQuota b/quota: used.cpu 0 -> 1, used.pods 0 -> 1",
    ]
    assert run("simulate", tmp_path / "all", "--remove", "Pod/a/r-0")[1].splitlines()[0] == "runs: b/p on n1 (anyway)"


def test_a_running_server_is_asked_what_would_be(tmp_path):
    store = store_with(node("n1", **cpus(3)), quota("b", max={"cpu": 1}), *running("b", 1), pod("p", "b"))
    changes = Folder(tmp_path).write("more.yaml", quota("b", max={"cpu": 2}))
    with Forwarding(client_of(store)) as server:
        status, told = run("whatif", "--apply", changes, "--server", server.url)
        assert (status, told.splitlines()[0]) == (0, "runs: b/p on n1")
        status, told = run("whatif", "--remove", "Pod/b/nobody", "--server", server.url)
        assert (status, told.split(": ", 1)[0]) == (1, f"{server.url} answers 422")
    assert store.cluster.quotas["b"]["quota"].max == {"cpu": 1000}


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "/nowhere"],
        ["simulate", EXAMPLES / "big-job", "--until", "soon"],
        ["simulate", EXAMPLES / "big-job", "--apply", "/nowhere.yaml"],
        ["simulate", EXAMPLES / "big-job", "--remove", "pod-1"],
        ["simulate", EXAMPLES / "big-job", "--config", "/nowhere.yaml"],
        ["simulate", "/nowhere", "--remove", "Pod/jobs/pod-1"],
        ["whatif", "--remove", "Pod"],
    ],
)
def test_what_cannot_be_simulated_is_said_in_a_sentence(arguments):
    status, text = run(*arguments)
    assert status == 2
    assert len(text.splitlines()) == 1
    assert "Traceback" not in text


@pytest.mark.parametrize("removed", ["Pod/jobs/nobody", "Job/jobs/pod-1"])
def test_what_cannot_be_changed_is_the_same_failure_in_a_folder_and_on_a_server(removed):
    simulated, why = run("simulate", EXAMPLES / "big-job", "--remove", removed)
    with Forwarding(client_of(store_with())) as server:
        asked, told = run("whatif", "--remove", removed, "--server", server.url)
    assert (simulated, asked) == (1, 1)
    assert told == f"{server.url} answers 422: {why}"


@pytest.mark.parametrize("changes", [[], ["--remove", "Node/n"]])
def test_a_manifest_that_cannot_be_used_is_said_beside_the_others_and_is_a_failure(tmp_path, changes):
    Folder(tmp_path).write("all.yaml", node("n"), pod("p"), quota("a", max={"cpu": "x"}))
    status, text = run("simulate", tmp_path, *changes)
    assert status == 1
    assert "ElasticQuota a/quota: spec.max.cpu" in text
    assert "a/p" in text


def test_a_duration_that_cannot_be_read_is_a_problem_of_its_file(tmp_path):
    late = pod("late", metadata={"annotations": {scenario.AT: "later"}})
    Folder(tmp_path).write("all.yaml", node("n1"), late)
    [problem] = scenario.read(tmp_path).problems
    assert "'later' is not a duration" in problem
    assert "all.yaml" in problem
