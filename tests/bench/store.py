"""How fast, and in how much memory, a process takes in a large cluster from a real API server."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench import world
from tests.bench.figures import Figure, middle
from tests.bench.filling import Etcd, filled
from tests.bench.sizes import NODES, PODS, QUEUES, QUOTAS, SCALE
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.processes import processor_seconds, resident_memory, wait_until
from tests.controlplane.quotaward import Quotaward

STARTS = 3 if SCALE == 1 else 1
EVENTS = max(200, PODS * 2 // 5)


def run() -> list[Figure]:
    """Starts against the same cluster some times, and then changes pods as fast as etcd takes it."""
    with (
        tempfile.TemporaryDirectory() as name,
        filled(Path(name), world.objects(NODES, PODS, QUOTAS, QUEUES)) as (control_plane, etcd),
    ):
        started = [_start(control_plane) for _ in range(STARTS)]
        events, detail = _events(control_plane, etcd)
    size = f"{PODS} pods, {NODES} nodes, {QUOTAS} quotas, {QUEUES} queues"
    seconds, spread = middle([took for took, _ in started], "s")
    memory, range_ = middle([resident for _, resident in started], "MB")
    return [
        Figure("cold start to ready, from a real API server", seconds, "s", 15, 6, detail=f"{spread}; {size}"),
        Figure("resident memory there", memory, "MB", 400, 200, detail=range_),
        Figure(
            "events applied, by the second of its own time", events, "/s", 5000, 15_000, at_least=True, detail=detail
        ),
    ]


def _start(control_plane: ControlPlane) -> tuple[float, float]:
    """Seconds until it is ready, and MB that it then takes (once what came with the first list is let go)."""
    quotaward = Quotaward(control_plane, ready_within=300)
    before = time.monotonic()
    with quotaward:
        took = time.monotonic() - before
        return took, resident_memory(quotaward.process.pid)


def _events(control_plane: ControlPlane, etcd: Etcd) -> tuple[float, str]:
    """Events of pods by the second of the process's own time: what a core of its own would take in."""
    with Quotaward(control_plane, ready_within=300) as quotaward:
        seen, before, began = _seen(quotaward), processor_seconds(quotaward.process.pid), time.monotonic()
        etcd.put(changed(EVENTS))
        put = time.monotonic() - began
        wait_until(lambda: _seen(quotaward) >= seen + EVENTS, "all events have been seen", 300, every=0.2)
        took = time.monotonic() - began
        busy = processor_seconds(quotaward.process.pid) - before
    return EVENTS / busy, f"{EVENTS} changes of pods, put in {put:.1f} s and taken in within {took:.1f} s"


def changed(count: int, start: int = 0) -> Iterator[world.Object]:
    """Pods as they are, but for a label: each is an event that has to be decoded and compared."""
    for number in range(start, start + count):
        at = number % PODS
        item = world.pod(at, at % QUOTAS, node=f"node-{at % NODES}")
        item["metadata"]["labels"]["round"] = str(number)
        yield item


def _seen(quotaward: Quotaward) -> int:
    return int(quotaward.metric("quotaward_watch_events_total", kind="pods"))
