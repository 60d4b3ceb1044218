"""Hostile tenants by one command: ``python -m tests.hostile --minutes 10``. Logs and history stay in a directory."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.bench.figures import Figure, show
from tests.controlplane.control_plane import ControlPlane
from tests.hostile.run import asking, asking_nobody, native_flags, run
from tests.hostile.world import Size


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="with hostile tenants; a quarter as long without")
    parser.add_argument("--tenants", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000, help="that stand on nodes")
    parser.add_argument("--honest-pace", type=float, default=25, help="pods of honest tenants by the second")
    parser.add_argument("--hostile-pace", type=float, default=40, help="requests of all hostile tenants by the second")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--unasked", action="store_true", help="the scheduler asks nobody, and no rule is checked")
    given = parser.parse_args()
    size = Size(given.tenants, given.nodes, given.pods, given.honest_pace, given.hostile_pace)
    directory = Path(tempfile.mkdtemp(prefix="hostile-"))
    print(f"seed {given.seed}, logs in {directory}", flush=True)
    with ControlPlane(directory, *native_flags()) as control_plane:
        extenders = asking_nobody if given.unasked else asking
        outcome = run(control_plane, directory, size, given.seed, 15 * given.minutes, 60 * given.minutes, extenders)
    for deed, count in sorted(outcome.deeds.items()):
        print(f"{count:8} {deed}")
    print(f"{outcome.bindings} bindings and {outcome.evictions} evictions checked")
    found = [] if given.unasked else outcome.violations
    print(*found, *outcome.unready, sep="\n")
    figures = [*outcome.figures, Figure("violations that the checker finds", len(found), "", 0, 0)]
    show(figures)
    return any(each.verdict == "MISSED" for each in figures)


if __name__ == "__main__":
    sys.exit(main())
