"""Kubernetes JSON that is odd but legal is understood, and what is not legal is named by its field."""

import msgspec
import pytest

from app.store.elastic_quotas import ELASTIC_QUOTAS, elastic_quota_of
from app.store.nodes import NODES, node_of
from app.store.pods import PODS, pod_of
from app.store.quantities import InvalidObject
from policy.objects.constraints import UNCONSTRAINED, Taint, Toleration
from policy.objects.pod import Unschedulable
from tests.unit.app.given import node, pod, quota

ONE_CORE = {"cpu": 1000, "pods": 1}


def decoded(kind, item):
    return kind.decoder.decode(item if isinstance(item, bytes | str) else msgspec.json.encode(item))


def as_pod(item):
    return pod_of(decoded(PODS, item))


def as_node(item):
    return node_of(decoded(NODES, item))


def as_quota(item):
    return elastic_quota_of(decoded(ELASTIC_QUOTAS, item))


def with_status(**status):
    return as_pod(pod("p") | {"status": status})


def nothing(fields):
    return dict.fromkeys(fields.split())


def test_a_pod_needs_nothing_but_a_name():
    found = as_pod({"metadata": {"name": "p", "namespace": "a", "uid": "u"}})
    assert (found.request, found.priority, found.node, found.created) == ({"pods": 1}, 0, "", 0.0)
    assert found.pending
    assert found.preemptible
    assert found.may_preempt
    assert found.constraints == UNCONSTRAINED


def test_null_stands_for_what_is_absent():
    spec = "nodeName initContainers overhead resources priority preemptionPolicy nodeSelector affinity tolerations"
    more = "topologySpreadConstraints volumes resourceClaims"
    metadata = "creationTimestamp deletionTimestamp labels annotations ownerReferences resourceVersion"
    nulls = pod("p", metadata=nothing(metadata), **nothing(spec), **nothing(more))
    status = nothing("phase startTime nominatedNodeName conditions containerStatuses resources")
    assert as_pod(nulls | {"status": status}) == as_pod(pod("p"))
    assert as_pod(nulls | {"status": None}) == as_pod(pod("p"))
    assert as_pod(pod("p") | {"spec": None}).request == {"pods": 1}
    assert as_pod(pod("p") | {"spec": {"containers": None}}).request == {"pods": 1}


@pytest.mark.parametrize("resources", [None, {}, {"requests": None}, {"requests": {}}, {"limits": {"cpu": "9"}}])
def test_a_container_may_request_nothing(resources):
    item = pod("p")
    item["spec"]["containers"][0]["resources"] = resources
    assert as_pod(item).request == {"pods": 1}


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        ({}, ""),
        ({"ownerReferences": [{"kind": "Owner"}, {"kind": "DaemonSet", "controller": True}]}, "DaemonSet"),
        ({"annotations": {"kubernetes.io/config.mirror": "a hash"}}, "Node"),
        ({"annotations": {"kubernetes.io/config.hash": "a hash"}}, ""),
        ({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}]}, "DaemonSet"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "controller": True}]}, ""),
        ({"ownerReferences": [{"apiVersion": "made.up/v1", "kind": "DaemonSet", "controller": True}]}, ""),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "DaemonSet", "controller": True}]}, ""),
        ({"ownerReferences": [{"apiVersion": "apps/v9", "kind": "DaemonSet", "controller": True}]}, ""),
        ({"ownerReferences": [{"apiVersion": "apps/v1beta1", "kind": "DaemonSet", "controller": True}]}, ""),
        ({"ownerReferences": [{"apiVersion": "made.up/v1", "kind": "Node", "controller": True}]}, ""),
        ({"ownerReferences": [{"apiVersion": "made.up/v1", "kind": "Job", "controller": True}]}, "Job"),
    ],
)
def test_the_owner_of_a_pod_is_its_controller_and_of_a_static_one_its_node(metadata, owner):
    assert as_pod(pod("p", metadata=metadata)).owner == owner


