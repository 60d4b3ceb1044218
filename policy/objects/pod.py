"""Data of a pod that the rules need, and its effective request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from policy.objects import quantity
from policy.objects.constraints import UNCONSTRAINED, Constraints
from policy.objects.device import DeviceNeeds
from policy.objects.job_kind import JOB, JobKind
from policy.objects.resources import NOTHING, Resources, add, largest

MilliResources = Mapping[str, int]
"""Thousandths by resource: exact sums, before they are rounded up to amounts."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container's requests in thousandths: asked for, allocated and actuated (in the container's status).

    The last two differ from the first only while a running pod is being resized; None where the status has none.
    ``restartable`` marks an init container with ``restartPolicy: Always`` (a sidecar).
    """

    requests: MilliResources
    allocated: MilliResources | None = None
    actuated: MilliResources | None = None
    restartable: bool = False


@dataclass(frozen=True, slots=True)
class PodRequests:
    """The inputs of a pod's effective request, in thousandths.

    ``pod_level_actuated`` is None where the pod's status has no resources, and empty where it has and names none.
    """

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: MilliResources = field(default_factory=dict)
    pod_level: MilliResources = field(default_factory=dict)
    pod_level_allocated: MilliResources | None = None
    pod_level_actuated: MilliResources | None = None
    resize_infeasible: bool = False


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """A pod's condition ``PodScheduled=False``: the last reason given why it is not placed.

    ``since`` is when it had a place last, or was created, in seconds since the epoch; 0 where that is not known.
    """

    reason: str
    message: str
    since: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class JobMember:
    """The Job (``batch/v1``) that a pod says it belongs to.

    ``failures`` are those of its index before it. ``tracked``: the Job has still to count its end.
    """

    uid: str
    name: str
    failures: int = 0
    tracked: bool = False


@dataclass(frozen=True, slots=True)
class StandsFor:
    """The job that a stand-in represents, and how many of its pods (see policy.objects.queued_job).

    ``parallelism`` is that of the Job now. The rest is about elastic Jobs. ``least`` is how few of the pods are enough;
    0: it takes all of them. ``asked`` is the parallelism that its user asks for, and ``granted`` the one that it is to
    have with these pods. It ``grows`` if it runs already, and these are further pods.
    """

    name: str
    uid: str
    parallelism: int
    pods: int
    kind: JobKind = JOB
    least: int = 0
    asked: int = 0
    granted: int = 0
    grows: bool = False

    @property
    def text(self) -> str:
        """The job and its pods for people: ``Job train (3 pods)``."""
        return f"{self.kind.name} {self.name} ({self.number})"

    @property
    def number(self) -> str:
        """How many pods it takes, for people: ``3 pods``, ``2 more pods``."""
        return f"{self.pods}{' more' * self.grows} {'pod' if self.pods == 1 else 'pods'}"


GRACE = 30
"""Seconds that a pod has to end when it is deleted, unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as the rules see it.

    ``request`` is the effective request (amounts; ``pods: 1`` included). ``created`` is in seconds since the epoch.
    ``version`` orders observations of one pod: the API server's resourceVersion, 0 where there is none. ``owner`` is
    the kind of its controller (``Node``: a static pod's mirror). ``started`` is when the node took it up, 0 before.
    ``queue`` and ``group`` are those that the pod itself names. ``gated``: it has a scheduling gate of somebody else.
    ``succeeded``: it has finished, and not failed. ``scheduler`` is the name of the scheduler that has to place it.
    ``gate`` is the index of our own scheduling gate among those of the pod, below zero if it has none. ``job`` is that
    of its controller. ``finished_at`` is when the last container of a pod that has succeeded ended, 0 where that is not
    known. ``controller`` is the UID of the controller of a pod that names a group, or whose controller is a custom
    resource; for other pods it is left out.
    ``deletion_time`` is when a terminating pod has to be gone, its grace period included, in seconds since the epoch.
    ``counts_in`` is the queue that we noted on it as the one that has admitted it; None where the pod names that queue
    itself. ``grace`` is how many seconds it has to end once it is deleted. ``stands_for`` is the Job that waits as a
    whole, if this is its stand-in and no pod that exists. ``needs`` is what its request follows from where it has
    claims of devices, or names a device class: ``policy.cluster.devices`` then keeps its request up to date.
    ``deadline`` is how many seconds after ``started`` the kubelet ends it. ``run_time`` is how many it says that it
    runs (see policy.objects.run_time).
    ``min_run_time`` is for how many seconds it asks to be protected (see policy.cluster.protection).
    The pod says that it has saved its work at ``checkpointed``, in seconds since the epoch; 0: it says nothing of that.
    """

    uid: str
    namespace: str
    name: str
    request: Resources
    priority: int = 0
    node: str = ""
    finished: bool = False
    terminating: bool = False
    nominated_node: str = ""
    preemptible: bool = True
    unschedulable: Unschedulable | None = None
    created: float = 0.0
    version: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    constraints: Constraints = UNCONSTRAINED
    owner: str = ""
    started: float = 0.0
    may_preempt: bool = True
    queue: str = ""
    group: str = ""
    gated: bool = False
    succeeded: bool = False
    scheduler: str = ""
    gate: int = -1
    job: JobMember | None = None
    finished_at: float = 0.0
    controller: str = ""
    deletion_time: float = 0.0
    counts_in: str | None = None
    grace: int = GRACE
    stands_for: StandsFor | None = None
    needs: DeviceNeeds | None = None
    deadline: int = 0
    run_time: int = 0
    min_run_time: int = 0
    checkpointed: float = 0.0

    @property
    def assigned(self) -> bool:
        """Whether the pod occupies a node: it has one and has not finished. A terminating pod does until it is gone."""
        return bool(self.node) and not self.finished

    @property
    def work_since(self) -> float:
        """The time from which on its work is lost if it is evicted: its start, or when it has saved its work since."""
        return max(self.started or self.created, self.checkpointed)

    @property
    def pending(self) -> bool:
        """Whether the pod still waits for a node."""
        return not self.node and not self.finished

    @property
    def counts_for(self) -> int:
        """The number of pods that wait with it: those of its Job if it is a stand-in, else itself alone."""
        return 1 if self.stands_for is None else self.stands_for.pods

    @property
    def at_gate(self) -> bool:
        """Whether the pod waits for us to open its scheduling gate, and for no other one."""
        return self.gate >= 0 and self.pending and not (self.gated or self.terminating)

    @property
    def object(self) -> str:
        """The object that users change: ``Pod a/p``, or the Job that it stands for, ``Job a/train``."""
        job = self.stands_for
        return f"Pod {self.namespace}/{self.name}" if job is None else f"{job.kind.name} {self.namespace}/{job.name}"

    @property
    def title(self) -> str:
        """Its name for people: namespace/name. A stand-in is called by its Job."""
        job = self.stands_for
        return f"{self.namespace}/{self.name}" if job is None else f"{self.object} ({job.number})"


def turn(pod: Pod) -> tuple[int, float, str, str]:
    """Returns the sort key of waiting pods: by priority, the highest first, and then by creation."""
    return -pod.priority, pod.created, pod.namespace, pod.name


def effective_request(pod: PodRequests) -> Resources:
    """Returns the resources that the scheduler reserves for a pod, in amounts, with ``pods: 1`` and without zeros.

    As kube-scheduler 1.37 computes it (``PodRequests`` in k8s.io/component-helpers): the larger of the sum of
    containers and sidecars and of each init stage. Pod-level requests replace the sum for the resources that they name,
    and overhead is added. While a resize is under way, the largest of the amounts asked for, allocated and actuated
    counts. If the resize can never be done, the amount asked for does not count.
    """
    has_pod_level = any(_of_the_pod(resource) for resource in pod.pod_level)
    if pod.resize_infeasible:
        pod = _without_what_is_asked(pod)
    if pod.pod_level_allocated is not None and pod.pod_level_actuated:
        total = largest(_aggregate(pod, _asked), pod.pod_level_allocated, pod.pod_level_actuated)
    elif any(container.allocated is not None or container.actuated is not None for container in _all(pod)):
        total = largest(_aggregate(pod, _asked), _aggregate(pod, _allocated), _aggregate(pod, _actuated))
    else:
        total = _aggregate(pod, _asked)
    if has_pod_level:
        total.update(_pod_level(pod))
    add(total, pod.overhead)
    amounts = {name: quantity.amount_of_milli(name, milli) for name, milli in total.items() if milli > 0}
    amounts["pods"] = 1
    return amounts


def _without_what_is_asked(pod: PodRequests) -> PodRequests:
    return replace(
        pod,
        containers=tuple(replace(container, requests=NOTHING) for container in pod.containers),
        init_containers=tuple(replace(container, requests=NOTHING) for container in pod.init_containers),
        pod_level=pod.pod_level if pod.pod_level_actuated is None else NOTHING,
    )


def _all(pod: PodRequests) -> tuple[Container, ...]:
    return pod.containers + pod.init_containers if pod.init_containers else pod.containers


def _aggregate(pod: PodRequests, counted: Callable[[Container], MilliResources]) -> dict[str, int]:
    """Returns the sum of containers and sidecars, or the largest init stage where that is more.

    A stage is one init container together with the sidecars started before it.
    """
    running: dict[str, int] = {}
    for container in pod.containers:
        add(running, counted(container))
    if not pod.init_containers:
        return running
    sidecars: dict[str, int] = {}
    stages: list[MilliResources] = []
    for container in pod.init_containers:
        requests = counted(container)
        if container.restartable:
            add(running, requests)
            add(sidecars, requests)
        else:
            stage = dict(sidecars)
            add(stage, requests)
            stages.append(stage)
    return largest(running, *stages)


def _asked(container: Container) -> MilliResources:
    return container.requests


def _allocated(container: Container) -> MilliResources:
    """Returns what the node has set aside; what is asked for where the node has said nothing yet."""
    return container.requests if container.allocated is None else container.allocated


def _actuated(container: Container) -> MilliResources:
    """Returns what the container really has; what is set aside where the node does not say."""
    return _allocated(container) if container.actuated is None else container.actuated


def _pod_level(pod: PodRequests) -> dict[str, int]:
    """Returns the requests of the pod as a whole, which replace the sum for cpu, memory and huge pages only."""
    effective = dict(pod.pod_level)
    if pod.pod_level_actuated is not None:
        for status in (pod.pod_level_actuated, pod.pod_level_allocated or NOTHING):
            for resource, milli in status.items():
                effective[resource] = max(milli, effective.get(resource, 0))
    return {resource: milli for resource, milli in effective.items() if _of_the_pod(resource)}


def _of_the_pod(resource: str) -> bool:
    """Whether a resource can be requested for a pod as a whole."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")
