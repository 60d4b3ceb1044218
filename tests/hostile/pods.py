"""Pods of hostile tenants: each is a small one to which some tricks are done, all of which the API server takes."""

from collections.abc import Callable
from dataclasses import dataclass

from app.store.heeded import GATE, GROUP, LEGACY_GROUP, MIRROR, PREEMPTIBLE, QUEUE, VOLCANO_GROUP
from tests.controlplane.devices import IMPLICIT
from tests.controlplane.objects import LINGERS, Object, pod
from tests.hostile.chance import Chance

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CLAIMS = tuple(f"claim-{number}" for number in range(40))
"""Claims, and templates of claims, that the pods of a tenant name, so that they share them."""
RENTED = {"pool": "rented"}
"""The label of nodes on which tenants borrow, and of which the owner takes them back."""
PRIORITIES = ("low", "high", "system-cluster-critical", "system-node-critical")
QUANTITIES = (
    *("1n", "1u", "0.0001", "1e-3", "1e2", ".5", "1.", "+1", "0", "00.100", "1E", "1Ei", "1e99", "1e-99"),
    *("9223372036854775807", "9223372036854775808", "9" * 60, "0." + "0" * 60 + "1", "12345678901234567890Gi"),
)
"""An exponent of a billion is left out: with that the API server itself computes for minutes."""
MOST_ANNOTATED = 250_000  # characters of all annotations of an object
MOST_PORTS = 60_000
_OF_SIZE = ("resources", "initContainers", "schedulingGates")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tenant's objects are: its namespace and the names that it makes use of."""

    namespace: str
    queues: tuple[str, ...] = ()
    groups: tuple[str, ...] = ("group-0", "group-1")
    others: tuple[str, ...] = ()
    """Namespaces of other tenants."""
    mark: str = ""
    """A label that its pods have: of those of other namespaces it demands nothing that have not got it."""


def hostile_pod(chance: Chance, place: Place, name: str) -> Object:
    """A pod with one to three tricks."""
    item = pod(name, place.namespace, cpu=chance.of("1m", "100m", "1", "2"), memory=chance.of(None, "1Mi"))
    item["metadata"] |= {"labels": {"app": "web"}, "annotations": {}}
    if place.mark:
        item["metadata"]["labels"][place.mark] = "yes"
    for trick in chance.some_of(TRICKS, chance.of(1, 1, 2, 3)):
        trick(chance, place, item)
    if "nodeName" in item["spec"]:
        _make_small(item)
    return item


def _make_small(item: Object) -> None:
    """A kubelet would turn away what has no room, and there is none here."""
    small = pod("", "", cpu="1m")["spec"]["containers"]
    item["spec"] = {key: value for key, value in item["spec"].items() if key not in _OF_SIZE} | {"containers": small}


def _keeps_away(chance: Chance, place: Place, item: Object) -> None:
    _affinity(item)["podAntiAffinity"] = {REQUIRED: _terms(chance, place)}


def _seeks_company(chance: Chance, place: Place, item: Object) -> None:
    _affinity(item)["podAffinity"] = {REQUIRED: _terms(chance, place)}


def _terms(chance: Chance, place: Place) -> list[Object]:
    wide, deep = chance.shared_out(chance.many())
    return [_term(chance, place, deep) for _ in range(wide)]


def _term(chance: Chance, place: Place, deep: int) -> Object:
    term = {"labelSelector": chance.selector(deep), "topologyKey": chance.of("kubernetes.io/hostname", "zone", "no")}
    reach = chance.random()
    if reach < 0.2:
        term["namespaceSelector"] = {}
    elif reach < 0.3:
        term["namespaceSelector"] = {"matchLabels": chance.labels(1)}
    elif reach < 0.5 and place.others:
        term["namespaces"] = chance.some_of(place.others, deep)
    else:
        return term
    if place.mark:
        term["labelSelector"].setdefault("matchExpressions", []).append({"key": place.mark, "operator": "Exists"})
    return term


def _spreads(chance: Chance, place: Place, item: Object) -> None:
    wide, deep = chance.shared_out(chance.many())
    keys = ["zone", "kubernetes.io/hostname", *(chance.key() for _ in range(wide))][:wide]
    item["spec"]["topologySpreadConstraints"] = [
        {
            "topologyKey": key,
            "maxSkew": chance.of(1, 2, 2**31 - 1),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": chance.selector(deep),
            **chance.of({}, {"minDomains": chance.of(1, 2**31 - 1)}, {"nodeTaintsPolicy": "Honor"}),
        }
        for key in dict.fromkeys(keys)
    ]


