"""Kubernetes JSON to the objects of the rules: only the fields that they use are decoded, the rest is skipped."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from app.store.heeded import (
    ALLOWED_QUEUES,
    COUNTS_IN,
    GATE,
    GATED,
    GROUP,
    INDEX_FAILURES,
    LEGACY_GROUP,
    MANAGED,
    MIRROR,
    PREEMPTIBLE,
    QUEUE,
    VOLCANO_GROUP,
    WEIGHT,
)
from app.store.placement import NULL, LabelSelector, Volume, constraints_of, selector_of
from app.store.remembered import remembered
from policy.cluster.budgets import Budget
from policy.cluster.quota_manager import REQUESTS, Limit
from policy.objects.batch_job import DEFAULT_BACKOFF_LIMIT, UNLIMITED, BatchJob, FailureRule, response
from policy.objects.constraints import MOST_RESOURCES, TOO_MANY, Constraints, HostPort, Taint
from policy.objects.group import LARGEST_MINIMUM, Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import GRACE, Container, JobMember, Pod, PodRequests, Unschedulable, effective_request
from policy.objects.quantity import InvalidQuantity, Quantity, amount, to_milli
from policy.objects.reservation import PodName, Reservation
from policy.objects.resources import Resources
from policy.quota.elastic_quota import ElasticQuota, elastic_quota
from policy.quota.queues import LARGEST_WEIGHT, Queue

ResourceList = dict[str, str | int | float | None]
Asked = tuple[tuple[tuple[tuple[str, Quantity | None], ...], str | None], ...]
"""By container what it requests, and its restart policy."""
Rule = tuple[str, tuple[str, tuple[int, ...]] | None, tuple[tuple[str, str], ...]]
"""A rule of a podFailurePolicy: its action, the operator and values of its exit codes, and its conditions."""

LONGEST_NAME = 253
"""Characters of a name that an object may have."""
GROUPS = "podgroups.scheduling.x-k8s.io"
VOLCANO_GROUPS = "podgroups.scheduling.volcano.sh"
LEGACY_GROUPS = "podgroups.scheduling.sigs.k8s.io"
NATIVE_GROUPS = "podgroups.scheduling.k8s.io"
"""The kinds of pod groups, as they are told apart where they have the same name."""
UNREACHABLE = "node.kubernetes.io/unreachable"
"""The taint of a node whose kubelet does not report."""
JOBS = "batch/v1"
TRACKED = "batch.kubernetes.io/job-tracking"
"""What a pod of a Job has until its end is counted."""
ENDED = frozenset({"Failed", "FailureTarget", "Complete", "SuccessCriteriaMet"})
"""The conditions of a Job that has ended, or is about to."""


class InvalidObject(ValueError):
    """A Kubernetes object that cannot be used; names the field at fault."""

    def __init__(self, field: str, problem: str) -> None:
        """The field as a path from the object, like ``spec.overhead.cpu``."""
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Annotations(Struct, gc=False):
    """The annotations that are read. docs/security.md lists what a tenant could do with each."""

    preemptible: Any = field(name=PREEMPTIBLE, default=None)
    queue: Any = field(name=QUEUE, default=None)
    allowed_queues: Any = field(name=ALLOWED_QUEUES, default=None)
    group: Any = field(name=VOLCANO_GROUP, default=None)
    mirror: Any = field(name=MIRROR, default=None)
    index_failures: Any = field(name=INDEX_FAILURES, default=None)


DAEMON_SETS = frozenset({"apps/v1", ""})
"""The versions of DaemonSets that an API server has; where there is none, as in a folder, a version may lack."""


class OwnerReference(Struct, rename="camel", gc=False):
    """What is read of an owner reference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Struct, rename="camel", gc=False):
    """What is read of an object's metadata."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class Requirements(Struct, gc=False):
    """A container's or a pod's resource requirements, asked for or actuated."""

    requests: ResourceList | None = None


class Port(Struct, rename="camel", gc=False):
    """What is read of a container's port."""

    host_port: int | None = None
    protocol: str | None = None
    host_ip: str | None = field(name="hostIP", default=None)


class ContainerSpec(Struct, rename="camel", gc=False):
    """What is read of a container."""

    name: str = ""
    resources: Requirements | None = None
    restart_policy: str | None = None
    ports: list[Port] | None = None


