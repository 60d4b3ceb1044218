"""What happened in a cluster, in one order: of everything that was seen by watches, who was where when, and under what.

Nothing of Quotaward's is used here, as it is what gets checked.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Generic, TypeVar

from tests.chaos import devices
from tests.controlplane.objects import GROUP, Object, condition, is_bound, number

Amounts = dict[str, Decimal]
Position = int
"""Where something stands in the order of all that happened."""

KINDS = (
    "pods",
    "nodes",
    "namespaces",
    "elasticquotas",
    "queues",
    "podgroups",
    "reservations",
    "poddisruptionbudgets",
    "resourceclaims",
    "resourceslices",
)
CLOCKS = "clocks"
"""The kind of record that says whether some clock of Quotaward's is wrong, which no watch shows."""
_Value = TypeVar("_Value")
_THOUSANDTH = Decimal("0.001")
_GROUPS = (GROUP, "pod-group.scheduling.sigs.k8s.io")
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
WAIT = "quotaward.dev/jobs"
PREEMPTIBLE = "quotaward.dev/preemptible"
MIRROR = "kubernetes.io/config.mirror"
CRITICAL = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Record:
    """One event of a watch: seen at ``at`` (seconds), of the revision of etcd that all kinds of objects share."""

    at: float
    revision: int
    type: str
    kind: str
    object: Object


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an elastic quota says; where min is above max, max counts."""

    min: Amounts
    max: Amounts


class Timeline(Generic[_Value]):
    """A value that changes, from its first one on."""

    def __init__(self, first: _Value) -> None:
        self._positions: list[Position] = [-1]
        self._values: list[_Value] = [first]

    def set(self, position: Position, value: _Value) -> None:
        if value != self._values[-1]:
            self._positions.append(position)
            self._values.append(value)

    def at(self, position: Position) -> _Value:
        return self._values[bisect_right(self._positions, position) - 1]

    def during(self, start: Position, end: Position) -> Iterator[_Value]:
        """All values that held at some moment from one position to another (both count)."""
        first, last = bisect_right(self._positions, start) - 1, bisect_right(self._positions, end)
        yield from self._values[first:last]

    def spans(self) -> Iterator[tuple[Position, float, _Value]]:
        """Each value, from which position on it held, and where the next one began (infinity: there is none)."""
        yield from zip(self._positions, [*self._positions[1:], inf], self._values, strict=True)


@dataclass(slots=True)
class Life:
    """A pod: as it was seen first and last, and where in the order it was created, bound, evicted, and off its node.

    Of what changed meanwhile nobody knows which version was decided on. So ``least`` and ``most`` are what it has
    requested at least and at most, and ``groups`` all groups that it has named. Devices of its claims are among both;
    those of claims that others had before it are only among ``most``.
    """

    first: Object
    pod: Object
    created: Position
    requested: Amounts
    """``least`` without devices of claims."""
    least: Amounts
    most: Amounts
    groups: frozenset[str]
    ever_opted_out: bool
    shared: Amounts
    """Devices of claims that others had before it."""
    bound: float = inf
    by_scheduler: bool = False
    evicted: float = inf
    deleted: float = inf
    """Where it was first seen being deleted."""
    ended: float = inf
    request: Amounts = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.pod["metadata"]["namespace"]

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.pod['metadata']['name']}"

    @property
    def node(self) -> str:
        return self.pod["spec"].get("nodeName", "")

    @property
    def held(self) -> Amounts:
        """What it may be evicted for: what it has requested at least, and devices that it shares."""
        return total((self.least, self.shared))

    def is_on_node(self, position: Position) -> bool:
        return self.bound <= position < self.ended

    def waits(self, position: Position) -> bool:
        return self.created <= position < min(self.bound, self.ended)


class History:
    """All that was recorded, and what follows from it."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = sorted(records, key=lambda record: record.revision)
        # What was seen late, on the watch of its kind, happened before what is newer and was seen earlier.
        self.times = list(accumulate((record.at for record in reversed(self.records)), min))[::-1]
        self._epoch = max((_created(record.object) - record.at for record in self.records), default=0.0)
        """What makes a time of this history seconds since the epoch: objects are seen when they are made, or later."""
        self.lives: dict[str, Life] = {}
        self.now: dict[str, dict[str, Object]] = {}
        self.reservations: dict[str, tuple[Object, Position, float]] = {}
        """By UID (names are used again): the reservation, where it began and where it ended."""
        self.promised: dict[str, Timeline[float]] = {}
        """By UID of a reservation: the start that it promises, in seconds since the epoch; 0 if there is none."""
        self.jobs: dict[str, Timeline[Object | None]] = {}
        """By UID, the Jobs."""
        self.queued: dict[str, Timeline[bool]] = {}
        """By namespace, whether its Jobs wait as a whole."""
        self.deadlines: dict[str, set[tuple[float, int]]] = {}
        """By UID of a Job: each deadline that it has had, with when it was started (seconds since the epoch, or 0)."""
        self.wrong_clocks = Timeline(first=False)
        """Whether some clock of Quotaward's is wrong."""
        self.bounds: dict[str, Timeline[Bounds | None]] = {}
        """By namespace: the elastic quota in force."""
        self.used: dict[str, Timeline[Amounts]] = {}
        """By namespace: what its pods on nodes request together."""
        self.surely_used: dict[str, Timeline[Amounts]] = {}
        """The same, of pods that were resized the least that they have requested."""
        self.pool: Timeline[tuple[Amounts, Amounts]] = Timeline(({}, {}))
        """What pods under quotas surely use together, and what their quotas guarantee together."""
        self.budgets: dict[tuple[str, str], Timeline[Object | None]] = {}
        self.sizes: dict[str, Timeline[Amounts]] = {}
        """By node: what it has."""
        self.groups: dict[tuple[str, str], int] = {}
        """By namespace and name: the minimum of a pod group."""
        self.relabelled: set[str] = set()
        """Namespaces in which labels of pods were changed."""
        self._versions: dict[str, list[Object]] = {}
        self._of_namespace: dict[str, list[Life]] = {}
        self._on_nodes: dict[str, dict[str, tuple[Amounts, Amounts]]] = {}
        self._claims_by_name: dict[tuple[str, str], Timeline[Object | None]] = {}
        self._claims: dict[str, Object] = {}
        """By UID: the claims that have devices."""
        self._claims_of: dict[str, dict[str, tuple[Object, bool]]] = {}
        """By UID of a pod and of a claim: a claim whose devices it has had, and whether it had them first."""
        self._parts_of_nodes: dict[str, dict[str, Amounts]] = {}
        for record in self.records:
            if record.kind == "pods":
                self._versions.setdefault(record.object["metadata"]["uid"], []).append(record.object)
            elif record.kind == "resourceclaims":
                self._note_users(record.object)
        for position, record in enumerate(self.records):
            self._take(position, record)

    def window(self, position: Position, seconds: float) -> Position:
        """Where the last ``seconds`` before a position begin."""
        return max(0, bisect_left(self.times, self.times[position] - seconds) - 1)

    def moment(self, position: Position) -> float:
        """When that was, in seconds since the epoch; it may have been a moment later."""
        return self.times[position] + self._epoch

    def since(self, moment: float) -> Position:
        """Where a moment comes, in seconds since the epoch; after the last position, if that is later."""
        return bisect_left(self.times, moment - self._epoch)

    def objects(self, kind: str) -> list[Object]:
        """The objects of a kind that there are at the end."""
        return list(self.now.get(kind, {}).values())

    def all_objects(self) -> dict[str, list[Object]]:
        """By kind, the objects that there are at the end."""
        return {kind: self.objects(kind) for kind in KINDS}

    def pods_of(self, namespace: str) -> list[Life]:
        return self._of_namespace.get(namespace, [])

    def may_be_exempt(self, life: Life, start: Position, end: Position) -> bool:
        """Whether no rule may have applied to a pod at some moment: it is critical, and its namespace had no quota."""
        if priority_of(life.pod) < CRITICAL:
            return False
        return life.namespace not in self.bounds or None in self.bounds[life.namespace].during(start, end)

    def claims_of(self, life: Life) -> Iterable[str]:
        """UIDs of the claims whose devices a pod has had."""
        return self._claims_of.get(life.pod["metadata"]["uid"], {}).keys()

    def still_wanted(self, life: Life, start: Position, end: Position) -> Amounts:
        """The devices of claims of a pod that wants them, and has not had them later either."""
        had, namespace = self.claims_of(life), life.namespace
        made = life.pod.get("status", {}).get("resourceClaimStatuses", ())
        names = {each.get("resourceClaimName") for each in (*made, *life.pod["spec"].get("resourceClaims", ()))}
        lines = (self._claims_by_name[namespace, name] for name in names if (namespace, name) in self._claims_by_name)
        wanted = (next(filter(None, line.during(start, end)), None) for line in lines)
        return total(devices.counted_for(claim) for claim in wanted if claim and claim["metadata"]["uid"] not in had)

    def _take(self, position: Position, record: Record) -> None:
        uid, there = record.object["metadata"]["uid"], self.now.setdefault(record.kind, {})
        gone = record.type == "DELETED"
        if gone:
            there.pop(uid, None)
        else:
            there[uid] = record.object
        namespace = record.object["metadata"].get("namespace", "")
        if record.kind == "pods":
            self._take_pod(position, record.object, gone=gone)
        elif record.kind == "elasticquotas":
            own = [quota for quota in there.values() if quota["metadata"]["namespace"] == namespace]
            oldest = min(own, key=lambda q: (q["metadata"]["creationTimestamp"], q["metadata"]["name"]), default=None)
            self.bounds.setdefault(namespace, Timeline(None)).set(position, bounds_of(oldest) if oldest else None)
            self._sum_up(position)
        elif record.kind == "reservations":
            self._take_reservation(position, record.object, gone=gone)
        elif record.kind == "poddisruptionbudgets":
            key = namespace, record.object["metadata"]["name"]
            self.budgets.setdefault(key, Timeline(None)).set(position, None if gone else record.object)
        elif record.kind == "nodes":
            size = {name: number(str(each)) for name, each in record.object["status"].get("allocatable", {}).items()}
            self._take_part(position, record.object["metadata"]["name"], uid, {} if gone else size)
        elif record.kind == "resourceslices":
            node, size = devices.on_node(record.object)
            self._take_part(position, node, uid, {} if gone else size)
        elif record.kind == "resourceclaims":
            self._take_claim(position, record.object, gone=gone)
        else:
            self._take_what_counts_for_pods(position, record, gone=gone)

    def _take_what_counts_for_pods(self, position: Position, record: Record, *, gone: bool) -> None:
        meta, spec = record.object["metadata"], record.object.get("spec", {})
        if record.kind == "podgroups":
            self.groups[meta["namespace"], meta["name"]] = spec.get("minMember") or 0
        elif record.kind == "namespaces":
            waits = labels_of(record.object).get(WAIT) == "queued"
            self.queued.setdefault(meta["name"], Timeline(first=False)).set(position, waits)
        elif record.kind == "jobs":
            self.jobs.setdefault(meta["uid"], Timeline(None)).set(position, None if gone else record.object)
            if deadline := spec.get("activeDeadlineSeconds"):
                began = seconds(record.object.get("status", {}).get("startTime"))
                self.deadlines.setdefault(meta["uid"], set()).add((began, deadline))
        elif record.kind == CLOCKS:
            self.wrong_clocks.set(position, record.object["wrong"])

    def _take_pod(self, position: Position, pod: Object, *, gone: bool) -> None:
        life = self.lives.get(pod["metadata"]["uid"])
        if life is None:
            life = self.lives[pod["metadata"]["uid"]] = self._begin(position, pod)
        life.request = self._requested(pod)
        if is_bound(pod) and life.bound == inf:
            life.bound, life.by_scheduler = position, life.created < position
        if (gone or is_finished(pod)) and life.ended == inf:
            life.ended = position
        if is_evicted(pod) and life.evicted == inf:
            life.evicted = position
        if "deletionTimestamp" in pod["metadata"]:
            life.deleted = min(life.deleted, position)
        life.pod = pod
        used = (life.request, life.requested) if life.is_on_node(position) else None
        self._count(position, life.namespace, pod["metadata"]["uid"], used)
        for claim in self._claims_of.get(pod["metadata"]["uid"], ()):
            self._count_claim(position, claim)

    def _requested(self, pod: Object) -> Amounts:
        """What a pod requests, but for devices for which the scheduler has made a claim."""
        claims = self._claims_of.get(pod["metadata"]["uid"], {}).values()
        by_claim = any(devices.is_of_scheduler(claim) for claim, _ in claims)
        return devices.without(request_of(pod), devices.DEVICES if by_claim else ())

    def _note_users(self, claim: Object) -> None:
        for first, uid in enumerate(devices.users(claim)):
            known = self._claims_of.setdefault(uid, {})
            known.setdefault(claim["metadata"]["uid"], (claim, not first))

    def _take_claim(self, position: Position, claim: Object, *, gone: bool) -> None:
        key = claim["metadata"]["namespace"], claim["metadata"]["name"]
        self._claims_by_name.setdefault(key, Timeline(None)).set(position, None if gone else claim)
        self._claims[claim["metadata"]["uid"]] = {**claim, "status": {}} if gone else claim
        self._count_claim(position, claim["metadata"]["uid"])

    def _count_claim(self, position: Position, uid: str) -> None:
        """A claim counts once, for as long as one of the pods that it is reserved for has not ended."""
        claim = self._claims.get(uid)
        if claim is not None:
            there = (self.lives[each].ended == inf for each in devices.users(claim) if each in self.lives)
            amounts = devices.has(claim)
            self._count(position, claim["metadata"]["namespace"], uid, (amounts, amounts) if any(there) else None)

    def _take_part(self, position: Position, node: str, uid: str, size: Amounts) -> None:
        """Notes what a node has by itself, or by a slice."""
        parts = self._parts_of_nodes.setdefault(node, {})
        parts[uid] = size
        self.sizes.setdefault(node, Timeline({})).set(position, total(parts.values()))

    def _begin(self, position: Position, pod: Object) -> Life:
        versions, namespace = self._versions.pop(pod["metadata"]["uid"]), pod["metadata"]["namespace"]
        requests = [self._requested(each) for each in versions]
        names = {name for request in requests for name in request}
        always = [name for name in names if all(name in request for request in requests)]
        nothing = Decimal(0)
        if any(labels_of(each) != labels_of(pod) for each in versions):
            self.relabelled.add(namespace)
        claims = self._claims_of.get(pod["metadata"]["uid"], {}).values()
        requested = {name: min(request[name] for request in requests) for name in always}
        most = {name: max(request.get(name, nothing) for request in requests) for name in names}
        life = Life(
            pod,
            pod,
            position,
            requested,
            total((requested, *(devices.has(claim) for claim, is_first in claims if is_first))),
            total((most, *(devices.has(claim) for claim, _ in claims))),
            frozenset(name for each in versions for name in groups_of(each)),
            any(map(is_opted_out, versions)),
            total(devices.has(claim) for claim, is_first in claims if not is_first),
        )
        self._of_namespace.setdefault(namespace, []).append(life)
        return life

    def _count(self, position: Position, namespace: str, uid: str, after: tuple[Amounts, Amounts] | None) -> None:
        """Notes what a pod or a claim takes from now on, and what it surely takes."""
        on_nodes = self._on_nodes.setdefault(namespace, {})
        before = on_nodes.pop(uid, None)
        if after is not None:
            on_nodes[uid] = after
        if after == before:
            return
        for which, lines in enumerate((self.used, self.surely_used)):
            line = lines.setdefault(namespace, Timeline({}))
            line.set(position, _moved(line.at(position), before and before[which], after and after[which]))
        if namespace in self.bounds and self.bounds[namespace].at(position):
            used, least = self.pool.at(position)
            self.pool.set(position, (_moved(used, before and before[1], after and after[1]), least))

    def _sum_up(self, position: Position) -> None:
        governed = {name: bounds for name, line in self.bounds.items() if (bounds := line.at(position))}
        used = total(self.surely_used[name].at(position) for name in governed if name in self.surely_used)
        self.pool.set(position, (used, total(bounds.min for bounds in governed.values())))

    def _take_reservation(self, position: Position, reservation: Object, *, gone: bool) -> None:
        uid = reservation["metadata"]["uid"]
        _, began, ended = self.reservations.get(uid, (reservation, position, inf))
        if (gone or reservation.get("status", {}).get("failedAt")) and ended == inf:
            ended = position
        self.reservations[uid] = reservation, began, ended
        start = seconds(reservation.get("status", {}).get("promisedStart"))
        self.promised.setdefault(uid, Timeline(0.0)).set(position, start)


