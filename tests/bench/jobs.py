"""Jobs that wait as a whole: how many are started by the second, whether each runs once and in the fair order, how soon
the pods of the next Job are bound after room was freed, and how long it takes to start all without Quotaward.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from app.settings import JobSettings
from tests.bench.figures import Figure
from tests.bench.sizes import SCALE
from tests.chaos.recorder import Recorder
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import is_bound, job
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.controlplane.queueing import queue_jobs_in, queueing
from tests.controlplane.quotaward import Quotaward, install_definitions
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.short_jobs import KINDS, Turns, kept, make, tenants

JOBS, PLACES = max(100, 10_000 // SCALE), max(10, 100 // SCALE)
AT_ONCE = max(50, 2000 // SCALE)
"""Jobs for which there are places at once."""
FREED = max(5, 40 // SCALE)
PODS_OF_A_JOB = 5
PROGRAM = Path(sys.executable).parent / "quotaward"


def run() -> list[Figure]:
    """Each part has a control plane of its own, which is empty."""
    figures = []
    one_by_one = partial(_places_for_all, concurrency=1)
    for part in (_through_places, _places_for_all, one_by_one, _room_freed, _released):
        with tempfile.TemporaryDirectory() as name, ControlPlane(Path(name)) as control_plane:
            cluster = Cluster(control_plane)
            install_definitions(control_plane.api)
            with queueing(cluster):
                for figure in part(cluster):  # told at once: on a busy machine all of them take an hour
                    told = f"{figure.what}: {figure.value:.3g} {figure.unit} {figure.detail}"
                    print(told, file=sys.stderr, flush=True)
                    figures.append(figure)
    return figures


@contextmanager
def _everybody(cluster: Cluster, *flags: str) -> Iterator[Quotaward]:
    """Quotaward, a scheduler that asks it, and what makes the pods of Jobs."""
    with ExitStack() as stack:
        stack.enter_context(ControllerManager(cluster.control_plane, "job-controller"))
        quotaward = stack.enter_context(Quotaward(cluster.control_plane, *flags))
        stack.enter_context(Scheduler(cluster.control_plane, extender(quotaward.url)))
        yield quotaward


def _through_places(cluster: Cluster) -> Iterator[Figure]:
    """All Jobs are made, wait, and run to the end."""
    given = tenants(cluster, JOBS)
    with _everybody(cluster) as quotaward, Recorder(cluster.api, KINDS, kept) as recorder:
        turns = Turns(recorder)
        make(cluster, given, "100ms", quotaward)
        cluster.node(cpu=PLACES)
        wait_until(lambda: turns.ended() == JOBS, "all have run", 3600, every=2, detail=turns.ended)
    starts = turns.starts()
    took = starts[-1].at - starts[0].at
    what = f"{JOBS} short Jobs through {PLACES} places"
    detail = f"{took:.0f} s, {JOBS / took:.0f} by the second: each place is free again when its Job has ended"
    once = JOBS - len(list(turns.wrong()))
    yield Figure(f"{what}: run exactly once", once, "Jobs", JOBS, at_least=True, detail=detail)
    yield Figure(f"{what}: started before or after the turn of its age, at most", turns.out_of_turn(), "turns", PLACES)
    yield Figure(f"{what}: more or less than the fair part, at most", turns.imbalance(given), "places", PLACES)


def _places_for_all(cluster: Cluster, concurrency: int = JobSettings().concurrency) -> Iterator[Figure]:
    """There are places for all that wait, at once."""
    given, flags = tenants(cluster, AT_ONCE), ("--jobs.concurrency", str(concurrency))
    with _everybody(cluster, *flags) as quotaward, Recorder(cluster.api, ("jobs",), kept) as recorder:
        turns = Turns(recorder)
        make(cluster, given, "1h", quotaward)
        cluster.node(cpu=AT_ONCE, pods=AT_ONCE)
        wait_until(lambda: len(turns.starts()) == AT_ONCE, "all are started", 600, every=1)
    starts = turns.starts()
    rate = (AT_ONCE - 1) / (starts[-1].at - starts[0].at)
    what = f"Jobs started by the second, places for {AT_ONCE} free, {concurrency} at a time"
    yield Figure(what, rate, "Jobs/s", 100, at_least=True)


def _room_freed(cluster: Cluster) -> Iterator[Figure]:
    """A Job ends, and the next one starts in its room."""
    namespace = cluster.namespace("freed")
    queue_jobs_in(cluster, namespace)
    with _everybody(cluster), PodWatch(cluster.api, namespace) as watch:
        number = FREED + 1
        cluster.api.create_all(_waiting(f"job-{n:03}", namespace) for n in range(number))
        cluster.node(cpu=PODS_OF_A_JOB)
        took = []
        for n in range(FREED):
            wait_until(lambda of=f"job-{n:03}": _bound(watch, of) == PODS_OF_A_JOB, "a Job runs", 120, every=0.005)
            cluster.api.delete("jobs", f"job-{n:03}", namespace)
            for item in watch.pods:  # no garbage collector runs
                cluster.api.delete("pods", item["metadata"]["name"], namespace, grace=0)
            since = time.monotonic()
            following = f"job-{n + 1:03}"
            wait_until(lambda of=following: _bound(watch, of) == PODS_OF_A_JOB, "the next runs", 120, every=0.005)
            took.append(time.monotonic() - since)
    took.sort()
    detail = f"median {took[len(took) // 2]:.2f} s, most {took[-1]:.2f} s, {FREED} times"
    what = f"room freed until all {PODS_OF_A_JOB} pods of the next Job are bound, p95"
    yield Figure(what, took[int(0.95 * len(took))], "s", 1.5, detail=detail)


def _released(cluster: Cluster) -> Iterator[Figure]:
    """Quotaward is gone, and somebody starts all that wait."""
    namespace = cluster.namespace("released")
    cluster.api.create_all(_waiting(f"job-{n:05}", namespace) for n in range(JOBS))
    with ControllerManager(cluster.control_plane, "job-controller"):
        since = time.monotonic()
        command = [PROGRAM, "jobs", "release", "--kubeconfig", str(cluster.control_plane.kubeconfig)]
        subprocess.run([*command, "--namespace", namespace], capture_output=True, check=True)
        took = time.monotonic() - since
    left = sum(bool(item["spec"].get("suspend")) for item in cluster.api.items("jobs", namespace))
    detail = f"{left} left suspended" if left else ""
    yield Figure(f"release of {JOBS} Jobs of {PODS_OF_A_JOB} pods", took, "s", 120, detail=detail)


def _waiting(name: str, namespace: str) -> dict:
    item = job(name, namespace, PODS_OF_A_JOB, suspend=True)
    item["metadata"]["labels"] = {"quotaward.dev/queued": "true"}
    return item


def _bound(watch: PodWatch, name: str) -> int:
    return sum(is_bound(item) and item["metadata"]["name"].startswith(f"{name}-") for item in watch.pods)