class SchedulingGate(Struct, gc=False):
    """What keeps the scheduler from looking at a pod."""

    name: str = ""


class SchedulingGroup(Struct, rename="camel", gc=False):
    """Which native group a pod is in."""

    pod_group_name: str | None = None


class PodSpec(Struct, rename="camel", gc=False):
    """What is read of a pod's spec."""

    node_name: str | None = None
    containers: list[ContainerSpec] | None = None
    init_containers: list[ContainerSpec] | None = None
    overhead: ResourceList | None = None
    resources: Requirements | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Raw = NULL
    tolerations: Raw = NULL
    topology_spread_constraints: Raw = NULL
    volumes: list[Volume] | None = None
    resource_claims: list[Any] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    scheduler_name: str | None = None
    scheduling_group: SchedulingGroup | None = None
    termination_grace_period_seconds: int | None = None


class PodCondition(Struct, gc=False):
    """What is read of a condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    since: datetime | None = field(name="lastTransitionTime", default=None)


class Terminated(Struct, rename="camel", gc=False):
    """What is read of how a container ended."""

    finished_at: datetime | None = None


class ContainerState(Struct, gc=False):
    """What is read of the state of a container."""

    terminated: Terminated | None = None


class ContainerStatus(Struct, rename="camel", gc=False):
    """What is read of a container's status."""

    name: str = ""
    state: ContainerState | None = None
    allocated_resources: ResourceList | None = None
    resources: Requirements | None = None


class PodStatus(Struct, rename="camel", gc=False):
    """What is read of a pod's status."""

    phase: str | None = None
    start_time: datetime | None = None
    nominated_node_name: str | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: ResourceList | None = None
    resources: Requirements | None = None


class PodObject(Struct, gc=False):
    """A Pod."""

    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NodeCondition(Struct, gc=False):
    """What is read of a condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(Struct, gc=False):
    """What is read of a node's status."""

    allocatable: ResourceList | None = None
    conditions: list[NodeCondition] | None = None


class TaintObject(Struct, gc=False):
    """A taint of a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Struct, gc=False):
    """What is read of a node's spec."""

    unschedulable: bool | None = None
    taints: list[TaintObject] | None = None


class NodeObject(Struct, gc=False):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ElasticQuotaObject(Struct, gc=False):
    """An ElasticQuota. Its spec is looked at field by field, so that a bad one is named, and refuses all."""

    metadata: Metadata
    spec: Any = None
    status: Any = None


class QueueStatus(Struct, gc=False):
    """What is read of a queue's status."""

    state: str | None = None


class QueueObject(Struct, gc=False):
    """A Queue. Its spec is looked at field by field, so that a bad one is named, and closes the queue."""

    metadata: Metadata
    spec: Any = None
    status: QueueStatus | None = None


class NamespaceObject(Struct, gc=False):
    """A Namespace."""

    metadata: Metadata


class ResourceQuotaSpec(Struct, gc=False):
    """What is read of a resource quota's spec."""

    hard: dict[str, Any] | None = None


class ResourceQuotaObject(Struct, gc=False):
    """A ResourceQuota."""

    metadata: Metadata
    spec: ResourceQuotaSpec | None = None


class Gang(Struct, rename="camel", gc=False):
    """What is read of how a native pod group is scheduled."""

    min_count: int | None = None


class SchedulingPolicy(Struct, gc=False):
    """How a native pod group is scheduled."""

    gang: Gang | None = None


class PodGroupSpec(Struct, rename="camel", gc=False):
    """What is read of the spec of a pod group, of whichever kind."""

    queue: str | None = None
    min_member: int | None = None
    scheduling_policy: SchedulingPolicy | None = None


class PodGroupObject(Struct, gc=False):
    """A PodGroup of any of the three kinds."""

    metadata: Metadata
    spec: PodGroupSpec | None = None


class BudgetSpec(Struct, gc=False):
    """What is read of a disruption budget's spec."""

    selector: LabelSelector | None = None
    min_available: Any = field(name="minAvailable", default=None)
    max_unavailable: Any = field(name="maxUnavailable", default=None)


