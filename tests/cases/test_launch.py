"""What tests start ends with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.launch import QUOTAWARD
from tests.controlplane.processes import wait_until

STARTS_AND_DIES = """
import os, sys
from pathlib import Path
from tests.controlplane.launch import fork_quotaward, launch

fork_quotaward()
print(launch(sys.argv[2:], Path(sys.argv[1]), os.environ).pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    "command", [["/bin/sleep", "300"], [QUOTAWARD, "serve", "--manifests", "."]], ids=["executed", "forked"]
)
def test_nothing_outlives_who_started_it_however_that_one_ended(tmp_path, command):
    (tmp_path / "log").touch()
    script = [sys.executable, "-c", STARTS_AND_DIES, tmp_path / "log", *command]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "QUOTAWARD_LISTEN": "127.0.0.1:0"}
    started = subprocess.run(script, stdout=subprocess.PIPE, cwd=tmp_path, env=env, timeout=60, check=False)
    wait_until(lambda: not runs(int(started.stdout)), "it is gone", 30)


def runs(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes() != b""  # empty where nobody has asked how it ended
    except OSError:
        return False
