"""Models of REST. Amounts are Kubernetes quantities as text."""

from typing import Any

from pydantic import Field

from app.shapes import Model, Quantities


class ConditionModel(Model):
    """A condition of an object that its owner should know."""

    type: str
    status: str = "True"
    reason: str
    message: str


class ElasticQuotaModel(Model):
    """An elastic quota and what its namespace uses.

    ``borrowed`` is what is used beyond min, ``available`` what is left below max, for resources that have one.
    ``runTimes`` are the times in force that its annotations say: ``default``, ``min`` and ``max``, as ``2h30m``.
    """

    namespace: str
    name: str
    min: Quantities
    max: Quantities
    used: Quantities
    borrowed: Quantities
    available: Quantities
    run_times: dict[str, str]
    conditions: list[ConditionModel]


class ElasticQuotaList(Model):
    """Elastic quotas, by namespace and name."""

    items: list[ElasticQuotaModel]


class TenantModel(Model):
    """The part of a namespace in a queue; ``share`` is its dominant share: the largest part of any one resource."""

    namespace: str
    weight: int
    request: Quantities
    entitled: Quantities
    allocated: Quantities
    share: float


class QueueModel(Model):
    """A queue with its request, deserved part and use, also by namespace.

    All amounts but those by namespace count the queues below it, too. ``children`` are those right below it.
    ``guarantee`` is its own; ``effectiveGuarantee`` counts those of the queues below it, as far as nodes have it.
    ``runTimes`` are the times in force that its own annotations say: ``default``, ``min`` and ``max``, as ``2h30m``.
    """

    name: str
    parent: str
    children: list[str]
    state: str
    weight: int
    priority: int
    reclaimable: bool
    capability: Quantities
    guarantee: Quantities
    effective_guarantee: Quantities
    real_capability: Quantities
    request: Quantities
    deserved: Quantities
    allocated: Quantities
    run_times: dict[str, str]
    namespaces: list[TenantModel]
    conditions: list[ConditionModel]


class QueueList(Model):
    """Queues, by name."""

    items: list[QueueModel]


class ChangeModel(Model):
    """A change in the form that ``POST /api/v1/whatif`` takes: manifests to merge, objects to remove."""

    apply: list[dict[str, Any]]
    remove: list[dict[str, Any]]


class RemedyModel(Model):
    """A change that would let the pod in. If given, path and value name a field of target and its new value.

    ``tried``: ``with-all``: among all other waiting pods the pod runs (``verified``); ``alone``: it runs if no other
    pod comes before it; ``no``: not tried, and ``change`` is null. ``commands`` make the change, if kubectl can.
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
    """A holder of something that the pod lacks: the amount used, its bound, and the excess.

    ``boundName``: the figure in ``numbers`` that is the bound (min, max, deserved, realCapability, entitled). ``pods``
    (namespace/name) make up the excess, or all that is used if there is none; at most twenty of ``number``. ``ahead``
    is kept, beyond what is used, for the pods ``first``: nominated pods that wait for their node. ``terminating``: pods
    of the holder that use the resource and should be gone; see the field of that name of the explanation. ``inVain``:
    pods that count for nothing, as their nominated node is lost or cannot take them.
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


class NextStepModel(Model):
    """A next step: its name, its text, and in how many seconds, if that is known."""

    step: str
    text: str
    in_seconds: float | None


class PlaceModel(Model):
    """The position of a job in the line of its namespace in its queue: ``place``, from 1, of ``of`` jobs."""

    queue: str
    namespace: str
    place: int
    of: int


class GatedModel(Model):
    """A job that waits at its gates.

    ``kind``: that of a job that waits as a whole, and has no pods yet, as ``Job``; else empty. ``place``: the job's
    place in its queue, if nothing changed and all were admitted. ``rule`` and ``message``: what refuses it now; empty
    if nothing does.
    """

    job: str
    kind: str
    pods: int
    queue: str
    namespace: str
    priority: int
    place: int
    rule: str
    message: str


class GatedList(Model):
    """Jobs that wait at their gates, by queue and place. ``total`` counts all of them; ``items`` may be fewer."""

    total: int
    items: list[GatedModel]


class QueuedJobModel(Model):
    """A job that waits as a whole, of ``batch/v1`` (``kind`` is ``Job``) or of a kind in the setting ``jobs.kinds``.

    ``state``: ``waiting`` (it is suspended), ``starting`` (room is kept for its pods, and some have not come yet), or
    ``growing`` (an elastic Job runs with fewer pods than its user asks for, and waits for the others).
    ``place``: its place in its queue, among all that wait at gates there; 0 if it stands in no line now. ``pods`` and
    ``demand``: of all that it takes to run; if it is starting, of those that have not come. ``since``: when it was
    created, or suspended again (RFC 3339; empty if that is not known). ``rule``: what refuses it now; empty if nothing
    does. ``message``: why it waits. Of elastic Jobs ``minPods`` are enough, and ``askedParallelism`` is what the user
    asks for; both are 0 for others.
    """

    namespace: str
    name: str
    kind: str
    queue: str
    state: str
    place: int
    pods: int
    min_pods: int = 0
    asked_parallelism: int = 0
    demand: Quantities
    priority: int
    since: str
    rule: str
    message: str


class QueuedJobList(Model):
    """Jobs that are starting, and then those that wait, by queue and place. ``total`` counts all of them."""

    total: int
    items: list[QueuedJobModel]


