"""Runs benchmarks: all of them, or those that are named."""

import sys

from tests.bench import clients, protocol

BENCHMARKS = {"clients": clients.main, "protocol": protocol.main}


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark named {', '.join(sorted(unknown))}; there is {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
    return 0


sys.exit(main(sys.argv[1:]))
