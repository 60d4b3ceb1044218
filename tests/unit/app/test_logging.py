"""Logs on standard error: a line for each event, for people or for programs."""

import json
import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from app.observability.logging import Sink
from tests.cases.serving import Server, serving
from tests.controlplane.launch import QUOTAWARD
from tests.controlplane.processes import free_port, wait_until
from tests.unit.app.given import pod, quota

FULL = Path("/dev/full")
"""A device that no byte can be written to."""


@pytest.fixture
def logged(folder):
    """What a server logs with these flags, that serves a folder with one bad file."""
    folder.write("bad.yaml", "a: [")
    folder.write("good.yaml", quota("a"))

    def serve(*flags):
        file = folder.path.with_name("serve.log")
        with serving("--manifests", str(folder.path), *flags, log=file) as server:
            server.call("POST", "/extender/filter", b"{")
        printed = ("Quotaward serves", "In another", f"  {QUOTAWARD} explain", "  curl")
        return [line for line in file.read_text().splitlines() if not line.startswith(printed)]

    return serve


def test_as_json_every_line_is_an_object(logged):
    lines = [json.loads(line) for line in logged("--log.format", "json")]
    assert {"in sync", "manifest cannot be used", "bad request", "stopped"} <= {line["event"] for line in lines}
    assert all({"level", "timestamp"} <= set(line) for line in lines)
    [problem] = [line for line in lines if line["event"] == "bad request"]
    assert (problem["verb"], problem["status"], problem["level"]) == ("filter", 400, "warning")


def test_what_is_below_the_level_is_left_out(logged):
    lines = logged("--log.level", "error")
    assert len(lines) == 1
    assert "bad.yaml" in lines[0]


def closed_pipe():
    """A pipe that nobody reads any more."""
    reads, writes = os.pipe()
    os.close(reads)
    return os.fdopen(writes, "wb")


def full_disk():
    """A file that takes nothing."""
    return FULL.open("wb")


@contextmanager
def serving_into(stderr, folder, port):
    """A server with this standard error; None: with none at all."""
    closing = "2>&-" if stderr is None else ""
    command = [str(QUOTAWARD), "serve", "--manifests", str(folder.path), "--listen", f"127.0.0.1:{port}"]
    shell = ["sh", "-c", f'exec "$@" {closing}', "sh", *command, "--log.level", "debug"]
    process = subprocess.Popen(shell, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True)
    server = Server(port, process, folder.path)
    try:
        wait_until(lambda: not server.lives() or is_up(server), "it is up")
        yield server
    finally:
        process.terminate()
        process.wait(10)


def is_up(server):
    with suppress(OSError):
        return server.get("/readyz").status == 200


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="this system has no such device")
@pytest.mark.parametrize("stderr", [closed_pipe, full_disk, lambda: None], ids=["closed pipe", "full disk", "none"])
def test_a_log_that_cannot_be_written_changes_no_answer(stderr, folder):
    folder.write("good.yaml", quota("a", max={"cpu": "1"}))
    with serving_into(stderr(), folder, free_port()) as server:
        answer = server.ask("filter", {"Pod": pod("p", requests={"cpu": "2"}), "NodeNames": ["n1"]})
        assert (answer.status, answer.json["NodeNames"]) == (200, [])
        assert server.call("POST", "/extender/filter", b"{").status == 400
        metrics = server.get("/metrics").content.decode()
        [lost] = [line for line in metrics.splitlines() if line.startswith("quotaward_log_lines_lost_total ")]
        assert float(lost.split()[1]) > 0
    assert server.process.returncode == 0


def test_what_a_log_cannot_say_in_its_encoding_is_escaped(tmp_path):
    file = tmp_path / "log"
    with file.open("w", encoding="ascii") as stream:
        Sink(stream).write("\N{EURO SIGN} \udcff\n")
    assert file.read_text() == "\\u20ac \\udcff\n"
