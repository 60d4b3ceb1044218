"""The shapes of REST. Amounts are Kubernetes quantities in text."""

from typing import Any

from pydantic import Field

from app.shapes import Model, Quantities


class ConditionModel(Model):
    """Something about an object that its owner should know."""

    type: str
    status: str = "True"
    reason: str
    message: str


class ElasticQuotaModel(Model):
    """An elastic quota and what its namespace uses.

    ``borrowed`` is what is used beyond min, ``available`` what is left below max, for resources that have one.
    """

    namespace: str
    name: str
    min: Quantities
    max: Quantities
    used: Quantities
    borrowed: Quantities
    available: Quantities
    conditions: list[ConditionModel]


class ElasticQuotaList(Model):
    """Elastic quotas, by namespace and name."""

    items: list[ElasticQuotaModel]


class TenantModel(Model):
    """What one namespace has of a queue; ``share`` is the largest part of any one resource that it uses."""

    namespace: str
    weight: int
    request: Quantities
    entitled: Quantities
    allocated: Quantities
    share: float


class QueueModel(Model):
    """A queue: what it asks for, what it deserves, and what its pods use, by namespace too."""

    name: str
    state: str
    weight: int
    priority: int
    reclaimable: bool
    capability: Quantities
    guarantee: Quantities
    real_capability: Quantities
    request: Quantities
    deserved: Quantities
    allocated: Quantities
    namespaces: list[TenantModel]
    conditions: list[ConditionModel]


class QueueList(Model):
    """Queues, by name."""

    items: list[QueueModel]


class ChangeModel(Model):
    """What to change, as it can be asked about (``POST /api/v1/whatif``): manifests to merge, objects to remove."""

    apply: list[dict[str, Any]]
    remove: list[dict[str, Any]]


class RemedyModel(Model):
    """One change that would let the pod in; path and value, where given, name a field of target and its new value.

    ``tried``: ``with-all`` others that wait, and the pod runs (``verified``), ``alone``, so that it runs if no other
    comes before it, or ``no``; then ``change`` is null. ``commands`` make the change, where kubectl is enough for it.
    """

    text: str
    target: str
    path: str
    value: str
    change: ChangeModel | None
    commands: list[str]
    tried: str
    verified: bool


class HolderModel(Model):
    """Who holds something that the pod lacks: how much, what is theirs (or the limit), and how far beyond that.

    ``boundName``: which of the figures in ``numbers`` that is (min, max, deserved, realCapability, entitled).
    ``pods`` (namespace/name) make up what is beyond, or all where nothing is; at most twenty of ``number``. ``ahead``
    is kept, beyond what is used, for the pods that go ``first``: they wait for a node that they are nominated to.
    ``terminating`` are pods of the holder that use the resource and should be gone: see the explanation's own.
    ``inVain`` are pods that count for nothing: the node that they are nominated to is lost, or cannot take them.
    """

    kind: str
    name: str
    resource: str
    used: str
    bound: str
    bound_name: str
    over: str
    pods: list[str]
    number: int
    terminating: list[str] = Field(default=[])
    ahead: str = "0"
    first: list[str] = Field(default=[])
    in_vain: list[str] = Field(default=[])


class ProspectModel(Model):
    """What is under way or will be: a step by name, in words, and in how many seconds where that is known."""

    step: str
    text: str
    in_seconds: float | None


class PlaceModel(Model):
    """Where a job waits: in the line of its namespace in its queue. ``place`` counts from 1, ``of`` how many there."""

    queue: str
    namespace: str
    place: int
    of: int


class GatedModel(Model):
    """A job that waits at its gates.

    ``place`` is the one in its queue in which it would be let out if nothing changed and all were admitted; ``rule``
    and ``message`` say what refuses it now, and are empty if nothing does.
    """

    job: str
    pods: int
    queue: str
    namespace: str
    priority: int
    place: int
    rule: str
    message: str


class GatedList(Model):
    """Jobs that wait at their gates, by queue and place. ``total``: how many there are, as ``items`` may have fewer."""

    total: int
    items: list[GatedModel]


class ExplanationModel(Model):
    """Why a pod is or is not admitted, with the numbers now and what would help.

    ``verdict`` is refused (in observe mode would-refuse, as nobody is), admissible, bound or unknown.
    ``outlook`` says what is being done for a pod that waits, or why nobody is evicted for it; ``next`` says it step by
    step; ``summary`` says all in one paragraph. ``gate``: where in line, if it waits at one.
    ``searched`` is how the search for remedies ended: ``complete``, ``out-of-time``, or empty (there was none).
    ``terminating`` says of pods of its namespace or queue that they should be gone: since when, whether they count, and
    what ends them.
    """

    namespace: str
    name: str
    verdict: str
    rule: str
    message: str
    outlook: str
    gate: PlaceModel | None = None
    numbers: dict[str, Quantities]
    remedies: list[RemedyModel]
    searched: str = ""
    holders: list[HolderModel]
    next: list[ProspectModel]
    terminating: list[str] = Field(default=[])
    summary: str


class DecisionModel(Model):
    """A verdict that kube-scheduler was given about a pod, and when (RFC 3339)."""

    at: str
    pod: str
    verdict: str
    rule: str
    message: str


class DecisionList(Model):
    """The most recent verdicts, the latest first."""

    items: list[DecisionModel]


class EvictionModel(Model):
    """A pod that goes, or would go, for another. ``failsJob``: the Job that fails by it (NAMESPACE/NAME), if any."""

    pod: str
    node: str
    for_: str = Field(alias="for")
    reason: str
    fails_job: str = ""


class NominationModel(Model):
    """A pod and the node where room is made for it."""

    pod: str
    node: str


class ReservationModel(Model):
    """Room that is kept for a pod, or the node that is reserved for it as a member of a job that starves.

    Where, since when (RFC 3339), and who goes for it.
    """

    name: str
    reason: str
    pod: str
    job: str
    node: str
    victims: list[str]
    since: str


class ReservationList(Model):
    """Reservations, by name."""

    items: list[ReservationModel]


class PodGroupModel(Model):
    """A pod group: how many members it takes, have a node or were let through, and wait; what is reserved for it."""

    namespace: str
    name: str
    kind: str
    minimum: int
    ready: int
    pending: int
    reserved: int
    nodes: list[str]
    conditions: list[ConditionModel]


class PodGroupList(Model):
    """Pod groups, by namespace and name."""

    items: list[PodGroupModel]


class WaitingModel(Model):
    """A pod that waits and that nobody is evicted for, and why."""

    pod: str
    reason: str
    message: str


class PlanModel(Model):
    """What is being done for pods that wait, and would be now; pods are namespace/name."""

    evictions: list[EvictionModel]
    nominations: list[NominationModel]
    reservations: list[ReservationModel]
    waiting: list[WaitingModel]


class ProblemModel(Model):
    """What went wrong (RFC 9457); ``field`` names what is at fault, where something given is."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


class HealthModel(Model):
    """That this process can do its work; what keeps it from it is told in a problem document.

    ``warnings``: what is not as it should be, although it can.
    """

    status: str
    warnings: list[str] | None = None
