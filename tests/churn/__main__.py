"""Churn by one command: ``python -m tests.churn --minutes 60``. Fails where memory or work for a pod grows."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.bench.figures import show
from tests.churn.run import Minute, figures, run
from tests.controlplane.control_plane import ControlPlane


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.churn", description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="churn-"))
    print(f"seed {given.seed}, logs in {directory}", flush=True)
    with ControlPlane(directory) as control_plane:
        minutes = run(control_plane, given.minutes, given.seed, _tell)
    found = figures(minutes)
    show(found)
    return any(each.verdict == "MISSED" for each in found)


def _tell(minute: Minute) -> None:
    print(
        f"{minute.memory:7.1f} MB  {minute.work:6.2f} ms for each of {minute.made} pods  {minute.waiting} wait",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