class BudgetStatus(Struct, rename="camel", gc=False):
    """What is read of a disruption budget's status."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None
    expected_pods: int = 0
    desired_healthy: int = 0


class BudgetObject(Struct, gc=False):
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class OnExitCodes(Struct, gc=False):
    """Which exit codes a rule of a podFailurePolicy is about."""

    operator: str = ""
    values: list[int] | None = None


class OnPodCondition(Struct, gc=False):
    """A condition that a rule of a podFailurePolicy is about."""

    type: str = ""
    status: str | None = None


class PodFailurePolicyRule(Struct, rename="camel", gc=False):
    """A rule of a podFailurePolicy."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: list[OnPodCondition] | None = None


class PodFailurePolicy(Struct, gc=False):
    """A Job's podFailurePolicy."""

    rules: list[PodFailurePolicyRule] | None = None


class JobSpec(Struct, rename="camel", gc=False):
    """What is read of a Job's spec."""

    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None


class UncountedTerminatedPods(Struct, gc=False):
    """Pods that have ended and are not counted yet."""

    failed: list[str] | None = None


class JobCondition(Struct, gc=False):
    """What is read of a condition of a Job."""

    type: str = ""
    status: str = ""


class JobStatus(Struct, rename="camel", gc=False):
    """What is read of a Job's status."""

    start_time: datetime | None = None
    failed: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    conditions: list[JobCondition] | None = None


class JobObject(Struct, gc=False):
    """A Job."""

    metadata: Metadata
    spec: JobSpec | None = None
    status: JobStatus | None = None


class PodReference(Struct, gc=False):
    """Which pod."""

    namespace: str
    name: str
    uid: str


class ReservationSpec(Struct, rename="camel", gc=False):
    """A reservation's spec."""

    reason: str
    pod: PodReference
    node_name: str
    victims: list[PodReference] | None = None
    failures: int = 0
    job: str = ""


class ReservationStatus(Struct, rename="camel", gc=False):
    """A reservation's status."""

    freed_at: datetime | None = None
    blocked_since: datetime | None = None
    failed_at: datetime | None = None


class ReservationObject(Struct, gc=False):
    """A Reservation."""

    metadata: Metadata
    spec: ReservationSpec
    status: ReservationStatus | None = None


def budget_of(obj: BudgetObject) -> Budget:
    """The disruption budget as the rules see it."""
    status = obj.status or BudgetStatus()
    given = obj.spec.selector if obj.spec else None
    return Budget(
        obj.metadata.namespace or "",
        obj.metadata.name,
        selector_of(given) if given else None,
        status.disruptions_allowed,
        frozenset(status.disrupted_pods or ()),
        never=_never_allows(obj.spec or BudgetSpec(), status),
    )


def _never_allows(spec: BudgetSpec, status: BudgetStatus) -> bool:
    """Whether a budget lets nobody go though all of its pods are healthy: by its words, or by what they come to."""
    by_words = spec.max_unavailable in (0, "0", "0%") or spec.min_available == "100%"
    return by_words or 0 < status.expected_pods <= status.desired_healthy


def batch_job_of(obj: JobObject) -> BatchJob:
    """The Job as the rules see it."""
    meta, spec, status = obj.metadata, obj.spec or JobSpec(), obj.status or JobStatus()
    rules = _failure_rules(spec.pod_failure_policy)
    per_index, limit = spec.backoff_limit_per_index, spec.backoff_limit
    uncounted = status.uncounted_terminated_pods
    return BatchJob(
        meta.namespace or "",
        meta.name,
        meta.uid or "",
        backoff_limit=limit if limit is not None else DEFAULT_BACKOFF_LIMIT if per_index is None else UNLIMITED,
        limit_per_index=per_index,
        rules=rules,
        response=response(rules),
        failed=status.failed or 0,
        uncounted=frozenset(uncounted.failed or ()) if uncounted is not None else frozenset(),
        ended=any(each.type in ENDED and each.status == "True" for each in status.conditions or ()),
        deadline=spec.active_deadline_seconds or 0,
        started=seconds(status.start_time),
    )


