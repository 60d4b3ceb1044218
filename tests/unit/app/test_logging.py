"""Logs on standard error: a line for each event, for people or for programs."""

import json

import pytest

from tests.cases.serving import serving
from tests.controlplane.launch import QUOTAWARD
from tests.unit.app.given import quota


@pytest.fixture
def logged(folder):
    """What a server logs with these flags, that serves a folder with one bad file."""
    folder.write("bad.yaml", "a: [")
    folder.write("good.yaml", quota("a"))

    def serve(*flags):
        file = folder.path.with_name("serve.log")
        with serving("--manifests", str(folder.path), *flags, log=file) as server:
            server.call("POST", "/extender/filter", b"{")
        printed = ("Quotaward serves", "Ask it", f"  {QUOTAWARD} explain", "  curl")
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
