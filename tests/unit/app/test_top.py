"""``quotaward top``: a frame of what a server tells, and the live screen in a terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest
from typer.testing import CliRunner

from app.cli import app
from tests.browser.story import everything
from tests.cases.serving import serving
from tests.controlplane.launch import QUOTAWARD, run_quotaward
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import client_of, pod, queue, quota, store_with
from tests.unit.app.test_queued_jobs import QUEUE, job, labelled

GATE = {"name": "quotaward.dev/quota"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("top")
    (directory / "manifests").mkdir()
    everything(directory / "manifests")
    flags = ("--manifests", str(directory / "manifests"), "--controllers", "none")
    with serving(*flags, log=directory / "serve.log") as running:
        yield f"http://127.0.0.1:{running.port}"


def once(server):
    done = CliRunner().invoke(app, ["top", "--once", "--server", server])
    assert done.exit_code == 0, done.output
    return [re.split(r"\s{2,}", line.strip()) for line in done.output.splitlines()]


def test_a_frame_says_who_waits_and_whether_a_scheduler_calls(server):
    first, second, *_ = once(server)
    assert first[2] == "in sync, its controllers do not act, NO SCHEDULER HAS CALLED FILTER YET"
    assert second == [
        "5 pods wait: no room on nodes 2, elastic-quota-borrowing 1, elastic-quota-max 1, queue-deserved 1"
    ]


JOBS = [queue("q"), labelled(), labelled("b")]


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([], "No pods wait."),
        ([pod("p", schedulingGates=[GATE])], "1 at gates"),
        ([pod("p", schedulingGates=[GATE]), pod("q")], "1 pods wait: not tried yet 1; 1 at gates"),
        ([*JOBS, job("j"), job("k", annotations={QUEUE: "q"}), job("l", namespace="b")], "3 Jobs wait as a whole"),
        ([labelled(), job("j"), pod("p", schedulingGates=[GATE])], "1 at gates; 1 Jobs wait as a whole"),
    ],
)
def test_who_waits_at_gates_is_told_apart(items, told):
    with Forwarding(client_of(store_with(*items))) as running:
        assert once(running.url)[1] == [told]


def test_the_fullest_come_first_with_a_bar_that_tells_own_from_borrowed(server):
    rows = once(server)
    assert rows[4:6] == [
        ["search/quota", "nvidia.com/gpu", "█" * 24, "8", "8", "8"],
        ["vision/quota", "nvidia.com/gpu", "█" * 12 + "▓" * 6 + "·" * 6, "18", "12", "24"],
    ]
    assert ["sandbox/second", "nvidia.com/gpu", "░" * 24, "0", "4", "-", "Conflict"] in rows
    assert ["vision/quota", "memory", "█" * 9 + "·" * 15, "192Gi", "-", "512Gi"] in rows


def test_queues_and_reservations_have_their_tables(server):
    rows = once(server)
    [web] = [row for row in rows if row[:2] == ["web", "cpu"]]
    assert web[3:] == ["60", "59", "128"]
    assert [row[:4] for row in rows if row[0].startswith("gpu-")] == [
        ["gpu-3", "speech/serve-2", "Reclaim", "vision/train-3"],
        ["gpu-6", "ranking/rank-7", "Starving", "none"],
    ]


def test_into_a_pipe_goes_one_frame(server):
    done = run_quotaward("top", "--server", server)
    assert done.returncode == 0
    assert "search/quota" in done.stdout


def test_a_frame_says_that_a_server_only_observes():
    with Forwarding(client_of(store_with(quota("a", max={"cpu": 0}), pod("p")), observe=True)) as server:
        assert "in sync, ONLY OBSERVES: no pods are refused or evicted, " in once(server.url)[0][2]


def test_a_server_that_does_not_answer_is_said():
    done = CliRunner().invoke(app, ["top", "--server", "http://127.0.0.1:1"])
    assert done.exit_code == 1
    assert "http://127.0.0.1:1 does not answer as Quotaward does" in done.output


def read(terminal, enough):
    """What a program writes to its terminal until that is enough, or it has ended."""
    text, deadline = "", time.monotonic() + 60
    while not enough(text) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                text += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # nobody has it open any more
                break
    return text


@pytest.fixture
def _heeding_interrupts():
    """What is started in the background ignores them, and so would what it starts itself."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("_heeding_interrupts")
def test_the_screen_fits_the_terminal_and_is_left_by_an_interrupt(server):
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    environment = os.environ | {"LINES": "24", "COLUMNS": "100", "TERM": "xterm"}
    command = [QUOTAWARD, "top", "--server", server, "--interval", "0.2"]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    seen = read(master, lambda text: text.count("search/quota") >= 3)
    process.send_signal(signal.SIGINT)
    read(master, lambda _: False)  # it waits for somebody who reads how it leaves the screen
    assert process.wait(30) == 0
    os.close(master)
    assert seen.count("search/quota") >= 3
    frames = seen.split("\x1b[H")
    assert max(frame.count("\n") for frame in frames) <= 24
    assert " more" in seen