def _failure_rules(policy: PodFailurePolicy | None) -> tuple[FailureRule, ...]:
    given = (policy.rules if policy else None) or ()
    return _shared_rules(
        tuple(
            (
                rule.action,
                (rule.on_exit_codes.operator, tuple(rule.on_exit_codes.values or ())) if rule.on_exit_codes else None,
                tuple((each.type, each.status or "True") for each in rule.on_pod_conditions or ()),
            )
            for rule in given
        )
    )


@remembered(1024)
def _shared_rules(given: tuple[Rule, ...]) -> tuple[FailureRule, ...]:
    """One tuple for all the Jobs that have the same rules."""
    return tuple(
        FailureRule(action, frozenset(codes[1]) if codes else None, bool(codes and codes[0] == "NotIn"), frozenset(on))
        for action, codes, on in given
    )


def reservation_of(obj: ReservationObject) -> Reservation:
    """The reservation as the rules see it."""
    spec, status = obj.spec, obj.status or ReservationStatus()
    return Reservation(
        obj.metadata.name,
        PodName(spec.pod.namespace, spec.pod.name, spec.pod.uid),
        spec.node_name,
        tuple(PodName(victim.namespace, victim.name, victim.uid) for victim in spec.victims or ()),
        seconds(obj.metadata.creation_timestamp),
        spec.reason,
        spec.failures,
        seconds(status.freed_at),
        seconds(status.blocked_since),
        seconds(status.failed_at),
        spec.job,
    )


def pod_of(obj: PodObject) -> Pod:
    """The pod as the rules see it. Raises InvalidObject."""
    meta, spec, status = obj.metadata, obj.spec or PodSpec(), obj.status or PodStatus()
    if not meta.uid or not meta.name or not meta.namespace:
        missing = next(name for name in ("uid", "name", "namespace") if not getattr(meta, name))
        raise InvalidObject(f"metadata.{missing}", "missing")
    undecidable = (TOO_MANY["resources"],) if _drop_excess_resources(spec) else ()
    return Pod(
        uid=meta.uid,
        namespace=_shared_text(meta.namespace),
        name=meta.name,
        request=_request(spec, status),
        priority=spec.priority or 0,
        node=_shared_text(spec.node_name) if spec.node_name else "",
        finished=status.phase in ("Succeeded", "Failed"),
        terminating=meta.deletion_timestamp is not None,
        deletion_time=seconds(meta.deletion_timestamp) if meta.deletion_timestamp else 0.0,
        nominated_node=status.nominated_node_name or "",
        preemptible=(annotations := meta.annotations) is None or annotations.preemptible != "false",
        unschedulable=_unschedulable(status.conditions),
        created=seconds(meta.creation_timestamp),
        version=version_of(meta),
        labels=_labels(meta.labels),
        constraints=_constraints(meta, spec, undecidable),
        owner=_shared_text(controller_of(meta)) if meta.owner_references or annotations else "",
        group=(group := _group_of(meta, spec)),
        controller=_controller_uid(meta) if group else "",
        started=seconds(status.start_time) if status.start_time else 0.0,
        may_preempt=spec.preemption_policy != "Never",
        queue=_name(annotations.queue) if annotations else "",
        scheduler=_shared_text(spec.scheduler_name) if spec.scheduler_name else "",
        gated=spec.scheduling_gates is not None and any(gate.name != GATE for gate in spec.scheduling_gates),
        succeeded=status.phase == "Succeeded",
        finished_at=_finished_at(status) if status.phase == "Succeeded" else 0.0,
        gate=gate_of(spec) if spec.scheduling_gates else -1,
        job=_job_of(meta) if meta.owner_references else None,
        grace=GRACE if (grace := spec.termination_grace_period_seconds) is None else grace,
        counts_in=_counts_in(status.conditions) if spec.node_name and status.conditions else None,
    )


def _counts_in(conditions: list[PodCondition]) -> str | None:
    """The queue that we noted on a pod as the one that it counts in."""
    for condition in conditions:
        if condition.type == COUNTS_IN and condition.status == "True":
            return condition.message or ""
    return None


def controller_of(meta: Metadata) -> str:
    """The kind of a pod's controller. That of a static pod is its node: its mark tells, and nothing else does.

    The API server takes the mark only of a pod that is created with a node, and never lets it be added.
    """
    if meta.annotations is not None and meta.annotations.mirror is not None:
        return "Node"
    return next((_kind(owner) for owner in meta.owner_references or () if owner.controller), "")


