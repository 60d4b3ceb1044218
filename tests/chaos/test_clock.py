"""A wall clock that is wrong reaches what Quotaward writes down, and not what it waits by."""

import subprocess
import sys
import time
from pathlib import Path

from tests.chaos.clock import Clock


def test_the_clock_is_wrong_by_what_the_file_says(tmp_path):
    file = tmp_path / "clock"
    file.write_text("-3600")
    assert abs(Clock(file).time() + 3600 - time.time()) < 5


def test_the_lease_and_the_reservations_are_written_by_the_wrong_clock(tmp_path):
    file = tmp_path / "clock"
    file.write_text("3600")
    program = """
import sys, time
from tests.chaos import clock
clock.set_wrong(sys.argv[1])
from app.controllers.reclaim import reclaim
from app.kube import lease
print(reclaim.Reclaim.__init__.__defaults__[0]() - time.clock_gettime(time.CLOCK_REALTIME))
print(lease.datetime.now(lease.UTC).timestamp() - time.clock_gettime(time.CLOCK_REALTIME))
"""
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", program, file], cwd=root, check=True, capture_output=True, text=True)
    assert all(abs(float(error) - 3600) < 5 for error in told.stdout.split()), told.stdout
