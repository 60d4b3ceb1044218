"""How long kube-scheduler waits for an answer, next to an extender in Go that does nothing.

One request in flight over a kept-alive connection, as kube-scheduler asks; both are asked in turn, so that a slow
minute of the machine hits both.
"""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.bench import cores, peer, world
from tests.bench.figures import Figure
from tests.bench.line import Line
from tests.bench.sizes import NODES, PODS, QUEUES, QUOTAS, SCALE
from tests.cases.serving import Server, go_json, serving

ROUNDS, EACH = 20, 40  # so many times in turn, so many requests each time

LEVELS = 5
RESERVING = min(500, NODES)
"""Nodes of the cluster in which some are reserved for others."""
PROMISED_NODES = min(100, RESERVING // 5)
"""Nodes of the same cluster that are reserved with promised starts, where filter is measured."""
LARGE, RESERVED, PROMISED, BESIDE, GROWTH, DEPTH = "large", "reserved", "promised", "beside", "growth", "depth"
"""Who is measured against whom: the large cluster or one with reservations against Go, one with promised starts (which
may leave room beside) against one without reservations, large against small, or a queue with four above it against one
without."""

Bounds = tuple[float, float]
"""The bar and the goal."""


def run() -> list[Figure]:
    """Asks both in turn, verb by verb."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        large, small = directory / "large", directory / "small"
        world.write(large, NODES, PODS, QUOTAS, QUEUES, waiting=[*_asked_about(), *map(_preemptor, range(EACH))])
        world.write(small, 50, 500, 10, 2, waiting=_asked_about())
        flags = ("--controllers", "none")
        ours = stack.enter_context(
            serving("--manifests", str(large), *flags, log=directory / "large.log", start_seconds=300)
        )
        lesser = stack.enter_context(
            serving("--manifests", str(small), *flags, log=directory / "small.log", start_seconds=300)
        )
        waiting = [*_asked_about(), *world.starving(20)]
        world.write(directory / "reserving", RESERVING, 10 * RESERVING, QUOTAS, QUEUES, waiting=waiting)
        reserving = stack.enter_context(
            serving(
                "--manifests", str(directory / "reserving"), *flags, log=directory / "reserving.log", start_seconds=300
            )
        ).port
        theirs = stack.enter_context(peer.running(directory))
        deep, flat = (
            stack.enter_context(_levels(directory / f"{levels}-levels", levels, flags)) for levels in (LEVELS, 1)
        )
        promised, beside_promised, unreserved = (
            stack.enter_context(_reserving(directory / f"{number}-promised-{cpu}", number, flags, cpu))
            for number, cpu in ((PROMISED_NODES, "60"), (PROMISED_NODES, "2"), (0, ""))
        )
        pairs = {LARGE: (ours.port, theirs), RESERVED: (reserving, theirs)}
        beside = {GROWTH: (ours, lesser), DEPTH: (deep, flat), PROMISED: (promised, unreserved)}
        beside[BESIDE] = beside_promised, unreserved
        pairs |= {pair: (one.port, other.port) for pair, (one, other) in beside.items()}
        figures = []
        core = None
        for what, verb, arguments, pair, bounds in _LINES:
            if pair in beside:  # who shares a core with whom weighs more than what is to be seen
                core = core if core is not None else stack.enter_context(cores.one_left_free())
                for each in beside[pair]:
                    cores.move(each.process.pid, core)
            figures += _figures(what, verb, arguments, pairs[pair], bounds)
        return figures


@contextmanager
def _levels(directory: Path, levels: int, flags: tuple[str, ...]) -> Iterator[Server]:
    """A server of a small cluster in which the pods that are asked about are in a queue so many levels down."""
    world.write(directory, 50, 500, 10, 2, waiting=map(_in_queue, range(EACH)), levels=levels)
    with serving("--manifests", str(directory), *flags, log=directory / "log") as server:
        yield server


@contextmanager
def _reserving(directory: Path, number: int, flags: tuple[str, ...], cpu: str) -> Iterator[Server]:
    """A server of a cluster in which so many nodes are reserved for pods of this size whose starts are promised."""
    waiting = [*_asked_about(), *world.starving(number, "2099-01-01T00:00:00Z", cpu)]
    world.write(directory, RESERVING, 10 * RESERVING, QUOTAS, QUEUES, waiting=waiting)
    with serving("--manifests", str(directory), *flags, log=directory / "log", start_seconds=300) as server:
        yield server


def _unreserved(number: int) -> dict[str, Any]:
    """The same question as that about all nodes, without those that are reserved."""
    return filter_args(RESERVING)(number) | {
        "NodeNames": [f"node-{each}" for each in range(PROMISED_NODES, RESERVING)],
    }


def filter_args(candidates: int, pod: Callable[[int], world.Object] | None = None) -> Callable[[int], dict[str, Any]]:
    names = [f"node-{number}" for number in range(min(candidates, NODES))]
    return lambda number: {"Pod": (pod or _small)(number), "Nodes": None, "NodeNames": names}


def _asked_about() -> Iterator[world.Object]:
    """The pods that the scheduler asks about: it has them from where the store has them."""
    for number in range(EACH):
        yield _small(number)
        yield _too_large(number)


def _small(number: int) -> world.Object:
    return _waiting(10**6 + number, number % world.OWNERS)


def _in_queue(number: int) -> world.Object:
    return _waiting(10**6 + number, 1 + number % 2 * 2)


def _too_large(number: int) -> world.Object:
    return _waiting(3 * 10**6 + number, number % world.OWNERS, cpu="500")


def _preemptor(number: int) -> world.Object:
    return _waiting(2 * 10**6 + number, number % 2 * 2, cpu="35", priority=1000)  # of an owner in no queue


def _waiting(number: int, namespace: int, **spec: Any) -> world.Object:
    pod = world.pod(number, namespace, **spec)
    pod["metadata"]["resourceVersion"] = "1"  # as every object has one
    return pod


def _preempt(number: int) -> dict[str, Any]:
    victims = {
        f"node-{node}": {
            "Pods": [{"UID": f"00000000-0000-0000-0000-{PODS + node + at * world.CROWDED:012}"} for at in range(20)],
            "NumPDBViolations": 0,
        }
        for node in range(world.CROWDED)
    }
    return {"Pod": _preemptor(number), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}


_LINES: tuple[tuple[str, str, Callable[[int], dict[str, Any]], str, tuple[Bounds, ...]], ...] = (
    ("filter, admitted, 500 candidates", "filter", filter_args(500), LARGE, ((0.6, 0.35), (0.8, 0.5))),
    ("filter, admitted, 5,000 candidates", "filter", filter_args(5000), LARGE, ((0.3, 0.2),)),
    ("filter, refused, 500 candidates", "filter", filter_args(500, _too_large), LARGE, ((0.8, 0.5),)),
    ("prioritize, 500 candidates, with reservations", "prioritize", filter_args(500), RESERVED, ((0.7, 0.4),)),
    (f"preempt, {world.CROWDED} nodes with 30 pods each", "preempt", _preempt, LARGE, ((3.0, 1.5),)),
    (
        f"filter, {RESERVING - PROMISED_NODES} candidates, {PROMISED_NODES} others with promised starts, against none",
        "filter",
        _unreserved,
        PROMISED,
        ((1.05, 1.05),),
    ),
    (
        f"filter, {RESERVING} candidates, {PROMISED_NODES} of them with promised starts, against none",
        "filter",
        filter_args(RESERVING),
        PROMISED,
        ((1.05, 1.05),),
    ),
    (
        f"filter, {RESERVING} candidates, {PROMISED_NODES} of them with promised starts and room beside, against none",
        "filter",
        filter_args(RESERVING),
        BESIDE,
        ((1.05, 1.05),),
    ),
    ("filter in a large cluster, against a small one", "filter", filter_args(50), GROWTH, ((1.15, 1.05),)),
    (
        f"filter in a queue {LEVELS} levels down, against 1",
        "filter",
        filter_args(50, _in_queue),
        DEPTH,
        ((1.05, 1.02),),
    ),
)


def _figures(
    what: str,
    verb: str,
    arguments: Callable[[int], dict[str, Any]],
    ports: tuple[int, int],
    bounds: tuple[Bounds, ...],
) -> list[Figure]:
    """The ratio of medians, and where there is a bar for it that of the 99th percentiles."""
    bodies = [go_json(arguments(number)) for number in range(EACH)]
    took: tuple[list[float], list[float]] = [], []
    with ExitStack() as stack:
        lines = [stack.enter_context(Line(port)) for port in ports]
        for turn in range(max(2, ROUNDS // SCALE) + 1):
            for times, line in zip(took, lines, strict=True):
                asked = [line.ask(verb, body) for body in bodies]
                if turn:  # the first one only warms up
                    times.extend(asked)
    mine, others = (quantiles(times) for times in took)
    return [
        Figure(f"{what}, {name}", own / other, "x", *bound, detail=f"{own:.0f} us against {other:.0f} us")
        for name, own, other, bound in zip(("p50", "p99"), mine, others, bounds, strict=False)
    ]


def quantiles(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=100)[98]
