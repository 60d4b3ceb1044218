"""Chaos by one command: ``python -m tests.chaos --minutes 15 --seed 1``. Logs and history stay in a directory."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.chaos.checker import violations
from tests.chaos.history import History, read
from tests.chaos.run import LEEWAY, run
from tests.chaos.workload import LARGE, SMALL
from tests.controlplane.control_plane import ControlPlane


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--small", action="store_true", help="30 nodes and 10 quotas instead of 200 and 30")
    parser.add_argument("--fault-seconds", type=float, default=10, help="how long a fault lasts, about")
    parser.add_argument("--check", type=Path, metavar="FILE", help="only check the history.jsonl of an earlier run")
    given = parser.parse_args()
    if given.check:
        found = violations(History(read(given.check)), LEEWAY)
        print(*found, f"{len(found)} violations", sep="\n")
        return bool(found)
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    print(f"seed {given.seed}, logs in {directory}", flush=True)
    with ControlPlane(directory) as control_plane:
        size = SMALL if given.small else LARGE
        outcome = run(control_plane, directory, size, given.seed, 60 * given.minutes, given.fault_seconds)
    print(*outcome.violations, outcome, sep="\n")
    return bool(outcome.violations)


if __name__ == "__main__":
    sys.exit(main())