def _kind(owner: OwnerReference) -> str:
    """The kind of an owner; empty for one that is only called like a kind of Kubernetes that protects its pods.

    The garbage collector deletes pods whose owner does not exist, but not if it knows no such kind in that version.
    """
    is_called_so = owner.kind == "Node" or (owner.kind == "DaemonSet" and owner.api_version not in DAEMON_SETS)
    return "" if is_called_so else owner.kind


def _job_of(meta: Metadata) -> JobMember | None:
    """The Job that a pod says that it belongs to, if one of these is its controller."""
    for owner in meta.owner_references or ():
        if owner.controller and owner.kind == "Job" and owner.api_version == JOBS:
            failures = _text(meta.annotations.index_failures if meta.annotations else None)
            number = int(failures) if failures.isascii() and failures.isdigit() and len(failures) < 10 else 0  # noqa: PLR2004 - 32 bit
            return _shared_member(owner.uid, owner.name, number, TRACKED in (meta.finalizers or ()))
    return None


@remembered(8192)
def _shared_member(uid: str, name: str, failures: int, tracked: bool) -> JobMember:  # noqa: FBT001 - to be remembered
    """One for all the pods of a Job."""
    return JobMember(uid, name, failures, tracked)


def _controller_uid(meta: Metadata) -> str:
    return next((owner.uid for owner in meta.owner_references or () if owner.controller), "")


def _finished_at(status: PodStatus) -> float:
    """When the last container ended; 0 if that is not known of any."""
    ends = (given.state.terminated for given in status.container_statuses or () if given.state is not None)
    return max((seconds(end.finished_at) for end in ends if end is not None), default=0.0)


def gate_of(spec: PodSpec) -> int:
    """Where our gate stands among a pod's scheduling gates; below zero if it has none of ours."""
    return next((at for at, gate in enumerate(spec.scheduling_gates or ()) if gate.name == GATE), -1)


def node_of(obj: NodeObject) -> Node:
    """The node as the rules see it. Raises InvalidObject."""
    allocatable, conditions = (obj.status.allocatable, obj.status.conditions) if obj.status else (None, None)
    milli = _milli(allocatable, "status.allocatable")
    spec = obj.spec or NodeSpec()
    return Node(
        obj.metadata.name,
        {resource: amount(resource, value) for resource, value in milli.items()},
        obj.metadata.labels or {},
        tuple(Taint(taint.key, taint.value or "", taint.effect) for taint in spec.taints or ()),
        bool(spec.unschedulable),
        all(condition.status == "True" for condition in conditions or () if condition.type == "Ready"),
        reachable=not any(condition.status == "Unknown" for condition in conditions or () if condition.type == "Ready")
        and not any(taint.key == UNREACHABLE for taint in spec.taints or ()),
    )


def elastic_quota_of(obj: ElasticQuotaObject) -> ElasticQuota:
    """The elastic quota as the rules see it; what cannot be read of it stands in its ``errors``."""
    meta, spec = obj.metadata, {} if obj.spec is None else obj.spec
    namespace, created = meta.namespace or "", seconds(meta.creation_timestamp)
    errors: list[str] = []
    if not isinstance(spec, dict):
        errors.append(f"spec: must be a map with min and max, not {str(spec)[:80]!r}")
        spec = {}
    least = _limits(spec.get("min"), "spec.min", errors)
    most = _limits(spec.get("max"), "spec.max", errors)
    if errors:
        return ElasticQuota(namespace, meta.name, created, errors=tuple(errors), readable=False)
    return elastic_quota(namespace, meta.name, created, least, most)


