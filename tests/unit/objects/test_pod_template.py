"""What the API server adds to a pod of a template when it creates it, as Kubernetes 1.37.2 does.

The files: plugin/pkg/admission/limitranger/admission.go, plugin/pkg/admission/priority/admission.go,
plugin/pkg/admission/runtimeclass/admission.go, pkg/apis/core/v1/defaults.go and pkg/api/pod/util.go.
"""

import pytest

from policy.objects.pod import Container, Pod, PodRequests
from policy.objects.pod_template import NO_CLASS, PodTemplate, PriorityClass, class_named, created

HIGH, LOW = PriorityClass(1000), PriorityClass(-5, may_preempt=False)
POD = Pod("u", "a", "p", {"cpu": 7, "pods": 1}, priority=3, may_preempt=False)


def made(*containers, of=NO_CLASS, defaults=None, overhead=None, limits=None, **parts):
    """A pod of containers that request this much each."""
    requests = PodRequests(tuple(map(Container, containers)), **parts)
    return created(POD, PodTemplate(requests, limits or {}), of, defaults or {}, overhead or {})


def test_a_pod_has_the_priority_and_the_preemption_policy_of_its_class():
    """``admitPod`` sets both, and creates no pod that says something else."""
    high, low = made({}, of=HIGH), made({}, of=LOW)
    assert [(pod.priority, pod.may_preempt) for pod in (high, low)] == [(1000, True), (-5, False)]


@pytest.mark.parametrize(
    ("name", "classes", "expected"),
    [
        ("high", {"high": HIGH, "low": LOW}, HIGH),
        ("", {"high": HIGH}, NO_CLASS),
        ("", {"high": HIGH, "normal": PriorityClass(10, is_default=True)}, PriorityClass(10, is_default=True)),
        ("low", {"low": LOW, "normal": PriorityClass(10, is_default=True)}, LOW),
        ("gone", {"normal": PriorityClass(10, is_default=True)}, NO_CLASS),
        ("system-node-critical", {}, PriorityClass(2_000_001_000)),
        ("system-cluster-critical", {}, PriorityClass(2_000_000_000)),
    ],
)
def test_the_class_is_the_one_that_is_named_or_else_the_default(name, classes, expected):
    """``establishPriority``; the values of the system's classes are in pkg/apis/scheduling/types.go."""
    assert class_named(name, classes) == expected


def test_of_several_default_classes_the_lowest_counts():
    """``getDefaultPriorityClass``: two can come about by a race."""
    classes = {str(value): PriorityClass(value, is_default=True) for value in (7, 2, 9)}
    assert class_named("", classes).value == 2


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        (({},), {"cpu": 500, "pods": 1}),
        (({"cpu": 100},), {"cpu": 100, "pods": 1}),
        (({"cpu": 0},), {"pods": 1}),
        (({"cpu": 100}, {}), {"cpu": 600, "pods": 1}),
        (({"memory": 1000},), {"cpu": 500, "memory": 1, "pods": 1}),
    ],
    ids=["nothing", "less", "zero", "one of two", "another resource"],
)
def test_a_container_requests_the_default_of_resources_that_it_does_not_name(containers, expected):
    """``mergeContainerResources`` asks only whether a request is there, not how much it is."""
    assert made(*containers, defaults={"cpu": 500}).request == expected


def test_init_containers_and_sidecars_get_defaults_too():
    """``mergePodResourceRequirements`` goes through all of them, whatever their restartPolicy."""
    plain = made({"cpu": 100}, defaults={"cpu": 500}, init_containers=(Container({}),))
    assert plain.request["cpu"] == 500, "the larger one of the stages"
    sidecar = made({"cpu": 100}, defaults={"cpu": 500}, init_containers=(Container({}, restartable=True),))
    assert sidecar.request["cpu"] == 600, "both run together"


@pytest.mark.parametrize(
    ("containers", "pod_level", "limits", "expected"),
    [
        (({},), {}, {"cpu": 900}, 900),
        (({"cpu": 100},), {}, {"cpu": 900}, 100),
        (({"cpu": 0},), {}, {"cpu": 900}, None),
        (({},), {"cpu": 300}, {"cpu": 900}, 300),
        (({"cpu": 100},), {"cpu": 300}, {}, 300),
    ],
    ids=["limit", "of the container", "zero of the container", "of the pod", "both"],
)
def test_a_limit_of_the_pod_as_a_whole_is_a_request_if_there_is_no_other(containers, pod_level, limits, expected):
    """``defaultPodLevelRequests``: first the sum of the containers, and only then the limit."""
    assert made(*containers, limits=limits, pod_level=pod_level).request.get("cpu") == expected


def test_a_default_of_a_container_counts_before_a_limit_of_the_pod():
    """The strategy of pods comes after admission (``PrepareForCreate`` calls ``DefaultPodLevelResources``)."""
    assert made({}, defaults={"cpu": 500}, limits={"cpu": 900, "memory": 2000}).request == {
        "cpu": 500,
        "memory": 2,
        "pods": 1,
    }


def test_the_overhead_is_that_of_the_runtime_class():
    """``setOverhead``: where the class has none, a pod may not have any either."""
    assert made({"cpu": 100}, overhead={"cpu": 250}).request["cpu"] == 350


def test_nothing_else_of_the_pod_changes():
    pod = made({"cpu": 100}, of=HIGH)
    assert (pod.uid, pod.namespace, pod.name, pod.constraints) == ("u", "a", "p", POD.constraints)