@pytest.mark.parametrize("quantity", ["1", 1, 1.0, "1000m", "1e0", "+1", "1.", "0.9995"])
def test_a_quantity_may_be_text_or_a_number(quantity):
    assert as_pod(pod("p", requests={"cpu": quantity})).request == ONE_CORE


def test_large_numbers_are_kept_exactly():
    limit = 2**62 + 1
    assert as_quota(quota(max={"memory": limit})).max == {"memory": limit}
    assert as_node(node(memory=str(limit))).allocatable == {"memory": limit}


def test_a_quantity_of_null_is_zero():
    assert as_pod(pod("p", requests={"cpu": None})).request == {"pods": 1}


def test_fields_that_nobody_reads_may_hold_anything():
    item = pod("p", metadata={"managedFields": [{"fieldsV1": {"f:x": {}}}]}, securityContext={"sysctls": [None, 5]})
    assert as_pod(item | {"futureField": [{"deep": [[[]]]}]}) == as_pod(pod("p"))


@pytest.mark.parametrize(
    ("phase", "node_name", "state"),
    [
        ("Pending", "n1", "assigned"),
        ("Running", "n1", "assigned"),
        ("Unknown", "n1", "assigned"),
        ("SomethingNew", "n1", "assigned"),
        ("Succeeded", "n1", "finished"),
        ("Failed", "n1", "finished"),
        ("Failed", "", "finished"),
        ("Pending", "", "pending"),
        (None, None, "pending"),
    ],
)
def test_where_a_pod_is_in_its_life(phase, node_name, state):
    found = as_pod(pod("p", nodeName=node_name) | {"status": {"phase": phase}})
    assert {name for name in ("assigned", "finished", "pending") if getattr(found, name)} == {state}


def ended(*times):
    states = [{"name": str(at), "state": {"terminated": {"finishedAt": time}}} for at, time in enumerate(times)]
    return {"containerStatuses": [{"name": "runs", "state": {"running": {}}}, {"name": "says nothing"}, *states]}


@pytest.mark.parametrize(
    ("status", "at"),
    [
        ({"phase": "Succeeded"} | ended("1970-01-01T00:00:05Z", None, "1970-01-01T00:00:07Z"), 7.0),
        ({"phase": "Succeeded"} | ended(), 0.0),
        ({"phase": "Succeeded", "containerStatuses": None}, 0.0),
        ({"phase": "Running"} | ended("1970-01-01T00:00:05Z"), 0.0),
    ],
)
def test_a_pod_that_has_succeeded_did_so_when_its_last_container_ended(status, at):
    assert as_pod(pod("p", nodeName="n1") | {"status": status}).finished_at == at


def test_of_members_of_groups_it_is_known_which_controller_they_have():
    owned = {"ownerReferences": [{"kind": "Job", "uid": "other"}, {"kind": "Job", "uid": "job", "controller": True}]}
    in_group = owned | {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    assert as_pod(pod("p", metadata=in_group)).controller == "job"
    assert as_pod(pod("p", metadata=owned)).controller == ""


READY, NOT_READY, UNKNOWN = (
    {"conditions": [{"type": "Ready", "status": said}, {"type": "DiskPressure", "status": "Unknown"}]}
    for said in ("True", "False", "Unknown")
)
UNREACHABLE = {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("status", "spec", "ready", "reachable"),
    [
        (READY, {}, True, True),
        (NOT_READY, {}, False, True),
        (UNKNOWN, {}, False, False),
        (READY, UNREACHABLE, True, False),
        ({}, {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}, True, True),
    ],
)
def test_a_node_is_unreachable_if_its_kubelet_does_not_report(status, spec, ready, reachable):
    found = as_node(node() | {"status": status, "spec": spec})
    assert (found.ready, found.reachable) == (ready, reachable)


def test_a_terminating_pod_is_assigned_until_it_is_gone():
    found = as_pod(pod("p", metadata={"deletionTimestamp": "2026-11-27T20:55:56Z"}, nodeName="n1"))
    assert found.terminating
    assert found.assigned
    assert found.deletion_time == 1795812956.0


def test_of_the_conditions_only_a_false_pod_scheduled_counts():
    others = [{"type": "Ready", "status": "False", "reason": "x"}, {"type": "PodScheduled", "status": "True"}]
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}
    assert with_status(conditions=others).unschedulable is None
    assert with_status(conditions=[*others, said]).unschedulable == Unschedulable("Unschedulable", "0/3")
    assert with_status(conditions=[said | {"reason": None, "message": None}]).unschedulable == Unschedulable("", "")
    assert with_status(conditions=[{"type": "PodScheduled"}, {}]).unschedulable is None


