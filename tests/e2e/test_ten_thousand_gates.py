"""Ten thousand pods wait at gates, and cost nothing; next to the same without gates. Only with QUOTAWARD_LONG=1."""

import itertools
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bench import peer
from tests.controlplane.gates import gated_namespace, is_gated, policy, right_to_open
from tests.controlplane.objects import is_bound, pods
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender

WAITING = int(os.environ.get("QUOTAWARD_WAITING", "10000"))
ADMISSIBLE = 600
RUNS = 3
FREED = 40
QUOTA = 20
_runs = itertools.count(1)
PROGRAM = Path(sys.executable).parent / "quotaward"

pytestmark = [
    pytest.mark.skipif(not os.environ.get("QUOTAWARD_LONG"), reason="takes a quarter of an hour"),
    pytest.mark.timeout(3600),
]


def test_ten_thousand_gated_pods_delay_nobody_and_are_released_in_a_minute(cluster, tmp_path):
    cluster.nodes(20, cpu=64)
    free = cluster.namespace("free")
    with PodWatch(cluster.api, free) as watch:
        of_peer = with_the_gates_of_others_and_an_extender_that_does_nothing(cluster, watch, tmp_path)
        with policy(cluster), right_to_open(cluster), Quotaward(cluster.control_plane) as quotaward:
            namespace = gated_namespace(cluster)
            with Scheduler(cluster.control_plane, extender(quotaward.url)):
                alone = max(pods_per_second(cluster, watch) for _ in range(RUNS))
                cluster.quota(namespace, max={"cpu": QUOTA})
                cluster.api.create_all(pods(WAITING, namespace))
                with PodWatch(cluster.api, namespace) as waiting:
                    wait_until(lambda: waiting.bound == QUOTA, "those within the quota are bound", timeout=300)
                    wait_until(lambda: quotaward.metric("quotaward_gated_pods") == WAITING - QUOTA, "the others wait")
                    beside_gates = max(pods_per_second(cluster, watch) for _ in range(RUNS))
                    took = sorted(seconds_until_next_is_bound(cluster, waiting) for _ in range(FREED))
            print("room freed to next bound:", *(f"{each:.2f}" for each in took), flush=True)
            since = time.monotonic()
            command = [PROGRAM, "gates", "release", "--kubeconfig", str(cluster.control_plane.kubeconfig)]
            said = subprocess.run([*command, "--namespace", namespace], capture_output=True, text=True, check=True)
            released = time.monotonic() - since
            assert not any(is_gated(item) for item in cluster.api.items("pods", namespace))
            print(f"\nreleased: {said.stdout.strip()} in {released:.1f} s")
            with Scheduler(cluster.control_plane, extender(quotaward.url)):
                refused = {"rule": "elastic-quota-max"}
                wait_until(
                    lambda: quotaward.metric("quotaward_pending_pods", **refused) >= WAITING - 2 * QUOTA - FREED,
                    "all are refused",
                    timeout=1200,
                    every=2,
                )
                beside_refused = max(pods_per_second(cluster, watch) for _ in range(2))
            delete_pods(cluster, namespace)
    p95 = took[int(0.95 * len(took))]
    print(f"pods bound per second: {alone:.0f} alone, {beside_gates:.0f} beside {WAITING} gated pods,")
    print(f"{beside_refused:.0f} beside {WAITING} refused ones; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"that is {beside_gates / alone:.2f}; of kube-scheduler with an extender that does nothing, {of_peer:.2f}")
    print(f"room freed to next bound: median {took[len(took) // 2]:.2f} s, p95 {p95:.2f} s, most {took[-1]:.2f} s")
    assert beside_gates / alone >= 0.95 * of_peer
    assert p95 <= 1
    assert released <= 60


def with_the_gates_of_others_and_an_extender_that_does_nothing(cluster, watch, directory) -> float:
    """Throughput beside as many pods with a gate of which we know nothing, over that alone.

    Before every binding kube-scheduler itself goes over all pods that wait, also over those at gates.
    """
    namespace = cluster.namespace("theirs")
    with peer.running(directory) as port, Scheduler(cluster.control_plane, extender(f"http://127.0.0.1:{port}")):
        alone = max(pods_per_second(cluster, watch) for _ in range(RUNS))
        cluster.api.create_all(pods(WAITING, namespace, schedulingGates=[{"name": "example.com/theirs"}]))
        beside = max(pods_per_second(cluster, watch) for _ in range(RUNS))
    delete_pods(cluster, namespace)
    return beside / alone


def pods_per_second(cluster, watch) -> float:
    cluster.api.collect_garbage()  # else that falls into some bursts, and takes a third of them
    since = time.monotonic()
    cluster.api.create_all(pods(ADMISSIBLE, watch.namespace, prefix=f"run-{next(_runs)}"))
    wait_until(lambda: watch.bound == ADMISSIBLE, "all are bound", timeout=300, detail=lambda: str(watch.bound))
    took = time.monotonic() - since
    delete_pods(cluster, watch.namespace)
    wait_until(lambda: not watch.pods, "they are gone", timeout=120)
    watch.events.clear()
    print(f"{ADMISSIBLE / took:.0f} pods bound per second; load of the machine {os.getloadavg()[0]:.1f}", flush=True)
    return ADMISSIBLE / took


def delete_pods(cluster, namespace) -> None:
    """One by one: in one request so many take longer than a request may."""
    names = [item["metadata"]["name"] for item in cluster.api.items("pods", namespace)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: cluster.api.delete("pods", name, namespace, grace=0), names))


def seconds_until_next_is_bound(cluster, waiting) -> float:
    there = [item["metadata"]["name"] for item in waiting.pods if is_bound(item)]
    seen = len(waiting.events)
    cluster.api.delete("pods", there[0], waiting.namespace, grace=0)
    since = time.monotonic()

    def someone_new() -> bool:
        return any(is_bound(item) and item["metadata"]["name"] not in there for _, item in waiting.events[seen:])

    wait_until(someone_new, "the next is bound", every=0.005)
    return time.monotonic() - since
