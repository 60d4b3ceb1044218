"""Pods that can run are woken at once and no others are; and what quotas use stands in their status."""

import os
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import httpx
import pytest

from tests.controlplane.admission import CHANGES_OF_PODS, a_webhook_that_nobody_answers, in_force
from tests.controlplane.objects import Object, elastic_quota, is_bound, pod, pods, requested
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import ensure_for, evicted, wait_for, wait_for_quiet, was_woken

CHANGES_OF_STATUS = {
    "apiGroups": ["scheduling.x-k8s.io"],
    "apiVersions": ["*"],
    "operations": ["UPDATE"],
    "resources": ["elasticquotas/status"],
}
LONG = bool(os.environ.get("QUOTAWARD_LONG"))


def test_a_raised_max_binds_a_waiting_pod_soon(cluster, scheduler):
    cluster.node(cpu=200)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 0})
    took = []
    with PodWatch(cluster.api, namespace) as watch:
        for number in range(50 if LONG else 10):
            cluster.api.create(pod(f"pod-{number}", namespace))
            wait_for(watch, bound=number, refused=1)
            since = time.monotonic()
            cluster.change_quota(namespace, max={"cpu": number + 1})
            wait_until(lambda number=number: watch.bound == number + 1, "the pod is bound", every=0.01)
            took.append(time.monotonic() - since)
    took.sort()
    median, p95 = took[len(took) // 2], took[int(0.95 * len(took))]
    print(f"raised max to bound: median {median:.2f} s, p95 {p95:.2f} s, most {took[-1]:.2f} s")
    assert (p95 if LONG else median) < 5  # the goal is 2 on a machine that has nothing else to do


@pytest.mark.parametrize("freed_by", ["a raised max", "a deleted pod"])
def test_one_free_place_does_not_wake_everybody_who_waits_for_it(cluster, quotaward, scheduler, freed_by):
    cluster.node(cpu=64)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 10})
    waiting = 1000 if LONG else 300
    with PodWatch(cluster.api, namespace) as watch:
        cluster.api.create_all(pods(10, namespace, prefix="first"))
        wait_for(watch, bound=10)
        cluster.api.create_all(pods(waiting, namespace))
        wait_for(watch, bound=10, refused=waiting, timeout=240)
        wait_for_quiet(quotaward)  # or the scheduler would try somebody by itself
        assert not watch.ever(was_woken)
        before = _wake_ups(quotaward)
        if freed_by == "a raised max":
            cluster.change_quota(namespace, max={"cpu": 11})
            wait_for(watch, bound=11, refused=waiting - 1)
        else:
            cluster.api.delete("pods", "first-0", namespace)
            wait_until(lambda: watch.bound == 10 and len(watch.pods) == waiting + 9, "another has its place")
        print(f"{freed_by}: {_wake_ups(quotaward) - before:g} wake-ups for {waiting} waiting pods")
        ensure_for(3, lambda: _wake_ups(quotaward) <= before + 3, "as many are woken as have room")
        assert _wake_ups(quotaward) > before or freed_by == "a deleted pod"


