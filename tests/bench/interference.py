"""How long filter takes while pods change by the thousand and plans are searched for, against how long at rest.

What is measured is whom the process lets wait, not who gets a core: it has one of its own, and who asks goes before all
that makes the storm.
"""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.bench import cores, protocol, store, world
from tests.bench.figures import Figure
from tests.bench.filling import Etcd, filled
from tests.bench.line import Line
from tests.bench.sizes import NODES, PODS, QUEUES, QUOTAS, SCALE
from tests.cases.serving import go_json
from tests.controlplane.quotaward import Quotaward

RATE = 1000
"""Events of pods by the second."""
ROUNDS, SECONDS = 4, max(1.0, 8.0 / SCALE)
PACE = 0.005
"""Seconds between questions: the scheduler does other things in between."""


def run() -> list[Figure]:
    """Asks at rest and in the storm in turn."""
    with ExitStack() as stack:
        core = stack.enter_context(cores.one_left_free())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        items = [*world.objects(NODES, PODS, QUOTAS, QUEUES), _searching()]
        control_plane, _ = stack.enter_context(filled(directory, items))
        # nobody is evicted: that would end the search; the page asks for the same one
        quotaward = stack.enter_context(Quotaward(control_plane, "--controllers", "none", ready_within=300))
        cores.move(quotaward.process.pid, core)
        times: dict[str, list[float]] = {"rest": [], "storm": []}
        events = searches = 0
        for turn in range(ROUNDS + 1):
            rest = _ask(quotaward)
            with _storm(quotaward.url, control_plane.etcd_url) as counts:
                storm = _ask(quotaward)
            if turn:  # the first turn only warms up
                times["rest"] += rest
                times["storm"] += storm
                events, searches = events + counts["events"], searches + counts["searches"]
    rest_p50, rest_p99 = protocol.quantiles(times["rest"])
    storm_p50, storm_p99 = protocol.quantiles(times["storm"])
    took = ROUNDS * SECONDS
    detail = (
        f"p99 {rest_p99:.0f} -> {storm_p99:.0f} us, p50 {rest_p50:.0f} -> {storm_p50:.0f} us;"
        f" {events / took:.0f} events and {searches / took:.1f} searches by the second"
    )
    return [
        Figure(
            "filter p99 in a storm of events and searches, over rest", storm_p99 / rest_p99, "x", 2, 1.3, detail=detail
        )
    ]


def _searching() -> world.Object:
    """A pod that the scheduler has found no place for, and that may take some back."""
    pod = world.pod(3 * 10**6, 2, cpu="57", priority=1000)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node has room"}
    pod["status"]["conditions"] = [condition]
    return pod


def _ask(quotaward: Quotaward) -> list[float]:
    """Microseconds that each question took, for some seconds."""
    body = go_json(protocol.filter_args(500)(0))
    times, until = [], time.monotonic() + SECONDS
    with Line(quotaward.port) as line, cores.urgent():
        while time.monotonic() < until:
            times.append(line.ask("filter", body))
            time.sleep(PACE)
    return times


@contextmanager
def _storm(url: str, etcd_url: str) -> Iterator[dict[str, int]]:
    """Events at their rate, and one search after the other, from another process; what there was of them at the end."""
    spawn = multiprocessing.get_context("spawn")
    begun, over, counted = spawn.Event(), spawn.Event(), spawn.Queue()
    process = spawn.Process(target=_make_storm, args=(url, etcd_url, begun, over, counted), daemon=True)
    process.start()
    counts: dict[str, int] = {}
    try:
        if not begun.wait(120):
            raise RuntimeError("the storm did not begin")
        yield counts
        over.set()
        counts |= counted.get(timeout=120)
    finally:
        process.kill()
        process.join()


def _make_storm(url: str, etcd_url: str, begun: Any, over: Any, counted: Any) -> None:
    counts = {"events": 0, "searches": 0}
    searching = threading.Thread(target=_search, args=(url, over, counts), daemon=True)
    searching.start()
    etcd, began = Etcd(etcd_url), time.monotonic()
    begun.set()
    while not over.is_set():
        due = min(100, int((time.monotonic() - began) * RATE) - counts["events"])
        if due < 50:
            over.wait(0.01)
        else:
            etcd.put(store.changed(due, counts["events"]))
            counts["events"] += due
    searching.join(timeout=60)
    counted.put(counts)


def _search(url: str, over: Any, counts: dict[str, int]) -> None:
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        while not over.is_set():
            client.get("/api/v1/plan").raise_for_status()
            counts["searches"] += 1