@pytest.mark.parametrize(
    ("annotation", "preemptible"), [("false", False), ("true", True), ("False", True), ("", True), (None, True)]
)
def test_a_pod_opts_out_of_eviction_by_the_word_false_alone(annotation, preemptible):
    annotations = {"quotaward.dev/preemptible": annotation, "other": "text"}
    assert as_pod(pod("p", metadata={"annotations": annotations})).preemptible is preemptible


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T02:01:00+02:00", 60.0),
        ("1970-01-01T00:01:00.5Z", 60.5),
        ("1970-01-01T00:01:00.500000001Z", 60.5),
        ("1970-01-01T00:01:00", 60.0),
        ("0001-01-01T00:00:00Z", -62135596800.0),
    ],
)
def test_times_are_read_in_every_notation(text, seconds):
    assert as_pod(pod("p", metadata={"creationTimestamp": text})).created == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("version", "number"), [("42", 42), (None, 0), ("", 0), ("opaque", 0), ("-1", 0), ("9" * 19, 10**19 - 1)]
)
def test_a_resource_version_that_is_no_number_orders_nothing(version, number):
    assert as_pod(pod("p", metadata={"resourceVersion": version})).version == number


def test_a_sidecar_and_a_running_resize_are_told_from_the_rest():
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": 2}}}
    init = {"name": "i", "resources": {"requests": {"cpu": 2}}}
    assert as_pod(pod("p", initContainers=[sidecar])).request["cpu"] == 3000
    assert as_pod(pod("p", initContainers=[init])).request["cpu"] == 2000
    statuses = [{"name": "unknown", "resources": None}, {"name": "main", "allocatedResources": {"cpu": "5"}}]
    assert with_status(containerStatuses=statuses).request["cpu"] == 5000


def test_only_a_kubelet_says_that_a_resize_can_never_be_done():
    infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    statuses = [{"name": "main", "allocatedResources": {"cpu": "500m"}}]

    def counted(node: str) -> int:
        item = pod("p", nodeName=node) | {"status": {"conditions": [infeasible], "containerStatuses": statuses}}
        return as_pod(item).request["cpu"]

    assert (counted(""), counted("n")) == (1000, 500)


def test_pod_level_requests_and_overhead_are_read():
    found = as_pod(pod("p", resources={"requests": {"cpu": "3"}}, overhead={"memory": "64Mi"}))
    assert found.request == {"cpu": 3000, "memory": 64 * 2**20, "pods": 1}


def test_the_owner_is_the_one_that_controls():
    owners = [{"kind": "Other"}, {"kind": "Job", "controller": True}, {"kind": "Third", "controller": None}]
    assert as_pod(pod("p", metadata={"ownerReferences": owners})).owner == "Job"
    assert as_pod(pod("p", metadata={"ownerReferences": owners[:1]})).owner == ""


