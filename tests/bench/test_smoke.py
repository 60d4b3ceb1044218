"""Benchmarks that nobody runs rot: each is run once, as small as it goes. Its figures mean nothing here."""

import json
import os
import subprocess
import sys

import pytest

BY_THEMSELVES = ["protocol", "planner", "remedies"]
WITH_A_CONTROL_PLANE = ["store", "interference", "scheduler", "jobs", "devices", "replay"]
"""Each starts one of its own, and several programs after it: minutes on a busy machine. Set QUOTAWARD_LONG=1."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", BY_THEMSELVES + (WITH_A_CONTROL_PLANE if os.environ.get("QUOTAWARD_LONG") else []))
def test_the_benchmark_runs(name):
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", name],
        env=os.environ | {"QUOTAWARD_BENCH_SCALE": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures
    assert all(figure["value"] > 0 for figure in figures), figures


def run_on_a_log(folder, module, *options):
    """Runs a benchmark on a log of twenty jobs, each of half of the cluster for an hour."""
    line = "{number} {submit} 0 3600 2 -1 -1 2 -1 -1 1 {user} 1 -1 1 1 -1 -1"
    jobs = [line.format(number=number, submit=10 * number, user=number % 2) for number in range(20)]
    log = folder / "log.swf"
    log.write_text("\n".join(["; MaxProcs: 4", "; MaxNodes: 4", *jobs, ""]))
    command = [
        sys.executable,
        "-m",
        f"tests.bench.{module}",
        str(log),
        "--to",
        "1d",
        "--starving-after",
        "60",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_six_policies_are_played_on_a_log(tmp_path):
    told = {each["policy"]: each for each in json.loads(run_on_a_log(tmp_path, "policies", "-o", "json"))["policies"]}
    assert list(told) == ["none", "static", "elastic", "queues", "reservations", "backfill"]
    assert told["none"]["waits"]["mean"] > 0
    assert not any(told["none"]["promises"].values())
    assert told["backfill"]["promises"]["kept"] > 0


def test_expected_starts_are_compared_with_real_ones(tmp_path):
    told = run_on_a_log(tmp_path, "expected_starts")
    assert int(told.partition(" jobs had a start by declared run times")[0]) > 0, told
