"""What a pod requests (docs: the scheduler's own effective request), and whether it waits or occupies a node."""

import json

import msgspec
import pytest

from app.store.pod_object import PodObject
from app.store.pods import pod_of
from policy.objects.pod import Container, PodRequests, effective_request
from tests.unit.given import pod
from tests.unit.kubernetes import questions
from tests.unit.kubernetes.record import answers


def main(**milli: int) -> Container:
    return Container(milli)


def sidecar(**milli: int) -> Container:
    return Container(milli, restartable=True)


def resized(cpu: int, allocated: int | None, actuated: int | None, **rest) -> Container:
    """A container that asks for some cpu, of which its status says something else."""
    allocated_list, actuated_list = ({"cpu": value} if value is not None else None for value in (allocated, actuated))
    return Container({"cpu": cpu}, allocated_list, actuated_list, **rest)


@pytest.mark.parametrize(
    ("case", "containers", "init_containers", "expected"),
    [
        ("nothing", (), (), {}),
        ("containers add up", (main(cpu=1), main(cpu=2, memory=1000)), (), {"cpu": 3, "memory": 1}),
        ("rounded up once, after adding", (main(memory=400), main(memory=400)), (), {"memory": 1}),
        ("a zero is left out", (main(cpu=0, memory=1000),), (), {"memory": 1}),
        ("a larger init stage", (main(cpu=1),), (main(cpu=5),), {"cpu": 5}),
        ("a smaller init stage", (main(cpu=5),), (main(cpu=1),), {"cpu": 5}),
        ("init stages do not add up", (main(cpu=1),), (main(cpu=3), main(cpu=4)), {"cpu": 4}),
        ("each resource by itself", (main(cpu=5, memory=1000),), (main(cpu=1, memory=9000),), {"cpu": 5, "memory": 9}),
        ("sidecars add to containers", (main(cpu=1),), (sidecar(cpu=2),), {"cpu": 3}),
        ("a sidecar runs in later stages", (main(cpu=1),), (sidecar(cpu=2), main(cpu=5)), {"cpu": 7}),
        ("a sidecar does not run in earlier stages", (main(cpu=1),), (main(cpu=5), sidecar(cpu=2)), {"cpu": 5}),
        ("all sidecars so far", (main(cpu=1),), (sidecar(cpu=2), sidecar(cpu=3), main(cpu=4)), {"cpu": 9}),
    ],
)
def test_the_larger_of_containers_and_init_stages_is_requested(case, containers, init_containers, expected):
    request = effective_request(PodRequests(containers, init_containers))
    assert request == expected | {"pods": 1}, case


def test_a_best_effort_pod_requests_one_pod():
    assert effective_request(PodRequests((main(), main()))) == {"pods": 1}


def test_overhead_comes_on_top():
    stages = ((main(cpu=1),), (main(cpu=5),))
    assert effective_request(PodRequests(*stages, overhead={"cpu": 10, "memory": 1}))["cpu"] == 15
    assert effective_request(PodRequests(*stages, overhead={"cpu": 10, "memory": 1}))["memory"] == 1


@pytest.mark.parametrize(
    ("pod_level", "expected"),
    [
        ({"cpu": 8}, {"cpu": 9, "memory": 3, "example.com/x": 1}),
        ({"cpu": 8, "memory": 7000}, {"cpu": 9, "memory": 7, "example.com/x": 1}),
        ({"hugepages-2Mi": 2000}, {"cpu": 4, "memory": 3, "example.com/x": 1, "hugepages-2Mi": 2}),
        ({"example.com/x": 9000}, {"cpu": 4, "memory": 3, "example.com/x": 1}),
    ],
)
def test_pod_level_requests_replace_the_sum_for_what_they_name(pod_level, expected):
    containers = (main(cpu=1, memory=2000), Container({"cpu": 2, "memory": 1000, "example.com/x": 1000}))
    request = effective_request(PodRequests(containers, overhead={"cpu": 1}, pod_level=pod_level))
    assert request == expected | {"pods": 1}