@pytest.mark.parametrize("missing", ["uid", "name", "namespace"])
@pytest.mark.parametrize("value", ["", None])
def test_a_pod_without_identity_cannot_be_used(missing, value):
    item = pod("p")
    item["metadata"][missing] = "" if missing == "name" else value  # Kubernetes never writes a name of null
    with pytest.raises(InvalidObject, match=rf"^metadata\.{missing}: missing$"):
        as_pod(item)


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (pod("p", requests={"cpu": "x"}), "spec.containers[0].resources.requests.cpu"),
        (pod("p", requests={"cpu": "-1"}), "spec.containers[0].resources.requests.cpu"),
        (pod("p", overhead={"cpu": ""}), "spec.overhead.cpu"),
        (pod("p", resources={"requests": {"cpu": "1 "}}), "spec.resources.requests.cpu"),
        (
            pod("p", initContainers=[{"name": "i"}, {"name": "j", "resources": {"requests": {"a/b": "1x"}}}]),
            "spec.initContainers[1].resources.requests.a/b",
        ),
    ],
)
def test_what_cannot_be_read_of_a_pod_is_named(item, field):
    with pytest.raises(InvalidObject) as error:
        as_pod(item)
    assert error.value.field == field


@pytest.mark.parametrize(
    "item",
    [
        b'{"metadata": {"name": "p"',
        b'{"spec": {}}',
        b'{"metadata": []}',
        b'{"metadata": {"name": 5}}',
        b'{"metadata": {"name": "p"}, "spec": {"containers": [5]}}',
        b'{"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"requests": {"cpu": true}}}]}}',
        b'{"metadata": {"name": "p", "creationTimestamp": "yesterday"}}',
        b'{"metadata": {"name": "p", "creationTimestamp": 5}}',
    ],
)
def test_what_is_not_shaped_like_a_pod_is_not_decoded(item):
    with pytest.raises(msgspec.MsgspecError):
        decoded(PODS, item)


def test_affinity_of_a_wrong_shape_is_named_too():
    with pytest.raises(InvalidObject, match=r"^spec: affinity, tolerations"):
        as_pod(pod("p", tolerations={"key": "x"}))


def test_tolerations_are_read_with_what_kubernetes_leaves_out():
    given = [{"operator": "Exists"}, {"key": "k", "value": None, "effect": "NoSchedule", "tolerationSeconds": 5}]
    assert as_pod(pod("p", tolerations=given)).constraints.tolerations == (
        Toleration(operator="Exists"),
        Toleration("k", "Equal", "", "NoSchedule"),
    )


def test_a_node_may_say_as_little():
    assert as_node({"metadata": {"name": "n"}}).allocatable == {}
    assert as_node({"metadata": {"name": "n"}, "spec": None, "status": {"allocatable": None}}).taints == ()
    tainted = {"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": None}], "unschedulable": None}
    found = as_node(node() | {"spec": tainted})
    assert (found.taints, found.unschedulable) == ((Taint("k", "", "NoSchedule"),), False)


def test_a_node_whose_size_cannot_be_read_is_named():
    with pytest.raises(InvalidObject, match=r"^status\.allocatable\.cpu: "):
        as_node(node(cpu="four"))


@pytest.mark.parametrize("item", [{"metadata": {"name": "q", "namespace": "a"}}, quota() | {"spec": None}, quota()])
def test_a_quota_without_bounds_bounds_nothing(item):
    found = as_quota(item)
    assert (found.min, found.max, found.readable) == ({}, {}, True)
    assert as_quota(quota(min=None, max=None)).readable


def test_a_quota_says_all_that_cannot_be_read_of_it():
    found = as_quota(quota(min={"cpu": "x", "memory": "1Gi", "pods": -1}, max=[], other=5))
    assert not found.readable
    assert [error.partition(":")[0] for error in found.errors] == ["spec.min.cpu", "spec.min.pods", "spec.max"]


@pytest.mark.parametrize("value", [None, True, [], {}, "", " 1", "1 ", "0x10", "NaN", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_what_is_no_quantity_makes_a_quota_unreadable(value):
    assert as_quota(quota(max={"cpu": value})).errors[0].startswith("spec.max.cpu: ")
