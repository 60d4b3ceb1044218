"""Runs benchmarks: those that are named, or all that have bars, with one table of acceptance at the end."""

import sys
from collections.abc import Callable

from tests.bench import clients, devices, interference, jobs, planner, protocol, remedies, replay, scheduler, store
from tests.bench.figures import Figure, show

ACCEPTANCE: dict[str, Callable[[], list[Figure]]] = {
    "protocol": protocol.run,
    "planner": planner.run,
    "store": store.run,
    "interference": interference.run,
    "scheduler": scheduler.run,
    "jobs": jobs.run,
}
BENCHMARKS = ACCEPTANCE | {
    "clients": clients.run,
    "devices": devices.run,
    "remedies": remedies.run,
    "replay": replay.run,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark named {', '.join(sorted(unknown))}; there is {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    figures = []
    for name in names or ACCEPTANCE:
        print(f"{name} …", file=sys.stderr, flush=True)
        figures += BENCHMARKS[name]()
    show(figures)
    return 0


if __name__ == "__main__":  # one benchmark starts a process that imports this anew
    sys.exit(main(sys.argv[1:]))
