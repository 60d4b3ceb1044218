"""Lists on the command line: their forms, sorted and watched, and what ``quotaward waiting`` shows."""

import json
import os
import re
import subprocess

import pytest
import yaml
from typer.testing import CliRunner

from app import cli_lists
from app.cli import app
from tests.controlplane.launch import QUOTAWARD, run_quotaward
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import client_of, node, pod, queue, quota, refused, store_with
from tests.unit.app.situations import cpus, running
from tests.unit.app.test_queued_jobs import job, labelled

WORLD = (
    node("n1", **cpus(9)),
    quota("b", min={"cpu": 9}, max={"cpu": 9}),
    quota("c", min={"cpu": 10}, max={"cpu": 10}),
    queue("q"),
    labelled(),
    *running("b", 2),
    refused(pod("p", "b"), "0/1 nodes are available: 1 Insufficient cpu."),
    job("train", 3),
)
LISTS = ["quotas", "queues", "reservations", "waiting", "gates", "jobs"]


@pytest.fixture
def server():
    with Forwarding(client_of(store_with(*WORLD))) as running_server:
        yield running_server.url


def run(*arguments):
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


@pytest.mark.parametrize("command", LISTS)
def test_a_list_can_be_had_as_a_document(server, command):
    status, text = run(command, "-o", "json", "--server", server)
    assert status == 0
    assert isinstance(json.loads(text)["items"], list)
    assert yaml.safe_load(run(command, "-o", "yaml", "--server", server)[1]) == json.loads(text)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("quotas", ["b/quota", "c/quota"]),
        ("queues", ["q"]),
        ("waiting", ["b/p", "a/job/train"]),
        ("gates", ["a/train"]),
        ("jobs", ["a/job/train"]),
        ("reservations", []),
    ],
)
def test_names_are_a_line_each(server, command, expected):
    assert run(command, "-o", "name", "--server", server) == (0, "".join(f"{name}\n" for name in expected))


def test_what_waits_can_be_explained_by_its_name(server):
    for name in run("waiting", "-o", "name", "--server", server)[1].split():
        assert run("explain", name, "--server", server)[0] == 0


@pytest.mark.parametrize(
    ("field", "expected"),
    [("max.cpu", ["b/quota", "c/quota"]), ("used.cpu", ["c/quota", "b/quota"]), ("namespace", ["b/quota", "c/quota"])],
)
def test_a_list_is_sorted_by_a_field_and_amounts_by_their_size(server, field, expected):
    assert run("quotas", "-o", "name", "--sort-by", field, "--server", server)[1].split() == expected


@pytest.mark.parametrize("field", ["nothing", "max.nothing", "conditions"])
def test_a_field_that_no_item_has_is_named(server, field):
    status, text = run("quotas", "--sort-by", field, "--server", server)
    assert (status, text.partition(";")[0]) == (2, f"--sort-by: no item has {field!r}")


@pytest.mark.parametrize("wide", [False, True])
def test_who_waits_has_a_row_per_job(server, wide):
    lines = [line.split() for line in run("waiting", *["-o", "wide"] * wide, "--server", server)[1].splitlines()]
    assert lines[0][:9] == ["NAMESPACE", "KIND", "NAME", "PODS", "QUEUE", "PLACE", "SINCE", "RULE", "WHY"]
    assert lines[0][9:] == [*["NAMES", "OF", "PODS"] * wide, "EXPECTED"], "who cuts columns finds those from before"
    assert [line[:4] for line in lines[1:]] == [["b", "Pod", "p", "1"], ["a", "Job", "train", "3"]]
    assert (lines[1][-2] == "p") == wide


def test_wide_lists_have_the_times_that_pods_run():
    said = {f"quotaward.dev/{kind}run-time": time for kind, time in (("", "30m"), ("min-", "1h"), ("max-", "2h30m"))}
    limited, unlimited = quota("a", max={"cpu": 1}), quota("b", max={"cpu": 1})
    limited["metadata"]["annotations"] = said
    line = queue("q", capability={"cpu": 1})
    line["metadata"]["annotations"] = {"quotaward.dev/max-run-time": "90m"}
    with Forwarding(client_of(store_with(node("n1", cpu=1), limited, unlimited, line))) as server:
        wide = [run(each, "-o", "wide", "--server", server.url)[1].splitlines() for each in ("quotas", "queues")]
        usual = [run(each, "--server", server.url)[1].splitlines() for each in ("quotas", "queues")]
    for lines, fewer in zip(wide, usual, strict=True):
        assert re.split(r"  +", lines[0])[-3:] == ["RUN TIME", "MIN RUN TIME", "MAX RUN TIME"]
        assert lines[0].startswith(fewer[0]), "who cuts columns finds those from before"
    assert [line.split()[-3:] for line in wide[0][1:]] == [["30m", "1h", "2h30m"], ["-", "-", "-"]]
    assert {tuple(line.split()[-3:]) for line in wide[1][1:]} == {("-", "-", "1h30m")}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-n", "a"], ["a/job/train"]),
        (["-n", "a", "-A"], ["b/p", "a/job/train"]),
        (["--rule", "no-room"], ["b/p"]),
        (["--limit", "1"], ["b/p"]),
    ],
)
def test_who_waits_can_be_narrowed_down(server, options, expected):
    assert run("waiting", *options, "-o", "name", "--server", server)[1].split() == expected


def test_a_pod_is_explained_as_kubectl_names_it(server):
    text = run("explain", "b/p", "--server", server)
    assert run("explain", "-n", "b", "p", "--server", server) == text
    assert json.loads(run("explain", "b/p", "-o", "json", "--server", server)[1])["summary"] == text[1].rstrip("\n")


@pytest.mark.parametrize("arguments", [["explain", "b/p"], ["plan"]])
def test_names_are_of_lists_only(server, arguments):
    assert run(*arguments, "-o", "name", "--server", server) == (2, "--output: name is for lists\n")


def test_a_watched_list_is_shown_again_when_it_has_changed(monkeypatch):
    monkeypatch.setattr(cli_lists, "AGAIN", 0.0)
    client = client_of(store_with(*WORLD))
    shown, asked = [], iter([1, 1, 2])

    def ask():
        if (number := next(asked, None)) is None:
            raise KeyboardInterrupt
        return client.get(f"/api/v1/waiting?limit={number}").json()

    listing = cli_lists.Listing(cli_lists.Format.TABLE, watch=True, sort_by="")
    listing.show(ask, lambda document, **_: shown.append(len(document["items"])), str)
    assert shown == [1, 2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_a_shell(shell):
    done = run_quotaward(env=os.environ | {"_QUOTAWARD_COMPLETE": f"source_{shell}"})
    assert done.returncode == 0
    assert "_QUOTAWARD_COMPLETE=complete_" in done.stdout


def test_commands_and_forms_are_completed():
    words = {"quotaward wai": "waiting\n", "quotaward waiting -o js": "json\n"}
    for typed, expected in words.items():
        asked = {"_QUOTAWARD_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        assert run_quotaward(env=os.environ | asked).stdout == expected


@pytest.mark.slow
def test_kubectl_finds_it_as_a_plugin(install_tools):
    path = f"{QUOTAWARD.parent}{os.pathsep}{os.environ['PATH']}"
    command = [install_tools["kubectl"], "quotaward", "--version"]
    done = subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("quotaward ")