def write(records: Iterable[Record], file: Path) -> None:
    """Keeps records, one per line, to look at them again."""
    with file.open("w") as out:
        out.writelines(json.dumps(astuple(record)) + "\n" for record in records)


def read(file: Path) -> list[Record]:
    """The records that were kept."""
    return [Record(*json.loads(line)) for line in file.read_text().splitlines()]


def bounds_of(quota: Object) -> Bounds:
    spec = quota.get("spec", {})
    least, most = (
        {devices.counted_as(name): number(str(value)) for name, value in (spec.get(bound) or {}).items()}
        for bound in ("min", "max")
    )
    return Bounds({name: min(value, most.get(name, value)) for name, value in least.items()}, most)


def request_of(pod: Object) -> Amounts:
    """What a pod requests, itself included: containers and sidecars, or an earlier stage of it that takes more."""
    running = total(map(_asked, pod["spec"]["containers"]))
    sidecars: Amounts = {}
    stages = []
    for each in pod["spec"].get("initContainers", ()):
        if each.get("restartPolicy") == "Always":
            sidecars = total((sidecars, _asked(each)))
        else:
            stages.append(total((sidecars, _asked(each))))
    request = total((running, sidecars))
    for stage in stages:
        request |= {name: max(value, request.get(name, value)) for name, value in stage.items()}
    request |= _asked(pod["spec"])
    whole = {
        name: value if name == "cpu" else value.to_integral_value(ROUND_CEILING) for name, value in request.items()
    }
    return {name: value for name, value in sorted(whole.items()) if value} | {"pods": Decimal(1)}


