"""The fields that are read of the JSON of a pod."""

from datetime import datetime

from msgspec import Raw, Struct, field

from app.store.metadata import Metadata
from app.store.placement import NULL, Volume
from app.store.quantities import ResourceList


class Requirements(Struct, gc=False):
    """The resource requirements of a container or a pod: requested ones in its spec, actuated ones in its status."""

    requests: ResourceList | None = None


class Port(Struct, rename="camel", gc=False):
    """The fields that are read of a container's port."""

    host_port: int | None = None
    protocol: str | None = None
    host_ip: str | None = field(name="hostIP", default=None)


class ContainerSpec(Struct, rename="camel", gc=False):
    """The fields that are read of a container's spec."""

    name: str = ""
    resources: Requirements | None = None
    restart_policy: str | None = None
    ports: list[Port] | None = None


class SchedulingGate(Struct, gc=False):
    """A scheduling gate, which keeps the scheduler from considering a pod."""

    name: str = ""


class SchedulingGroup(Struct, rename="camel", gc=False):
    """The native group that a pod is in."""

    pod_group_name: str | None = None


class PodClaimSpec(Struct, rename="camel", gc=False):
    """A claim that a pod uses: one that exists, or one that is made for it of a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Struct, rename="camel", gc=False):
    """The fields that are read of a pod's spec."""

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
    resource_claims: list[PodClaimSpec] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    scheduler_name: str | None = None
    scheduling_group: SchedulingGroup | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


class PodCondition(Struct, gc=False):
    """The fields that are read of a condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    since: datetime | None = field(name="lastTransitionTime", default=None)


class Terminated(Struct, rename="camel", gc=False):
    """The fields that are read of the end of a container."""

    finished_at: datetime | None = None


class ContainerState(Struct, gc=False):
    """The fields that are read of the state of a container."""

    terminated: Terminated | None = None


class ContainerStatus(Struct, rename="camel", gc=False):
    """The fields that are read of a container's status."""

    name: str = ""
    state: ContainerState | None = None
    allocated_resources: ResourceList | None = None
    resources: Requirements | None = None


class PodClaimStatus(Struct, rename="camel", gc=False):
    """The claim that was made for a pod of a template; without a name, the pod needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Struct, rename="camel", gc=False):
    """The fields that are read of a pod's status."""

    phase: str | None = None
    start_time: datetime | None = None
    nominated_node_name: str | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: ResourceList | None = None
    resources: Requirements | None = None
    resource_claim_statuses: list[PodClaimStatus] | None = None


class PodObject(Struct, gc=False):
    """A Pod."""

    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None
