"""What devices cost: start, memory and filter, with eight devices on each node and 20,000 claims, against none."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench import world
from tests.bench.figures import Figure
from tests.bench.filling import Etcd, filled
from tests.bench.line import Line
from tests.bench.sizes import NODES, PODS, QUEUES, QUOTAS, SCALE
from tests.cases.serving import go_json
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.devices import DRIVER, asking, claims, device_class, devices, made
from tests.controlplane.objects import GPU
from tests.controlplane.processes import processor_seconds, resident_memory, wait_until
from tests.controlplane.quotaward import Quotaward

CLAIMS = PODS * 2 // 5
EACH = 8
"""Devices of a node."""
ASKED = max(50, 2000 // SCALE)
"""How often filter is asked."""


@dataclass(frozen=True, slots=True)
class Started:
    """Seconds until it was ready, and those of its own time; MB that it took then; microseconds of filter."""

    seconds: float
    busy: float
    memory: float
    filter: float


def run() -> list[Figure]:
    """Starts against one cluster without devices, with those of nodes, and with claims of pods as well."""
    with (
        tempfile.TemporaryDirectory() as name,
        filled(Path(name), world.objects(NODES, PODS, QUOTAS, QUEUES)) as (control_plane, etcd),
    ):
        without = _start(control_plane)
        control_plane.api.create(device_class("gpu", extendedResourceName=GPU))
        _put(control_plane, etcd, _slices())
        with_slices = _start(control_plane)
        events = _taken_in(control_plane, etcd)
        with_claims = _start(control_plane)
    size = f"{NODES} nodes of {EACH} devices, {CLAIMS} claims, {PODS} pods"
    more = with_slices.memory - without.memory
    busy = f"{with_claims.busy:.1f} s of its own time, without devices {without.busy:.1f} s"
    asked = f"{with_claims.filter:.0f} us against {without.filter:.0f} us"
    return [
        Figure("cold start with devices", with_claims.seconds, "s", 15, 6, detail=f"{busy}; {size}"),
        Figure("resident memory there", with_claims.memory, "MB", 400, 200, detail=f"without {without.memory:.0f} MB"),
        Figure(f"memory for {NODES} slices", max(more, 0.1), "MB", 60),
        Figure("memory for the claims", max(with_claims.memory - with_slices.memory, 0.1), "MB"),
        Figure("claims taken in, by the second of its own time", events, "/s"),
        Figure("filter with devices, p50, against none", with_claims.filter / without.filter, "x", 1.15, detail=asked),
    ]


def _start(control_plane: ControlPlane) -> Started:
    quotaward, began = Quotaward(control_plane, ready_within=300), time.monotonic()
    with quotaward:
        seconds, pid = time.monotonic() - began, quotaward.process.pid
        return Started(seconds, processor_seconds(pid), resident_memory(pid), _filter(quotaward))


def _filter(quotaward: Quotaward) -> float:
    """The median, for pods that ask for no devices: most do not."""
    names = [f"node-{number}" for number in range(min(500, NODES))]
    pods = [world.pod(10**6 + number, number % world.OWNERS) for number in range(50)]
    bodies = [go_json({"Pod": each, "Nodes": None, "NodeNames": names}) for each in pods]
    with Line(quotaward.port) as line:
        times = [line.ask("filter", bodies[number % len(bodies)]) for number in range(ASKED)]
    return statistics.median(times[len(times) // 10 :])  # the first ones warm up


def _taken_in(control_plane: ControlPlane, etcd: Etcd) -> float:
    """Claims by the second of the process's own time, with the pods that have them."""
    with Quotaward(control_plane, ready_within=300) as quotaward:
        before = processor_seconds(quotaward.process.pid)
        etcd.put(_claiming())
        _put(control_plane, etcd, _claims())
        there = partial(quotaward.metric, "quotaward_store_objects", kind="resourceclaims")
        wait_until(lambda: there() >= CLAIMS, "all claims are seen", 300, every=0.2)
        return CLAIMS / (processor_seconds(quotaward.process.pid) - before)


def _put(control_plane: ControlPlane, etcd: Etcd, items: Iterator[world.Object]) -> None:
    etcd.put(items)
    wait_until(lambda: etcd.is_served(control_plane.api), "the API server serves all that was put", 300)


def _slices() -> Iterator[world.Object]:
    """As a driver writes them: each device with a few attributes and a capacity."""
    for number in range(NODES):
        item = devices(EACH, f"node-{number}")
        for each in item["spec"]["devices"]:
            texts = {"model": "gpu-80", "uuid": f"{number}-{each['name']}", "pcie": "0000:00:1e.0"}
            each["attributes"] = {name: {"string": text} for name, text in texts.items()} | {"index": {"int": 1}}
            each["capacity"] = {"memory": {"value": "80Gi"}}
        yield item


def _claiming() -> Iterator[world.Object]:
    """The pods again, with a claim each."""
    for number in range(CLAIMS):
        item = world.pod(number, number % QUOTAS, node=f"node-{number % NODES}")
        claims(item["spec"], resourceClaimTemplateName="gpu")
        item["status"]["resourceClaimStatuses"] = [{"name": "g", "resourceClaimName": f"claim-{number}"}]
        yield item


def _claims() -> Iterator[world.Object]:
    for number in range(CLAIMS):
        spec = asking(allocationMode="ExactCount", count=1)
        device = {
            "request": "g",
            "driver": DRIVER,
            "pool": f"node-{number % NODES}",
            "device": f"device-{number % EACH}",
        }
        reserved = {"resource": "pods", "name": f"pod-{number}", "uid": f"00000000-0000-0000-0000-{number:012}"}
        status = {"allocation": {"devices": {"results": [device]}}, "reservedFor": [reserved]}
        yield made("ResourceClaim", f"claim-{number}", f"team-{number % QUOTAS}", spec=spec, status=status)