def _chooses_nodes(chance: Chance, place: Place, item: Object) -> None:
    wide, deep = chance.shared_out(chance.many())
    terms = [{"matchExpressions": [_of_node(chance) for _ in range(deep)]} for _ in range(wide)]
    by_name = {"key": "metadata.name", "operator": chance.of("In", "NotIn"), "values": [f"node-{chance.of(0, 1, 10)}"]}
    if chance.often(0.3):
        terms = [{"matchFields": [by_name]} for _ in range(wide)]
    _affinity(item)["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}


def _of_node(chance: Chance) -> Object:
    operator = chance.of("In", "NotIn", "NotIn", "Exists", "DoesNotExist", "DoesNotExist", "Gt", "Lt")
    rest = {"values": [str(chance.of(0, 1, 2**63 - 1))]} if operator in ("Gt", "Lt") else {}
    return {"key": chance.key(), "operator": operator} | (
        {"values": [chance.value() for _ in range(chance.of(1, 1, 20))]} if "In" in operator else rest
    )


def _selects_nodes(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["nodeSelector"] = chance.labels(chance.many())


def _tolerates(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["tolerations"] = [
        {"operator": "Exists"}
        if chance.often(0.1)
        else {"key": chance.key(), "operator": "Equal", "value": chance.value(), "effect": "NoSchedule"}
        for _ in range(chance.many())
    ]


def _takes_ports(chance: Chance, place: Place, item: Object) -> None:
    first, count = chance.randint(1, MOST_PORTS), chance.many()
    item["spec"]["containers"][0]["ports"] = [
        {
            "containerPort": 80,
            "hostPort": number,
            "protocol": chance.of("TCP", "UDP"),
            "hostIP": chance.of("", "0.0.0.0"),
        }
        for number in range(first, first + count)
    ]


def _annotates(chance: Chance, place: Place, item: Object) -> None:
    length = chance.of(10, 1000, 100_000)
    count = min(chance.many(), MOST_ANNOTATED // (length + 50))
    made = {
        f"{chance.word()}.example.com/{chance.word()}": chance.of("x", "\x1b", "é") * (length // 2)
        for _ in range(count)
    }
    item["metadata"]["annotations"] |= made


def _labels(chance: Chance, place: Place, item: Object) -> None:
    item["metadata"]["labels"] |= chance.labels(chance.many())


def _is_known_to_us(chance: Chance, place: Place, item: Object) -> None:
    """What Quotaward reads of a pod, with values that mean something and with others."""
    odd = ("", "no", "False", "\x1b]52;c;\x07", "x" * 10_000)
    item["metadata"]["annotations"] |= {
        PREEMPTIBLE: chance.of("false", "false", "true", *odd),
        QUEUE: chance.of(*place.queues, *odd),
        VOLCANO_GROUP: chance.of(*place.groups, *odd),
    }


def _is_in_a_group(chance: Chance, place: Place, item: Object) -> None:
    name = chance.of(*place.groups, chance.word())
    how = chance.random()
    if how < 0.6:
        item["metadata"]["labels"][chance.of(GROUP, GROUP, LEGACY_GROUP)] = name
    elif how < 0.8:
        item["metadata"]["annotations"][VOLCANO_GROUP] = name
    else:
        item["spec"]["schedulingGroup"] = {"podGroupName": name}


def _invents_resources(chance: Chance, place: Place, item: Object) -> None:
    invented = {f"{chance.word()}.example.com/r": "1" for _ in range(chance.many())}
    resources = item["spec"]["containers"][0]["resources"]
    resources["requests"] |= invented
    resources["limits"] |= invented


def _asks_for_odd_amounts(chance: Chance, place: Place, item: Object) -> None:
    requests = item["spec"]["containers"][0]["resources"]["requests"]
    requests[chance.of("cpu", "memory", "ephemeral-storage")] = chance.of(*QUANTITIES)


def _is_large(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = chance.of("5", "50", "500", "50000")


def _has_many_containers(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["containers"] += [_container(chance, number) for number in range(chance.many(300))]


def _has_init_containers(chance: Chance, place: Place, item: Object) -> None:
    made = [_container(chance, f"i{number}") for number in range(chance.many(300))]
    item["spec"]["initContainers"] = [each | chance.of({}, {"restartPolicy": "Always"}) for each in made]


def _container(chance: Chance, number: object) -> Object:
    requests = {chance.of("cpu", "memory"): chance.of("1m", "1", "1n")}
    return {"name": f"c{number}", "image": "none", "resources": {"requests": requests}}


def _asks_as_a_whole(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["resources"] = {"requests": {"cpu": chance.of("2", "60000"), "memory": "1Gi"}}


def _is_owned(chance: Chance, place: Place, item: Object) -> None:
    versions = {
        "DaemonSet": ("apps/v1", "evil.example.com/v1"),
        "Node": ("v1", "evil.example.com/v1"),
        "Job": ("batch/v1",),
        "ReplicaSet": ("apps/v1",),
    }
    count = chance.many(1000)
    kinds = [chance.of(*versions) for _ in range(count)]
    item["metadata"]["ownerReferences"] = [
        {
            "apiVersion": chance.of(*versions[kind]),
            "kind": kind,
            "name": chance.of("job-0", "d"),
            "uid": chance.word(),
            "controller": number == 0,
        }
        for number, kind in enumerate(kinds)
    ]
    if chance.often(0.3):
        item["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
        item["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = chance.of("0", "x", "9" * 99)


def _has_priority(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["priorityClassName"] = chance.of(*PRIORITIES)


def _takes_its_time(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["terminationGracePeriodSeconds"] = chance.of(1, 3600, 2**31 - 1, 2**62)
    if chance.often(0.3):
        item["metadata"]["annotations"][LINGERS] = "true"


def _waits_at_gates(chance: Chance, place: Place, item: Object) -> None:
    names = [f"{chance.word()}.example.com/gate" for _ in range(chance.many())] if chance.often(0.5) else []
    item["spec"]["schedulingGates"] = [{"name": name} for name in [GATE, *names]]


def _has_claims(chance: Chance, place: Place, item: Object) -> None:
    names = [f"v{number}" for number in range(chance.many(200))]
    item["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    if chance.often(0.3):
        item["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "nobody-s"}]


def _takes_devices(chance: Chance, place: Place, item: Object) -> None:
    """By claims that pods of the tenant share, or that are to be made for it, and by names of classes."""
    item["spec"]["resourceClaims"] = [
        {"name": f"c{number}"}
        | chance.of(
            {"resourceClaimName": chance.of(*CLAIMS, chance.word())},
            {"resourceClaimTemplateName": chance.of(*CLAIMS, chance.word())},
        )
        for number in range(chance.many(300))
    ]
    for part in item["spec"]["containers"][0]["resources"].values() if chance.often(0.3) else ():
        part[f"{IMPLICIT}{chance.of('gpu', chance.word())}"] = str(chance.of(1, 2**63 - 1))


def _asks_another_scheduler(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["schedulerName"] = chance.of("nobody", "x" * 200)


def _places_itself(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["nodeName"] = chance.of("node-0", "nowhere", chance.word())
    if chance.often(0.3):
        item["metadata"]["annotations"][MIRROR] = "x"


def _borrows(chance: Chance, place: Place, item: Object) -> None:
    item["spec"]["nodeSelector"] = RENTED
    item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"


Trick = Callable[[Chance, Place, Object], None]
TRICKS: tuple[Trick, ...] = (
    _keeps_away,
    _seeks_company,
    _spreads,
    _chooses_nodes,
    _selects_nodes,
    _tolerates,
    _takes_ports,
    _annotates,
    _labels,
    _is_known_to_us,
    _is_in_a_group,
    _invents_resources,
    _asks_for_odd_amounts,
    _is_large,
    _has_many_containers,
    _has_init_containers,
    _asks_as_a_whole,
    _is_owned,
    _has_priority,
    _takes_its_time,
    _waits_at_gates,
    _has_claims,
    _takes_devices,
    _asks_another_scheduler,
    _places_itself,
    _borrows,
)


def _affinity(item: Object) -> Object:
    return item["spec"].setdefault("affinity", {})