@pytest.mark.parametrize(
    ("case", "asked", "allocated", "actuated", "feasible", "infeasible"),
    [
        ("no status", 4, None, None, 4, 0),
        ("growing, not yet allocated", 4, 2, 2, 4, 2),
        ("growing, allocated", 4, 4, 2, 4, 4),
        ("shrinking, not yet actuated", 2, 2, 4, 4, 4),
        ("shrinking, not yet allocated", 2, 4, 4, 4, 4),
        ("allocated, no word of what is actuated", 2, 4, None, 4, 4),
        ("actuated, no word of what is allocated", 2, None, 4, 4, 4),
        ("done", 4, 4, 4, 4, 4),
    ],
)
def test_while_resizing_the_largest_counts(case, asked, allocated, actuated, feasible, infeasible):
    containers = (resized(asked, allocated, actuated), main(memory=1000))
    sidecars = (resized(asked, allocated, actuated, restartable=True),)
    assert effective_request(PodRequests(containers, sidecars)).get("cpu", 0) == 2 * feasible, case
    request = effective_request(PodRequests(containers, sidecars, resize_infeasible=True))
    assert request.get("cpu", 0) == 2 * infeasible, case


@pytest.mark.parametrize(
    ("case", "asked", "allocated", "actuated", "feasible", "infeasible"),
    [
        ("no status", 4, None, None, 4, 4),
        ("growing", 4, {"cpu": 2}, {"cpu": 2}, 4, 2),
        ("shrinking", 2, {"cpu": 2}, {"cpu": 4}, 4, 4),
        ("a status that names no requests", 2, {"cpu": 4}, {}, 4, 4),
    ],
)
def test_while_resizing_the_pod_level_the_largest_counts(case, asked, allocated, actuated, feasible, infeasible):
    level = {"pod_level": {"cpu": asked}, "pod_level_allocated": allocated, "pod_level_actuated": actuated}
    assert effective_request(PodRequests(**level))["cpu"] == feasible, case
    assert effective_request(PodRequests(**level, resize_infeasible=True))["cpu"] == infeasible, case


def test_what_the_status_says_of_the_pod_never_hides_what_its_containers_ask_for():
    """A kubelet writes the status of the whole pod also where the spec has no pod-level requests."""
    growing = PodRequests((resized(4, 2, 2),), pod_level_allocated={"cpu": 2}, pod_level_actuated={"cpu": 2})
    assert effective_request(growing)["cpu"] == 4
    shrinking = PodRequests((resized(2, 2, 4),), pod_level_allocated={"cpu": 2}, pod_level_actuated={"cpu": 4})
    assert effective_request(shrinking)["cpu"] == 4


@pytest.mark.parametrize(
    ("state", "pending", "assigned"),
    [
        ({}, True, False),
        ({"nominated_node": "n1"}, True, False),
        ({"node": "n1"}, False, True),
        ({"node": "n1", "terminating": True}, False, True),
        ({"node": "n1", "finished": True}, False, False),
        ({"finished": True}, False, False),
    ],
)
def test_a_pod_is_pending_or_assigned_or_finished(state, pending, assigned):
    seen = pod("p", **state)
    assert (seen.pending, seen.assigned) == (pending, assigned)


def test_kubernetes_own_code_agrees():
    differing = []
    for asked, answer in zip(questions.pods(), answers()["pods"], strict=True):
        expected = {name: value for name, value in answer.items() if value} | {"pods": 1}
        seen = msgspec.json.decode(
            json.dumps(asked | {"metadata": {"name": "p", "namespace": "n", "uid": "u"}}), type=PodObject
        )
        request = dict(pod_of(seen).request)
        if request != expected:
            differing.append((asked, request, expected))
    assert not differing, f"{len(differing)} differ, among them {min(differing, key=lambda case: len(str(case)))}"
