"""Pods: the translation of what is read (``pod_object``) to the pod of the rules."""

from typing import Any

import msgspec

from app.store.heeded import COUNTS_IN, GATE, GROUP, LEGACY_GROUP
from app.store.kind import Kind
from app.store.metadata import (
    Annotations,
    Metadata,
    OwnerReference,
    as_name,
    as_text,
    controller_ref,
    is_custom,
    min_run_time_of,
    run_time_of,
    seconds,
    time_in,
    version_of,
)
from app.store.placement import constraints_of
from app.store.pod_claims import names_class, needs_of
from app.store.pod_groups import GROUPS, LEGACY_GROUPS, NATIVE_GROUPS, VOLCANO_GROUPS
from app.store.pod_object import PodCondition, PodObject, PodSpec, PodStatus
from app.store.pod_requests import drop_excess_resources, request_of
from app.store.quantities import InvalidObject
from app.store.remembered import remembered
from app.store.shared import labels_of, shared_text
from policy.objects.constraints import CLAIM, TOO_MANY, Constraints, HostPort
from policy.objects.pod import GRACE, JobMember, Pod, Unschedulable
from policy.objects.run_time import LONGEST

JOB_VERSION = "batch/v1"
TRACKED = "batch.kubernetes.io/job-tracking"
"""The finalizer that a pod of a Job has until the Job controller has counted its end."""
DAEMON_SETS = frozenset({"apps/v1", ""})
"""The API versions of DaemonSets that an API server serves, and none: in a folder of manifests it may be missing."""


def pod_of(obj: PodObject) -> Pod:
    """Returns the pod as the rules see it. Raises InvalidObject."""
    meta, spec, status = obj.metadata, obj.spec or PodSpec(), obj.status or PodStatus()
    if not meta.uid or not meta.name or not meta.namespace:
        missing = next(name for name in ("uid", "name", "namespace") if not getattr(meta, name))
        raise InvalidObject(f"metadata.{missing}", "missing")
    undecidable = (TOO_MANY["resources"],) if drop_excess_resources(spec) else ()
    return Pod(
        uid=meta.uid,
        namespace=shared_text(meta.namespace),
        name=meta.name,
        request=(request := request_of(spec, status)),
        priority=spec.priority or 0,
        node=shared_text(spec.node_name) if spec.node_name else "",
        finished=status.phase in ("Succeeded", "Failed"),
        terminating=meta.deletion_timestamp is not None,
        deletion_time=seconds(meta.deletion_timestamp) if meta.deletion_timestamp else 0.0,
        nominated_node=status.nominated_node_name or "",
        unschedulable=_unschedulable(status.conditions) if status.conditions else None,
        created=seconds(meta.creation_timestamp),
        version=version_of(meta),
        labels=labels_of(meta.labels),
        constraints=(constraints := _constraints(meta, spec, undecidable)),
        owner=shared_text(controller_of(meta)) if meta.owner_references or meta.annotations else "",
        group=(group := _group_of(meta, spec)),
        controller=_controller_uid(meta, group) if meta.owner_references else "",
        started=seconds(status.start_time) if status.start_time else 0.0,
        may_preempt=spec.preemption_policy != "Never",
        scheduler=shared_text(spec.scheduler_name) if spec.scheduler_name else "",
        gated=spec.scheduling_gates is not None and any(gate.name != GATE for gate in spec.scheduling_gates),
        succeeded=status.phase == "Succeeded",
        finished_at=_finished_at(status) if status.phase == "Succeeded" else 0.0,
        gate=gate_of(spec) if spec.scheduling_gates else -1,
        job=_job_of(meta) if meta.owner_references else None,
        grace=GRACE if (grace := spec.termination_grace_period_seconds) is None else min(grace, LONGEST),
        counts_in=_counts_in(status.conditions) if spec.node_name and status.conditions else None,
        needs=needs_of(spec, status, request, constraints) if spec.resource_claims or names_class(request) else None,
        deadline=min(spec.active_deadline_seconds or 0, LONGEST),
        **(_said_by(meta.annotations) if meta.annotations is not None else {}),
    )


def _said_by(annotations: Annotations) -> dict[str, Any]:
    """Returns the fields of a pod that are annotations of it alone."""
    return {
        "preemptible": annotations.preemptible != "false",
        "queue": as_name(annotations.queue),
        "run_time": run_time_of(annotations),
        "min_run_time": min_run_time_of(annotations),
        "checkpointed": time_in(annotations.checkpointed_at) if annotations.checkpointed_at is not None else 0.0,
    }


def _unschedulable(conditions: list[PodCondition]) -> Unschedulable | None:
    for condition in conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return Unschedulable(condition.reason or "", condition.message or "", seconds(condition.since))
    return None