class ExpectedStartModel(Model):
    """When a waiting job is expected to start (RFC 3339; empty if no end that is known lets it), and what it assumes.

    ``basis``: ``declared`` (run times that somebody says), ``estimated`` (some of them by pods that have ended) or
    ``none``. ``after``: the first few pods that end then. ``earliest``: when the nodes have room for it at the earliest
    by declared run times, if nobody else waited (RFC 3339; null if not known).
    """

    at: str
    earliest: str | None
    basis: str
    after: list[str]
    assuming: str


class WaitingJobModel(Model):
    """A job that waits: a Pod, the waiting members of a pod group, or a Job that waits as a whole (see ``kind``).

    ``rule``: what keeps the first pod waiting: a rule, or ``gated``, ``queued``, ``no-room``, ``other`` or ``untried``.
    ``since``: when it began to wait (RFC 3339; empty if not known). ``place``: its place in its queue, if it waits at
    gates, else 0. ``pods``: how many of it wait; ``podNames``: the first twenty of those that exist.
    ``expectedStart``: null if it is not known yet. ``evicted``: how it was evicted, if it was and this is remembered.
    """

    kind: str
    namespace: str
    name: str
    queue: str
    rule: str
    message: str
    since: str
    place: int
    pods: int
    pod_names: list[str]
    expected_start: ExpectedStartModel | None = None


class WaitingList(Model):
    """A page of the jobs that wait. ``total`` counts all that were asked for, ``remaining`` those after this page.

    ``continue``, if not empty, asks for the next page. Jobs that come or go in between move no other one.
    """

    total: int
    remaining: int
    continue_: str = Field(alias="continue")
    items: list[WaitingJobModel]


class EvictedModel(Model):
    """An eviction: when (RFC 3339), from which node, for which pod (empty: for none), and why.

    ``numbers`` has by resource what the pod requested, and the figures of its quota and queue just before. ``reason``
    is reclaim, job-taken-back, broken-gang, run-time-exceeded, promised-start or quota-manager.
    """

    at: str
    pod: str
    queue: str
    node: str
    reason: str
    for_: str = Field(alias="for")
    message: str
    numbers: dict[str, Quantities]


class EvictedList(Model):
    """The latest evictions, the latest first."""

    items: list[EvictedModel]


class ExplanationModel(Model):
    """The reason why a pod, or a Job that waits as a whole, is admitted or not, with current numbers and remedies.

    ``verdict`` is refused (in observe mode would-refuse, as no pod is refused), admissible, bound or unknown.
    ``outlook`` says what is being done for a waiting pod, or why nobody is evicted for it; ``next`` lists the steps;
    ``summary`` is one paragraph about all. ``gate``: the position in line, if the pod waits at a gate. ``searched``:
    how the search for remedies ended: ``complete``, ``out-of-time``, or empty if there was none. ``terminating``:
    sentences on pods of its namespace or queue that should be gone: since when, whether they count, and what ends them.
    ``expectedStart``: null if it is not known yet.
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
    next: list[NextStepModel]
    terminating: list[str] = Field(default=[])
    expected_start: ExpectedStartModel | None = None
    evicted: EvictedModel | None = None
    summary: str


class DecisionModel(Model):
    """A verdict on a pod that was sent to kube-scheduler, and its time (RFC 3339)."""

    at: str
    pod: str
    verdict: str
    rule: str
    message: str


class DecisionList(Model):
    """The most recent verdicts, the latest first."""

    items: list[DecisionModel]


class EvictionModel(Model):
    """A pod that is or would be evicted for another.

    ``failsJob``: the Job that this fails (NAMESPACE/NAME), if any. ``suspendsJob``: the Job that is suspended
    instead, so that all of its pods go, if any; of another kind it is named with its kind (``JobSet a/set``).
    ``lowersJob``: the elastic Job whose parallelism is lowered instead, so that its controller chooses which pods go.
    """

    pod: str
    node: str
    for_: str = Field(alias="for")
    reason: str
    fails_job: str = ""
    suspends_job: str = ""
    lowers_job: str = ""


class NominationModel(Model):
    """A pod and the node where room is made for it."""

    pod: str
    node: str


class ReservationModel(Model):
    """Room that is kept for a pod, or the node that is reserved for it as a member of a starving job.

    Also its node, its start (RFC 3339), and the victims. ``promisedStart`` is when a job with reserved nodes has room
    at the latest, empty if nothing is promised; ``moved`` is why that was moved later, the last time.
    """

    name: str
    reason: str
    pod: str
    job: str
    node: str
    victims: list[str]
    since: str
    promised_start: str = ""
    moved: str = ""


class ReservationList(Model):
    """Reservations, by name."""

    items: list[ReservationModel]


class PodGroupModel(Model):
    """A pod group: the members it needs, those that run or were admitted, those that wait, and its reservations."""

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
    """A waiting pod for which nobody is evicted, and the reason."""

    pod: str
    reason: str
    message: str


class PlanModel(Model):
    """Plans for waiting pods, those under way and those that would be made now. Pods are namespace/name."""

    evictions: list[EvictionModel]
    nominations: list[NominationModel]
    reservations: list[ReservationModel]
    waiting: list[WaitingModel]


class ProblemModel(Model):
    """A problem document (RFC 9457); ``field`` names the part of the request at fault, if one is."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


class HealthModel(Model):
    """The health of this process. If it cannot do its work, a problem document says so instead.

    ``warnings``: what is wrong although it can.
    """

    status: str
    warnings: list[str] | None = None