def selects(selector: Object | None, pod: Object) -> bool:
    """Whether the selector of a disruption budget selects a pod."""
    if selector is None:
        return False
    labels = labels_of(pod)
    wanted = (selector.get("matchLabels") or {}).items()
    return wanted <= labels.items() and all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
    return value is None


def seconds(time: str | None) -> float:
    """A time in an object, in seconds since the epoch; 0 if there is none."""
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def _created(item: Object) -> float:
    return seconds(item["metadata"].get("creationTimestamp"))


def _asked(container: Object) -> Amounts:
    """What a container, or a pod as a whole, requests: Kubernetes rounds it up to thousandths."""
    requests = container.get("resources", {}).get("requests", {})
    return total({devices.counted_as(name): _to_thousandths(number(str(each)))} for name, each in requests.items())


def _to_thousandths(value: Decimal) -> Decimal:
    return value.quantize(_THOUSANDTH, ROUND_CEILING) if value % _THOUSANDTH else value


def _moved(amounts: Amounts, less: Amounts | None, more: Amounts | None) -> Amounts:
    """Amounts of which something was taken, and to which something was added."""
    names = {**amounts, **(less or {}), **(more or {})}
    nothing = Decimal(0)
    moved = {
        name: amounts.get(name, nothing) - (less or {}).get(name, nothing) + (more or {}).get(name, nothing)
        for name in names
    }
    return {name: value for name, value in moved.items() if value}


