"""Benchmarks that nobody runs rot: each is run once, as small as it goes. Its figures mean nothing here."""

import json
import os
import subprocess
import sys

import pytest

BY_THEMSELVES = ["protocol", "planner", "remedies"]
WITH_A_CONTROL_PLANE = ["store", "interference", "scheduler", "jobs", "devices"]
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
