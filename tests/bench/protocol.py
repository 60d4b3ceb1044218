"""How long kube-scheduler waits for an answer, next to an extender in Go that does nothing.

One request in flight over a kept-alive connection, as kube-scheduler asks; both are asked in turn, so that a slow
minute of the machine hits both. ``QUOTAWARD_BENCH_SCALE`` divides the size of the cluster (1: 5,000 nodes, 50,000 pods,
1,000 quotas, 100 queues) and the number of requests.
"""

import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench import peer, world
from tests.cases.serving import GO_HEADERS, go_json, serving

SCALE = int(os.environ.get("QUOTAWARD_BENCH_SCALE", "1"))
NODES, PODS, QUOTAS, QUEUES = 5000, 50_000, 1000, 100
ROUNDS, EACH = 20, 40  # so many times in turn, so many requests each time


@dataclass(frozen=True)
class Row:
    """Figures in microseconds, and the ratios that the bars speak of."""

    what: str
    p50: float
    p99: float
    peer_p50: float
    peer_p99: float
    ratio_p50: float
    ratio_p99: float
    bar: str


def main() -> None:
    """Prints a table, and the same as JSON."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        large, small = directory / "large", directory / "small"
        sizes = NODES // SCALE, PODS // SCALE, max(4, QUOTAS // SCALE), max(2, QUEUES // SCALE)
        world.write(large, *sizes, waiting=[_preemptor(number) for number in range(EACH)])
        world.write(small, 50, 500, 10, 2)
        flags = ("--controllers", "none")
        ours = stack.enter_context(
            serving("--manifests", str(large), *flags, log=directory / "large.log", start_seconds=300)
        ).port
        lesser = stack.enter_context(serving("--manifests", str(small), *flags, log=directory / "small.log")).port
        theirs = stack.enter_context(peer.running(directory))
        rows = [
            _row("filter, admitted, 500 candidates", "filter", _filter(500), ours, theirs, "0.6 / 0.8"),
            _row("filter, admitted, 5,000 candidates", "filter", _filter(5000), ours, theirs, "0.3"),
            _row("filter, refused, 500 candidates", "filter", _filter(500, cpu="500"), ours, theirs, "0.8"),
            _row("prioritize, 500 candidates", "prioritize", _filter(500), ours, theirs, "0.7"),
            _row(f"preempt, {world.CROWDED} nodes with 30 pods each", "preempt", _preempt, ours, theirs, "3.0"),
            _row("filter in a large cluster, against a small one", "filter", _filter(50), ours, lesser, "1.15"),
        ]
    print(f"{'':48} {'p50 us':>8} {'p99 us':>8} {'peer':>8} {'peer p99':>8} {'p50 x':>6} {'p99 x':>6}  bar")
    for row in rows:
        print(
            f"{row.what:48} {row.p50:8.0f} {row.p99:8.0f} {row.peer_p50:8.0f} {row.peer_p99:8.0f}"
            f" {row.ratio_p50:6.2f} {row.ratio_p99:6.2f}  {row.bar}"
        )
    print(json.dumps([asdict(row) for row in rows]))


def _filter(candidates: int, cpu: str = "1") -> Callable[[int], dict[str, Any]]:
    names = [f"node-{number}" for number in range(min(candidates, NODES // SCALE))]
    return lambda number: {
        "Pod": world.pod(10**6 + number, number % world.OWNERS, cpu=cpu),
        "Nodes": None,
        "NodeNames": names,
    }


def _preemptor(number: int) -> dict[str, Any]:
    return world.pod(2 * 10**6 + number, number % 2 * 2, cpu="35", priority=1000)  # of an owner in no queue


def _preempt(number: int) -> dict[str, Any]:
    victims = {
        f"node-{node}": {
            "Pods": [
                {"UID": f"00000000-0000-0000-0000-{PODS // SCALE + node + at * world.CROWDED:012}"} for at in range(20)
            ],
            "NumPDBViolations": 0,
        }
        for node in range(world.CROWDED)
    }
    return {"Pod": _preemptor(number), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}


def _row(what: str, verb: str, arguments: Callable[[int], dict[str, Any]], ours: int, theirs: int, bar: str) -> Row:
    bodies = [go_json(arguments(number)) for number in range(EACH)]
    took: dict[int, list[float]] = {ours: [], theirs: []}
    connections = {port: http.client.HTTPConnection("127.0.0.1", port, timeout=30) for port in took}
    for turn in range(max(2, ROUNDS // SCALE) + 1):
        for port, connection in connections.items():
            times = [_ask(connection, verb, body) for body in bodies]
            took[port] += times if turn else []  # the first turn only warms up
    for connection in connections.values():
        connection.close()
    mine, others = (_quantiles(took[port]) for port in (ours, theirs))
    return Row(what, *mine, *others, mine[0] / others[0], mine[1] / others[1], bar)


def _ask(connection: http.client.HTTPConnection, verb: str, body: bytes) -> float:
    started = time.perf_counter()
    connection.request("POST", f"/extender/{verb}", body, GO_HEADERS)
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - started
    if answer.status != 200:
        raise RuntimeError(f"{verb}: {answer.status}")
    return took * 1e6


def _quantiles(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=100)[98]