def total(many: Iterable[Amounts]) -> Amounts:
    result: Amounts = {}
    for amounts in many:
        for name, value in amounts.items():
            result[name] = result.get(name, Decimal(0)) + value
    return result


def is_finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_evicted(pod: Object) -> bool:
    return eviction_of(pod) in ("EvictionByEvictionAPI", "PreemptionByScheduler")


def eviction_of(pod: Object) -> str:
    """Why the pod was evicted; empty if it was not."""
    found = condition(pod, "DisruptionTarget")
    return found.get("reason", "") if found.get("status") == "True" else ""


def priority_of(pod: Object) -> int:
    return pod["spec"].get("priority") or 0


def group_of(pod: Object) -> str:
    return labels_of(pod).get(GROUP, "")


def groups_of(pod: Object) -> Iterator[str]:
    """The groups that a pod names, in whichever way."""
    yield from (labels_of(pod)[label] for label in _GROUPS if label in labels_of(pod))
    if name := pod["metadata"].get("annotations", {}).get(GROUP_ANNOTATION):
        yield name
    if group := pod["spec"].get("schedulingGroup"):
        yield group.get("podGroupName", "")


def labels_of(pod: Object) -> dict[str, str]:
    return pod["metadata"].get("labels", {})


def is_opted_out(pod: Object) -> bool:
    return pod["metadata"].get("annotations", {}).get(PREEMPTIBLE) == "false"


def owner_of(pod: Object) -> str:
    """The kind of who controls the pod, if it is one of Kubernetes' own; Node for those alone that a kubelet made."""
    if MIRROR in pod["metadata"].get("annotations", {}):
        return "Node"
    owners = (owner for owner in pod["metadata"].get("ownerReferences", ()) if owner.get("controller"))
    kind = next((owner["kind"] for owner in owners if "." not in owner.get("apiVersion", "")), "")
    return "" if kind == "Node" else kind


def owners_of(item: Object) -> set[str]:
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences", ()) if "uid" in owner}
