"""Benchmarks that nobody runs rot: each is run once, as small as it goes. Its figures mean nothing here."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["protocol", "planner", "store", "interference", "scheduler"])
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