def _counts_in(conditions: list[PodCondition]) -> str | None:
    """Returns the queue that the controller ``moves`` noted on the pod as the one it counts in; None without a note."""
    for condition in conditions:
        if condition.type == COUNTS_IN and condition.status == "True":
            return condition.message or ""
    return None


def controller_of(meta: Metadata) -> str:
    """Returns the kind of a pod's controller. That of a static pod is "Node", which only its mirror annotation proves.

    The API server accepts this annotation only when a pod is created with a node, and nobody can add it later.
    """
    if meta.annotations is not None and meta.annotations.mirror is not None:
        return "Node"
    owner = controller_ref(meta)
    return _kind(owner) if owner is not None else ""


def _kind(owner: OwnerReference) -> str:
    """Returns the kind of an owner; empty for a mere namesake of Node or DaemonSet, the kinds that protect their pods.

    The garbage collector deletes pods whose owner does not exist, but not if it knows no such kind in that version.
    """
    is_called_so = owner.kind == "Node" or (owner.kind == "DaemonSet" and owner.api_version not in DAEMON_SETS)
    return "" if is_called_so else owner.kind


def _controller_uid(meta: Metadata, group: str) -> str:
    """Returns the UID of the controller of a pod if somebody asks for it."""
    owner = controller_ref(meta)
    return shared_text(owner.uid) if owner is not None and (group or is_custom(owner)) else ""


def _job_of(meta: Metadata) -> JobMember | None:
    """Returns the Job that the pod names as its controller, if any."""
    for owner in meta.owner_references or ():
        if owner.controller and owner.kind == "Job" and owner.api_version == JOB_VERSION:
            failures = as_text(meta.annotations.index_failures if meta.annotations else None)
            number = int(failures) if failures.isascii() and failures.isdigit() and len(failures) < 10 else 0  # noqa: PLR2004 - 32 bit
            return _shared_member(owner.uid, owner.name, number, TRACKED in (meta.finalizers or ()))
    return None


@remembered(8192)
def _shared_member(uid: str, name: str, failures: int, tracked: bool) -> JobMember:  # noqa: FBT001 - to be remembered
    """Returns one object for all alike pods of a Job."""
    return JobMember(uid, name, failures, tracked)


def _group_of(meta: Metadata, spec: PodSpec) -> str:
    """Returns the group that a pod is in, with its kind.

    Of several the native group counts, then Volcano's, then that of scheduler-plugins, then that of its former label.
    """
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return f"{NATIVE_GROUPS}/{spec.scheduling_group.pod_group_name}"
    if name := as_name(meta.annotations.group if meta.annotations else None):
        return f"{VOLCANO_GROUPS}/{name}"
    if not meta.labels:
        return ""
    if name := meta.labels.get(GROUP, ""):
        return f"{GROUPS}/{name}"
    return f"{LEGACY_GROUPS}/{name}" if (name := meta.labels.get(LEGACY_GROUP, "")) else ""


def _finished_at(status: PodStatus) -> float:
    """Returns the time when the last container ended; 0 if it is known for none."""
    ends = (given.state.terminated for given in status.container_statuses or () if given.state is not None)
    return max((seconds(end.finished_at) for end in ends if end is not None), default=0.0)


def gate_of(spec: PodSpec) -> int:
    """Returns the index of our gate among a pod's scheduling gates; -1 if our gate is not there."""
    return next((at for at, gate in enumerate(spec.scheduling_gates or ()) if gate.name == GATE), -1)


def _constraints(meta: Metadata, spec: PodSpec, undecidable: tuple[str, ...]) -> Constraints:
    """Returns the pod's constraints. Raises InvalidObject if a part does not have the shape of Kubernetes."""
    running = spec.containers or []
    if spec.init_containers:
        running = [*running, *(init for init in spec.init_containers if init.restart_policy == "Always")]
    ports = [
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "")
        for container in running
        for port in container.ports or ()
        if port.host_port
    ]
    if spec.volumes and any(volume.bound for volume in spec.volumes):
        undecidable += ("a volume that may be bound to nodes",)
    if spec.resource_claims:
        undecidable += (CLAIM,)
    try:
        return constraints_of(
            meta.namespace or "",
            meta.labels or {},
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            ports,
            undecidable,
        )
    except msgspec.ValidationError as error:
        raise InvalidObject("spec", f"affinity, tolerations or topologySpreadConstraints: {error}") from error


PODS = Kind(
    plural="pods",
    api_version="v1",
    name="Pod",
    decoder=msgspec.json.Decoder(PodObject),
    key=lambda meta: meta.uid or "",
    upsert=lambda cluster, obj, now: cluster.upsert_pod(pod_of(obj), now),
    delete=lambda cluster, key: cluster.delete_pod(str(key)),
    known=lambda cluster: [uid for uid, pod in cluster.pods.items() if pod.stands_for is None],
    version_seen=lambda cluster, key: pod.version if (pod := cluster.pods.get(str(key))) else 0,
)