def queue_of(obj: QueueObject) -> Queue:
    """The queue as the rules see it; what cannot be read of it stands in its ``errors``."""
    meta, spec = obj.metadata, {} if obj.spec is None else obj.spec
    state = (obj.status.state if obj.status else None) or "Open"
    errors: list[str] = []
    if not isinstance(spec, dict):
        errors.append(f"spec: must be a map, not {str(spec)[:80]!r}")
        spec = {}
    guarantee = spec.get("guarantee")
    if guarantee is not None and not isinstance(guarantee, dict):
        errors.append("spec.guarantee: must be a map with resource")
        guarantee = None
    capability = _limits(spec.get("capability"), "spec.capability", errors)
    guaranteed = _limits((guarantee or {}).get("resource"), "spec.guarantee.resource", errors)
    weight = _whole(spec.get("weight"), "spec.weight", errors)
    priority = _whole(spec.get("priority"), "spec.priority", errors)
    reclaimable = spec.get("reclaimable")
    if reclaimable is not None and not isinstance(reclaimable, bool):
        errors.append("spec.reclaimable: must be true or false")
    if errors:
        return Queue(meta.name, state=state, errors=tuple(errors), readable=False, uid=meta.uid or "")
    return Queue(
        meta.name,
        weight=min(max(1, weight), LARGEST_WEIGHT),
        capability=capability,
        guarantee=guaranteed,
        reclaimable=reclaimable is not False,
        priority=priority,
        state=state,
        notes=tuple(f"spec.{name}" for name in ("deserved", "parent") if spec.get(name))
        + (("spec.weight (below 1, so 1)",) if weight < 1 and spec.get("weight") is not None else ()),
        uid=meta.uid or "",
    )


def group_of(obj: PodGroupObject, kind: str) -> Group:
    """The pod group as the rules see it; a minimum below 1 is 1, and one beyond 32 bits the largest of these."""
    meta, spec = obj.metadata, obj.spec or PodGroupSpec()
    gang = spec.scheduling_policy.gang if spec.scheduling_policy else None
    minimum = gang.min_count if kind == NATIVE_GROUPS and gang else spec.min_member
    return Group(
        meta.namespace or "",
        f"{kind}/{meta.name}",
        max(1, min(minimum or 1, LARGEST_MINIMUM)),
        _name(spec.queue) if kind == VOLCANO_GROUPS else "",
        seconds(meta.creation_timestamp),
        native=kind == NATIVE_GROUPS,
    )


def namespace_of(obj: NamespaceObject) -> Namespace:
    """What the namespace says of queues, and whether its pods wait at gates."""
    gated = (obj.metadata.labels or {}).get(GATED) == "true"
    annotations = obj.metadata.annotations
    if annotations is None:
        return Namespace(obj.metadata.name, gated=gated)
    allowed = _text(annotations.allowed_queues).split(",")
    return Namespace(
        obj.metadata.name, _text(annotations.queue), frozenset(name.strip() for name in allowed if name.strip()), gated
    )