@pytest.mark.timeout(1800 if LONG else 300)
def test_status_tells_what_is_used_after_any_events_and_after_a_crash(cluster):
    chance = random.Random(7)
    cluster.nodes(2, cpu=200)
    namespaces = [cluster.namespace() for _ in range(3)]
    for namespace in namespaces:
        cluster.quota(namespace, min={"cpu": 5}, max={"cpu": 20, "memory": "50Gi"})
    with (
        Quotaward(cluster.control_plane, "--leader.lease-duration", "3") as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        for part in ("before", "after"):
            for number in range(2500 if LONG else 150):
                _do_something(cluster.api, chance, chance.choice(namespaces), f"{part}-{number}")
            for namespace in namespaces:
                _wait_for_true_status(cluster.api, namespace)  # until the scheduler has come to rest
            if part == "before":
                quotaward.crash()
                for namespace in namespaces:  # what happens while nobody looks
                    _do_something(cluster.api, chance, namespace, "meanwhile")
                quotaward.start()
                wait_until(lambda: quotaward.metric("quotaward_leader"), "it leads again")
        for namespace in namespaces:
            cluster.api.delete_all("pods", namespace)
        since = time.monotonic()
        for namespace in namespaces:
            _wait_for_true_status(cluster.api, namespace)
            assert _status(cluster.api, namespace)["used"]["cpu"] == "0"
        print(f"status was true {time.monotonic() - since:.1f} s after the last event")


def test_the_status_of_others_is_written_while_a_webhook_hangs(cluster, quotaward):
    hanging, other = cluster.namespace(), cluster.namespace()
    cluster.node(cpu=64)
    for namespace in (hanging, other):
        cluster.quota(namespace, max={"cpu": 20, "memory": "50Gi"})
        _wait_for_true_status(cluster.api, namespace)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster.api.create(pod("p", hanging))
        webhook = a_webhook_that_nobody_answers(
            hanging, silent.getsockname()[1], timeoutSeconds=6, rules=[CHANGES_OF_PODS, CHANGES_OF_STATUS]
        )
        with in_force(cluster, hanging, *webhook):
            cluster.api.create(pod("running", hanging, nodeName="node"))

            def others_are_written_meanwhile() -> bool:
                with next_connection(silent):
                    failed = quotaward.metric("quotaward_status_writes_total", outcome="failed")
                    cluster.api.create(pod(f"running-{time.monotonic_ns()}", other, nodeName="node"))
                    _wait_for_true_status(cluster.api, other)
                    return quotaward.metric("quotaward_status_writes_total", outcome="failed") == failed

            wait_until(
                others_are_written_meanwhile, "the status of others is written"
            )  # or has this machine stood still?
            assert _used(cluster.api, hanging)["pods"] == 0


def next_connection(listener: socket.socket) -> socket.socket:
    """The next that somebody makes from now on."""
    listener.settimeout(0)
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
    listener.settimeout(90)
    return listener.accept()[0]


def test_what_is_wrong_with_a_quota_stands_in_its_status(cluster, quotaward):
    twice, inverted = cluster.namespace(), cluster.namespace()
    cluster.quota(twice, max={"cpu": 2})
    wait_until(lambda: _status(cluster.api, twice), "the first is known")
    time.sleep(1.1)  # which is older is told by the second
    cluster.api.create(elastic_quota(twice, "another", max={"cpu": 9}))
    cluster.quota(inverted, min={"cpu": 5, "memory": "1Gi"}, max={"cpu": 2, "memory": "1Gi"})
    conflict = wait_until(lambda: _condition(cluster.api, twice, "Conflict", "another"), "the conflict is reported")
    assert conflict["status"] == "True"
    assert "quota" in conflict["message"]
    assert not _condition(cluster.api, twice, "Conflict")
    invalid = wait_until(lambda: _condition(cluster.api, inverted, "Invalid"), "min > max is reported")
    assert "cpu" in invalid["message"]
    assert "memory" not in invalid["message"]

    cluster.api.delete("elasticquotas", "quota", twice)
    cluster.change_quota(inverted, min={"cpu": 1}, max={"cpu": 2})
    wait_until(lambda: not _condition(cluster.api, twice, "Conflict", "another"), "the conflict is over")
    wait_until(lambda: not _condition(cluster.api, inverted, "Invalid"), "the quota is valid")


def test_observing_refuses_and_evicts_nobody_and_counts_what_it_would_have_refused(cluster):
    cluster.node(cpu=8)
    borrower, owner = cluster.namespace(), cluster.namespace()
    cluster.quota(borrower, min={"cpu": 2}, max={"cpu": 4})
    cluster.quota(owner, min={"cpu": 6}, max={"cpu": 6})
    with (
        Quotaward(cluster.control_plane, "--mode", "observe") as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
        PodWatch(cluster.api, borrower) as borrowing,
        PodWatch(cluster.api, owner) as owning,
    ):
        cluster.api.create_all(pods(8, borrower))
        wait_for(borrowing, bound=8)
        assert quotaward.requests("filter", result="would-refuse") >= 4
        cluster.api.create(pod("owner", owner))
        wait_for(owning, bound=0, refused=1, why="Insufficient cpu")
        ensure_for(4, lambda: not evicted(borrowing, owning), "nobody is evicted")
        assert not _status(cluster.api, borrower), "it has written"
        assert not cluster.api.items("reservations")


def _do_something(api, chance: random.Random, namespace: str, name: str) -> None:
    """Create, delete or finish a pod; one that is gone, or not bound yet, is left alone."""
    there = [each["metadata"]["name"] for each in api.items("pods", namespace)]
    action = chance.choices(("create", "delete", "finish"), (5, 2, 2))[0]
    if action == "create" or not there:
        size = {"cpu": chance.choice((1, 2, "500m", None)), "memory": chance.choice((None, "1Gi", "100Mi"))}
        api.create(pod(name, namespace, **size))
    elif action == "delete":
        _unless_gone(lambda: api.delete("pods", chance.choice(there), namespace))
    else:
        phase = chance.choice(("Succeeded", "Failed"))
        _unless_gone(
            lambda: api.patch("pods", f"{chance.choice(there)}/status", {"status": {"phase": phase}}, namespace)
        )


def _unless_gone(request: Callable[[], object]) -> None:
    try:
        request()
    except httpx.HTTPStatusError as error:
        if error.response.status_code != httpx.codes.NOT_FOUND:
            raise


def _wait_for_true_status(api, namespace: str) -> None:
    """Wait until the status of the namespace's quota says what its pods really use."""
    wait_until(
        lambda: _used(api, namespace) == _recount(api, namespace),
        "status.used is what the pods use",
        detail=lambda: f"{_used(api, namespace)} instead of {_recount(api, namespace)}",
    )


def _used(api, namespace: str):
    used = _status(api, namespace).get("used", {})
    as_pod = {"spec": {"containers": [{"resources": {"requests": used}}]}}
    return {resource: requested(as_pod, resource) for resource in ("cpu", "memory", "pods")}


def _recount(api, namespace: str):
    bound = [each for each in api.items("pods", namespace) if is_bound(each)]
    sums = {resource: sum(requested(each, resource) for each in bound) for resource in ("cpu", "memory")}
    return sums | {"pods": len(bound)}


def _status(api, namespace: str, name: str = "quota") -> Object:
    return api.get("elasticquotas", name, namespace).get("status", {})


def _condition(api, namespace: str, kind: str, name: str = "quota") -> Object:
    conditions = _status(api, namespace, name).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind and each["status"] == "True"), {})


def _wake_ups(quotaward) -> float:
    return quotaward.metric("quotaward_wake_ups_total", outcome="woken")
