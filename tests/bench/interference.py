"""How long filter takes while pods change by the thousand and plans are searched for, over how long it takes at rest."""

import http.client
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench import protocol, store, world
from tests.bench.figures import Figure
from tests.bench.filling import Etcd, filled
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
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        items = [*world.objects(NODES, PODS, QUOTAS, QUEUES), _searching()]
        control_plane, etcd = stack.enter_context(filled(directory, items))
        control_plane.kwok.kill()
        # nobody is evicted: that would end the search; the page asks for the same one
        quotaward = stack.enter_context(Quotaward(control_plane, "--controllers", "none", ready_within=300))
        times: dict[str, list[float]] = {"rest": [], "storm": []}
        events = searches = 0
        for turn in range(ROUNDS + 1):
            rest = _ask(quotaward)
            with _storm(quotaward, etcd) as counts:
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
    return [Figure("filter p99 in a storm of events and searches, over rest", storm_p99 / rest_p99, "x", 2, 1.3, detail=detail)]


def _searching() -> world.Object:
    """A pod that the scheduler has found no place for, and that may take some back."""
    pod = world.pod(3 * 10**6, 2, cpu="57", priority=1000)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node has room"}
    pod["status"]["conditions"] = [condition]
    return pod


def _ask(quotaward: Quotaward) -> list[float]:
    """Microseconds that each question took, for some seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", quotaward.port, timeout=30)
    body = go_json(protocol.filter_args(500)(0))
    times, until = [], time.monotonic() + SECONDS
    while time.monotonic() < until:
        times.append(protocol.ask(connection, "filter", body))
        time.sleep(PACE)
    connection.close()
    return times


@contextmanager
def _storm(quotaward: Quotaward, etcd: Etcd) -> Iterator[dict[str, int]]:
    """Events at their rate, and one search after the other; what there was of them."""
    over, counts = threading.Event(), {"events": 0, "searches": 0}

    def change() -> None:
        began = time.monotonic()
        while not over.is_set():
            due = int((time.monotonic() - began) * RATE) - counts["events"]
            if due < 50:  # noqa: PLR2004 - a transaction at a time
                over.wait(0.01)
                continue
            etcd.put(store.changed(due, counts["events"]))
            counts["events"] += due

    def search() -> None:
        while not over.is_set():
            quotaward.get("/api/v1/plan")
            counts["searches"] += 1

    threads = [threading.Thread(target=work, daemon=True) for work in (change, search)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        over.set()
        for thread in threads:
            thread.join()
