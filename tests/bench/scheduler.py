"""How many pods a real kube-scheduler binds by the second, and how soon it binds one whose quota was raised.

The same burst for each contender in turn, several times: without an extender, with one in Go that does nothing, with
Quotaward, and with scheduler-plugins' CapacityScheduling inside the scheduler.
"""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from app.store.heeded import JOBS_WAIT
from tests.bench import peer, world
from tests.bench.figures import Figure, middle
from tests.bench.filling import Etcd, filled
from tests.bench.sizes import QUEUES, QUOTAS, SCALE
from tests.controlplane.api import Api
from tests.controlplane.build import scheduler_with_plugins
from tests.controlplane.cluster import GATED as GATED_LABEL
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.gates import GATE
from tests.controlplane.objects import elastic_quota, job, pod
from tests.controlplane.processes import resident_memory, wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender

BURST = max(30, 3000 // SCALE)
SIZES = ((500, 3), (5000, 3)) if SCALE == 1 else ((max(10, 500 // SCALE), 1),)
"""How many nodes there are, and how often each contender is measured there."""
WAKES = max(3, 20 // SCALE)
JOBS, PODS_OF_A_JOB = max(100, 10_000 // SCALE), 5
NONE, NOOP, OURS, WAITING, GATED, QUEUED, PLUGIN = (
    "no extender",
    "Go no-op",
    "Quotaward",
    "Quotaward, as many refused pods waiting",
    "Quotaward, as many waiting at gates",
    f"Quotaward, {JOBS} Jobs of {PODS_OF_A_JOB} pods waiting as a whole",
    "CapacityScheduling",
)
CROWD, REFUSED, OUTSIDE, WOKEN = "crowd", "refused", "outside", "woken"
RULES = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt"}


def run() -> list[Figure]:
    """Bursts on a cluster of each size, and then quotas that are raised."""
    figures = []
    for nodes, times in SIZES:
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            control_plane, etcd = stack.enter_context(filled(Path(name), _cluster(nodes)))
            control_plane.kwok.start()
            _wait_for_nodes(control_plane.api, nodes)
            memory: dict[str, list[float]] = {OURS: [], QUEUED: []}
            rates = _rates(control_plane, etcd, times, memory, with_refused=nodes == SIZES[0][0])
            figures += _figures(nodes, rates, memory)
            if nodes == SIZES[0][0]:
                figures.append(_wakes(control_plane))
    return figures


def _cluster(nodes: int) -> Iterator[world.Object]:
    """Nodes, and quotas and queues of which those of the burst are a few."""
    yield from world.objects(nodes, 0, QUOTAS, QUEUES)
    plenty = {"cpu": "100000", "memory": "100000Gi"}  # both: for CapacityScheduling no min is a min of nothing
    for name, most in ((CROWD, plenty), (REFUSED, {"cpu": "0"}), (OUTSIDE, {"cpu": "0"}), (WOKEN, {"cpu": "0"})):
        labels = {GATED_LABEL: "true", JOBS_WAIT: "queued"} if name == OUTSIDE else {}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        yield elastic_quota(name, min=most, max=most)


def _wait_for_nodes(api: Api, count: int) -> None:
    def ready() -> bool:
        nodes = api.items("nodes")
        conditions = [condition for node in nodes for condition in node["status"].get("conditions", ())]
        return sum(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions) >= count

    wait_until(ready, f"{count} nodes are ready", 300, every=1)


def _rates(
    control_plane: ControlPlane, etcd: Etcd, times: int, memory: dict[str, list[float]], *, with_refused: bool
) -> dict[str, list[float]]:
    """Pods by the second, by contender. ``memory`` gets the MB that a Quotaward of these contenders has after each."""
    contenders: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        NONE: lambda: Scheduler(control_plane),
        NOOP: lambda: _with_noop(control_plane),
        OURS: lambda: _with_quotaward(control_plane),
    }
    if with_refused:
        contenders[WAITING] = lambda: _with_waiting(control_plane, etcd)
    contenders[GATED] = lambda: _with_gated(control_plane, etcd)
    contenders[QUEUED] = lambda: _with_queued(control_plane, etcd)
    contenders[PLUGIN] = lambda: _with_plugin(control_plane)
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(times):
        for name, contender in contenders.items():  # in turn, so that a slow minute of the machine hits all
            with contender() as running:
                rates[name].append(_burst(control_plane, etcd))
                if name in memory:
                    memory[name].append(resident_memory(running.process.pid))
            print(f"{name}: {rates[name][-1]:.0f} pods/s", file=sys.stderr, flush=True)
            _empty(control_plane, etcd, CROWD, REFUSED, OUTSIDE)
            etcd.delete("jobs", OUTSIDE)
            wait_until(lambda: not control_plane.api.items("jobs", OUTSIDE), "all Jobs are gone", 300)
    return rates


@contextmanager
def _with_noop(control_plane: ControlPlane) -> Iterator[None]:
    with peer.running(control_plane.directory) as port, Scheduler(control_plane, _entry(f"http://127.0.0.1:{port}")):
        yield


@contextmanager
def _with_quotaward(control_plane: ControlPlane) -> Iterator[Quotaward]:
    with Quotaward(control_plane) as quotaward, Scheduler(control_plane, _entry(quotaward.url)):
        yield quotaward


@contextmanager
def _with_waiting(control_plane: ControlPlane, etcd: Etcd) -> Iterator[None]:
    """Quotaward, after it has refused as many pods as the burst has: they come again and again."""
    etcd.put(_pods(REFUSED, BURST))
    with _with_quotaward(control_plane):
        wait_until(lambda: _all_refused(control_plane.api), "all pods have been refused", 300, every=1)
        yield


@contextmanager
def _with_gated(control_plane: ControlPlane, etcd: Etcd) -> Iterator[None]:
    """Quotaward, and as many pods as the burst has that it lets wait at their gates."""
    etcd.put(_pods(OUTSIDE, BURST, schedulingGates=[{"name": GATE}]))
    with _with_quotaward(control_plane) as quotaward:
        wait_until(lambda: quotaward.metric("quotaward_gated_pods") == BURST, "all wait at their gates", 300, every=1)
        yield


@contextmanager
def _with_queued(control_plane: ControlPlane, etcd: Etcd) -> Iterator[Quotaward]:
    """Quotaward, and Jobs that it lets wait as a whole: they are suspended, and have no pods."""
    etcd.put(job(f"job-{number}", OUTSIDE, PODS_OF_A_JOB, suspend=True) for number in range(JOBS))
    with _with_quotaward(control_plane) as quotaward:
        wait_until(lambda: quotaward.metric("quotaward_pending_jobs") == JOBS, "all Jobs wait", 300, every=1)
        yield quotaward


def _all_refused(api: Api) -> bool:
    pods = api.items("pods", REFUSED)
    return len(pods) >= BURST and all(item["status"].get("conditions") for item in pods)


@contextmanager
def _with_plugin(control_plane: ControlPlane) -> Iterator[None]:
    """CapacityScheduling in place of the scheduler's own preemption, as its documentation sets it up."""
    name = "CapacityScheduling"
    disabled, enabled = [{"name": "*"}], [{"name": name}]
    plugins = {
        "preFilter": {"enabled": enabled},
        "postFilter": {"enabled": enabled, "disabled": disabled},
        "reserve": {"enabled": enabled},
    }
    stock = control_plane.binaries["kube-scheduler"]
    control_plane.binaries["kube-scheduler"] = scheduler_with_plugins()
    try:
        with Scheduler(control_plane, profile={"plugins": plugins}):
            yield
    finally:
        control_plane.binaries["kube-scheduler"] = stock


def _entry(url: str) -> dict[str, Any]:
    return extender(url, **RULES)


def _burst(control_plane: ControlPlane, etcd: Etcd) -> float:
    """Pods by the second, from the moment when the first one is there until the last one is bound."""
    control_plane.api.collect_garbage()  # else that falls into some bursts and takes a fifth of them
    with _Bindings(control_plane.api) as bindings:
        began = time.monotonic()
        etcd.put(_pods(CROWD, BURST), at_once=1)
        wait_until(lambda: len(bindings.bound) >= BURST, f"{BURST} pods are bound", 300, every=0.02)
        return BURST / (time.monotonic() - began)


def _pods(namespace: str, count: int, **spec: Any) -> Iterator[world.Object]:
    for number in range(count):
        item = world.pod(number, 0)
        item["metadata"] |= {"namespace": namespace, "uid": f"{namespace}-{time.monotonic_ns()}-{number}"}
        item["spec"] |= {"schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 0} | spec
        yield item


class _Bindings:
    """Names of the pods of the burst that were seen on a node, while this is open."""

    def __init__(self, api: Api) -> None:
        self.bound: set[str] = set()
        self._api = api
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._since = self._api.request("GET", f"/api/v1/namespaces/{CROWD}/pods")["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=10)

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                for event in self._api.watch("pods", CROWD, self._since):
                    self._since = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK" and event["object"]["spec"].get("nodeName"):
                        self.bound.add(event["object"]["metadata"]["name"])
                    if self._over.is_set():
                        return
            except httpx.TransportError:
                self._over.wait(0.02)


def _empty(control_plane: ControlPlane, etcd: Etcd, *namespaces: str) -> None:
    for namespace in namespaces:
        etcd.delete("pods", namespace)
        wait_until(lambda namespace=namespace: not control_plane.api.items("pods", namespace), "all pods are gone")


def _figures(nodes: int, rates: dict[str, list[float]], memory: dict[str, list[float]]) -> Iterator[Figure]:
    for name, values in rates.items():
        rate, spread = middle(values, "pods/s")
        yield Figure(f"throughput, {nodes} nodes: {name}", rate, "pods/s", detail=spread)
    rate = {name: statistics.median(values) for name, values in rates.items()}
    size = f"throughput, {nodes} nodes: Quotaward"
    yield Figure(f"{size} against the Go no-op", rate[OURS] / rate[NOOP], "x", 1.15, 1.3, at_least=True)
    yield Figure(f"{size} against CapacityScheduling", rate[OURS] / rate[PLUGIN], "x", 0.75, 0.95, at_least=True)
    if WAITING in rate:
        what = f"throughput, {nodes} nodes: {BURST} refused pods waiting, against none"
        yield Figure(what, rate[WAITING] / rate[OURS], "x", None, 0.5, at_least=True)
    what = f"throughput, {nodes} nodes: {BURST} pods waiting at gates, against none"
    yield Figure(what, rate[GATED] / rate[OURS], "x", 0.95, 1.0, at_least=True)
    what = f"throughput, {nodes} nodes: {JOBS} Jobs waiting as a whole, against none"
    yield Figure(what, rate[QUEUED] / rate[OURS], "x", 0.97, 1.0, at_least=True)
    without, beside = (statistics.median(memory[name]) for name in (OURS, QUEUED))
    what = f"memory, {nodes} nodes: {JOBS} Jobs waiting as a whole"
    yield Figure(what, beside - without, "MB", 100, 50, detail=f"{without:.0f} -> {beside:.0f} MB")


def _wakes(control_plane: ControlPlane) -> Figure:
    """From the moment when a quota's max is raised until a pod that it had refused is bound."""
    api, times = control_plane.api, []
    with _with_quotaward(control_plane):
        for number in range(WAKES):
            name = f"waits-{number}"
            api.create(pod(name, WOKEN))
            wait_until(lambda name=name: api.get("pods", name, WOKEN)["status"].get("conditions"), "it is refused")
            began = time.monotonic()
            most = {"cpu": str(number + 1)}
            api.patch("elasticquotas", "quota", {"spec": {"min": most, "max": most}}, WOKEN)
            wait_until(
                lambda name=name: api.get("pods", name, WOKEN)["spec"].get("nodeName"), "it is bound", every=0.01
            )
            times.append(time.monotonic() - began)
    late = sorted(times)[int(len(times) * 0.95)]
    detail = f"median {statistics.median(times):.2f} s, longest {max(times):.2f} s, {WAKES} times"
    return Figure("max raised until a waiting pod is bound, p95", late, "s", 2, 0.5, detail=detail)