def weight_of(obj: ResourceQuotaObject) -> int | None:
    """The weight that a resource quota gives its namespace; None if none, and 1 for one that is not a positive number.

    Seed: namespace fair share (where is the weight).
    """
    given = (obj.spec.hard if obj.spec else None) or {}
    if WEIGHT not in given:
        return None
    value = given[WEIGHT]
    try:
        milli = to_milli(value) if isinstance(value, str | int | float) else 0
    except InvalidQuantity:
        return 1
    return min(milli // 1000, LARGEST_WEIGHT) if milli >= 1000 and milli % 1000 == 0 else 1  # noqa: PLR2004


def limit_of(obj: ResourceQuotaObject) -> Limit:
    """A resource quota of the name that the quota manager writes; a value that is no quantity is as good as none."""
    hard = {}
    for key, value in ((obj.spec.hard if obj.spec else None) or {}).items():
        resource = key.removeprefix(REQUESTS)
        try:
            hard[key] = amount(resource, to_milli(value)) if isinstance(value, str | int | float) else -1
        except InvalidQuantity:
            hard[key] = -1
    owners = [owner for owner in obj.metadata.owner_references or () if owner.kind == "Queue"]
    ours = MANAGED in (obj.metadata.labels or {}) or bool(owners)
    return Limit(obj.metadata.uid or "", hard, ours, frozenset(owner.uid for owner in owners))


def version_of(meta: Metadata) -> int:
    """The resourceVersion as a number (it orders the states of one object), 0 where there is none."""
    return number_of(meta.resource_version)


def number_of(text: str | None) -> int:
    """A resourceVersion as a number, 0 where it is none. From Kubernetes 1.35 on such numbers may be compared."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else 0  # noqa: PLR2004 - 64 bit


def seconds(timestamp: datetime | None) -> float:
    """Seconds since the epoch, 0 where there is no time."""
    if timestamp is None:
        return 0.0
    return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)).timestamp()


@remembered(8192)
def _shared(items: tuple[tuple[str, int], ...]) -> Resources:
    """One vector for all the pods that request the same: a cluster has many pods and few sizes."""
    return dict(items)


@remembered(8192)
def _shared_labels(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """One map for all the pods that are labelled the same."""
    return dict(items)


@remembered(16_384)
def _shared_text(text: str) -> str:
    """One text for all the pods that name the same: it takes less memory, and is found and compared faster."""
    return text


def _labels(given: dict[str, str] | None) -> Mapping[str, str]:
    return _shared_labels(tuple(given.items())) if given else _shared_labels(())


def _constraints(meta: Metadata, spec: PodSpec, undecidable: tuple[str, ...]) -> Constraints:
    """Raises InvalidObject for affinity, tolerations or spreading that are not shaped as in Kubernetes."""
    running = [
        *(spec.containers or ()),
        *(init for init in spec.init_containers or () if init.restart_policy == "Always"),
    ]
    ports = [
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "")
        for container in running
        for port in container.ports or ()
        if port.host_port
    ]
    if any(volume.bound for volume in spec.volumes or ()):
        undecidable += ("a volume that may be bound to nodes",)
    if spec.resource_claims:
        undecidable += ("a resource claim",)
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


def _drop_excess_resources(spec: PodSpec) -> bool:
    """Leaves a spec no more resources than are judged: the usual ones, and the first by name. Whether there were more.

    Overhead is not looked at, as no tenant writes it. What is asked for as "0", as the API server writes it, is no
    resource where there are too many.
    """
    holders = (*(spec.containers or ()), *(spec.init_containers or ()), spec)
    asked = [each.resources for each in holders if each.resources]
    if sum([len(each.requests or ()) for each in asked]) <= MOST_RESOURCES:
        return False
    lists = [each.requests or {} for each in asked]
    if len(set().union(*lists)) <= MOST_RESOURCES:
        return False
    names = {name for requests in lists for name, quantity in requests.items() if quantity != "0"}
    usual = names & {"cpu", "memory", "ephemeral-storage"}
    kept = usual | set(sorted(names - usual)[: MOST_RESOURCES - len(usual)])
    for each in asked:
        each.requests = {name: quantity for name, quantity in (each.requests or {}).items() if name in kept}
    return len(kept) < len(names)


def _request(spec: PodSpec, status: PodStatus) -> Resources:
    """The effective request. Of a pod that has not started it mostly depends on its containers alone.

    Pods of one template have these in common, so what was computed once is shared.
    """
    started = status.container_statuses or status.init_container_statuses or status.allocated_resources
    if started or status.resources or spec.overhead or spec.resources or _is_resize_infeasible(spec, status):
        return _shared(tuple(effective_request(_requests_of(spec, status)).items()))
    return _request_of_containers(_asked_for(spec.containers), _asked_for(spec.init_containers))


def _asked_for(containers: list[ContainerSpec] | None) -> Asked:
    if not containers:
        return ()
    return tuple(
        [
            (
                tuple(given.resources.requests.items()) if given.resources and given.resources.requests else (),
                given.restart_policy,
            )
            for given in containers
        ]
    )


@remembered(8192)
def _request_of_containers(containers: Asked, init_containers: Asked) -> Resources:
    """Raises InvalidObject."""
    spec, init = (
        [ContainerSpec(resources=Requirements(dict(requests)), restart_policy=restart) for requests, restart in given]
        for given in (containers, init_containers)
    )
    requests = _requests_of(PodSpec(containers=spec, init_containers=init), PodStatus())
    return _shared(tuple(effective_request(requests).items()))


def _requests_of(spec: PodSpec, status: PodStatus) -> PodRequests:
    resized = None if status.resources is None else status.resources.requests or {}
    return PodRequests(
        containers=_containers(spec.containers, status.container_statuses, "spec.containers"),
        init_containers=_containers(spec.init_containers, status.init_container_statuses, "spec.initContainers"),
        overhead=_milli(spec.overhead, "spec.overhead"),
        pod_level=_milli(spec.resources.requests if spec.resources else None, "spec.resources.requests"),
        pod_level_allocated=_milli_or_none(status.allocated_resources, "status.allocatedResources"),
        pod_level_actuated=_milli_or_none(resized, "status.resources.requests"),
        resize_infeasible=_is_resize_infeasible(spec, status),
    )


def _is_resize_infeasible(spec: PodSpec, status: PodStatus) -> bool:
    """Whether a resize was asked for that can never be done. A kubelet says so, and a pod without a node has none."""
    return bool(spec.node_name) and any(
        each.type == "PodResizePending" and each.reason == "Infeasible" for each in status.conditions or ()
    )


def _containers(
    specs: list[ContainerSpec] | None, statuses: list[ContainerStatus] | None, path: str
) -> tuple[Container, ...]:
    if not specs:
        return ()
    by_name = {status.name: status for status in statuses} if statuses else {}
    result = []
    for index, spec in enumerate(specs):
        where = f"{path}[{index}].resources.requests"
        requests = _milli(spec.resources.requests if spec.resources else None, where)
        status = by_name.get(spec.name)
        allocated = _milli_or_none(status.allocated_resources, where) if status else None
        actuated = _milli_or_none(status.resources.requests, where) if status and status.resources else None
        result.append(Container(requests, allocated, actuated, restartable=spec.restart_policy == "Always"))
    return tuple(result)


def _milli(quantities: Mapping[str, Quantity | None] | None, path: str) -> dict[str, int]:
    """Quantities in thousandths. Raises InvalidObject for one that cannot be read or is negative."""
    result: dict[str, int] = {}
    if not quantities:
        return result
    for resource, quantity in quantities.items():
        try:
            value = 0 if quantity is None else to_milli(quantity)
        except InvalidQuantity as error:
            raise InvalidObject(f"{path}.{resource}", str(error)) from error
        if value < 0:
            raise InvalidObject(f"{path}.{resource}", "is negative")
        result[resource] = value
    return result


def _milli_or_none(quantities: Mapping[str, Quantity | None] | None, path: str) -> dict[str, int] | None:
    return None if quantities is None else _milli(quantities, path)


def _limits(given: Any, path: str, errors: list[str]) -> dict[str, int]:
    """A quota's min or max in amounts; notes in ``errors`` what cannot be read."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        errors.append(f"{path}: must be a map of resource names to quantities")
        return {}
    result = {}
    for resource, quantity in given.items():
        if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
            errors.append(f"{path}.{resource}: is not a quantity")
            continue
        try:
            result.update({name: amount(name, milli) for name, milli in _milli({resource: quantity}, path).items()})
        except InvalidObject as error:
            errors.append(str(error))
    return result


def _group_of(meta: Metadata, spec: PodSpec) -> str:
    """The group that a pod is in, with its kind: the scheduler's own comes first, then Volcano's.

    A group of the name that scheduler-plugins had before comes last.
    """
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return f"{NATIVE_GROUPS}/{spec.scheduling_group.pod_group_name}"
    if name := _name(meta.annotations.group if meta.annotations else None):
        return f"{VOLCANO_GROUPS}/{name}"
    if not meta.labels:
        return ""
    if name := meta.labels.get(GROUP, ""):
        return f"{GROUPS}/{name}"
    return f"{LEGACY_GROUPS}/{name}" if (name := meta.labels.get(LEGACY_GROUP, "")) else ""


def _text(value: Any) -> str:
    """An annotation as text; one of another type is as good as none."""
    return value if isinstance(value, str) else ""


def _name(value: Any) -> str:
    """A name in an annotation. No object has a longer one than is kept: anybody may write a quarter of a megabyte."""
    name = _text(value)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _whole(given: Any, path: str, errors: list[str]) -> int:
    """A whole number of 32 bits, 0 where there is none; notes in ``errors`` what is not one."""
    if given is None:
        return 0
    if isinstance(given, bool) or not isinstance(given, int):
        errors.append(f"{path}: must be a whole number")
        return 0
    return max(-LARGEST_WEIGHT, min(given, LARGEST_WEIGHT))


def _unschedulable(conditions: list[PodCondition] | None) -> Unschedulable | None:
    for condition in conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return Unschedulable(condition.reason or "", condition.message or "", seconds(condition.since))
    return None
