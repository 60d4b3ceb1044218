"""The objects that there are, and good inputs, from which bad ones are made."""

import json
from pathlib import Path

import yaml

from app.store.device_classes import DEVICE_CLASSES
from app.store.heeded import ALLOWED_QUEUES, GATED, QUEUE, WEIGHT
from app.store.jobs import JOBS
from app.store.kinds import KINDS
from app.store.limit_ranges import LIMIT_RANGES
from app.store.namespaces import NAMESPACES
from app.store.pod_groups import NATIVE_GROUPS, POD_GROUPS
from app.store.priority_classes import PRIORITY_CLASSES
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from app.store.resource_quotas import RESOURCE_QUOTAS
from app.store.resource_slices import RESOURCE_SLICES
from app.store.runtime_classes import RUNTIME_CLASSES
from app.whatif.models import EXAMPLES
from tests.unit.app.given import Json, made, namespace, node, pod, queue, quota, refused
from tests.unit.app.situations import budget, cpus, created, group, member, reservation, running
from tests.wire.recordings import DIRECTORY, recording

_ROOT = Path(__file__).parents[2]
NATIVE = next(kind for kind in POD_GROUPS if kind.label == NATIVE_GROUPS)
MANAGED = {"uid": "rq", "labels": {"quotaward.dev/managed": "true"}}
_NO_ROOM = "0/3 nodes are available: 3 Insufficient cpu."
_AT_GATE = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}


def _job(of: str, name: str) -> Json:
    """A Job with something of everything that is read of one."""
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1, 137]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    limits = {"backoffLimit": 1, "backoffLimitPerIndex": 1, "activeDeadlineSeconds": 60}
    status = {
        "startTime": "2026-01-01T00:00:00Z",
        "failed": 1,
        "uncountedTerminatedPods": {"failed": ["u"]},
        "conditions": [{"type": "Suspended", "status": "False"}],
    }
    more = {"spec": limits | {"podFailurePolicy": {"rules": rules}}, "status": status}
    return made(JOBS, name, of, {"uid": f"{of}/{name}"}, **more)


def _suspended(of: str, name: str) -> Json:
    """A Job that waits as a whole, with something of everything that adds to what its template says."""
    limited = {"name": "main", "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}}
    classes = {"priorityClassName": "high", "runtimeClassName": "vm"}
    spec = {"containers": [limited], "initContainers": [limited], "resources": {"limits": {"cpu": "3"}}} | classes
    labels = {"quotaward.dev/queued": "true"}
    waiting = {"suspend": True, "parallelism": 3, "completions": 5, "template": {"spec": spec}}
    return made(JOBS, name, of, {"uid": f"{of}/{name}", "labels": labels}, spec=waiting)


def _of_job(of: str, name: str) -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": f"{of}/train", "controller": True}
    metadata = {
        "annotations": {"batch.kubernetes.io/job-index-failure-count": "1"},
        "ownerReferences": [owner],
        "finalizers": ["batch.kubernetes.io/job-tracking"],
    }
    return pod(name, of, metadata=metadata, nodeName="n1")


def _gated(name: str) -> Json:
    waiting = pod(name, "c", schedulingGates=[{"name": "quotaward.dev/quota"}])
    return waiting | {"status": {"phase": "Pending", "conditions": [_AT_GATE]}}


def _choosy(name: str) -> Json:
    """A pod with something of everything that is read of one."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
    near = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "namespaces": ["a"]}]
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    metadata = {
        "labels": {"app": "x"},
        "annotations": {"quotaward.dev/preemptible": "false", "scheduling.volcano.sh/queue-name": "q"},
        "resourceVersion": "7",
        "ownerReferences": [{"kind": "Job", "uid": "j", "controller": True}],
        **created(1),
    }
    chosen = pod(
        name,
        "a",
        metadata=metadata,
        priority=5,
        preemptionPolicy="Never",
        overhead={"cpu": "10m"},
        initContainers=[{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}}],
        nodeSelector={"zone": "a"},
        affinity={
            "nodeAffinity": {required: {"nodeSelectorTerms": terms}},
            "podAffinity": {required: near},
            "podAntiAffinity": {required: near},
        },
        tolerations=[{"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
        topologySpreadConstraints=[spread],
        resources={"requests": {"cpu": "2"}},
    )
    chosen["spec"]["containers"][0]["ports"] = [{"hostPort": 80, "protocol": "TCP", "hostIP": "0.0.0.0"}]
    status = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}, "name": "main"}
    return chosen | {"status": {"phase": "Pending", "nominatedNodeName": "n2", "containerStatuses": [status]}}


def _unbounded(name: str) -> Json:
    """A member of a gang that no rule refuses, so that places are looked for."""
    return pod(name, "d", {"cpu": 2}, {"labels": {"scheduling.x-k8s.io/pod-group": "g"}})


def _node(name: str, zone: str) -> Json:
    there = node(name, **cpus(8))
    there["metadata"] |= {"labels": {"zone": zone, "kubernetes.io/hostname": name}}
    there["spec"] = {"taints": [{"key": "dedicated", "value": "x", "effect": "PreferNoSchedule"}]}
    there["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return there


_OF_DRIVER: Json = {"cel": {"expression": "device.driver == 'x.com' && device.attributes['x.com'].type == 'gpu'"}}
_SLICE: Json = {
    "driver": "x.com",
    "nodeName": "n1",
    "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
    "devices": [
        {"name": "d", "attributes": {"type": {"string": "gpu"}, "cores": {"int": 7}, "y.com/numa": {"bool": True}}},
        {"name": "e", "taints": [{"key": "broken", "effect": "NoSchedule"}], "allowMultipleAllocations": True},
    ],
}
_DEVICES: Json = {
    "devices": {
        "requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
            {"name": "s", "firstAvailable": [{"name": "t", "deviceClassName": "gpu", "allocationMode": "All"}]},
        ]
    }
}
_ALLOCATED: Json = {"allocation": {"devices": {"results": [{"request": "s/t"}, {"request": "r", "adminAccess": True}]}}}


def _with_claims(name: str) -> Json:
    item = pod(name, "a")
    item["spec"]["resourceClaims"] = [
        {"name": "shared", "resourceClaimName": "shared"},
        {"name": "own", "resourceClaimTemplateName": "own"},
    ]
    return item | {"status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": f"{name}-own"}]}}


ITEMS: list[Json] = [
    *(_node("n1", "a"), _node("n2", "b"), _node("n3", "b")),
    namespace("a"),
    namespace("b", **{QUEUE: "q", ALLOWED_QUEUES: "r"}),
    made(NAMESPACES, "c", metadata={"annotations": {QUEUE: "r"}, "labels": {GATED: "true"}}),
    queue("q", weight=2, capability={"cpu": "12"}, guarantee={"resource": {"cpu": "2"}}, priority=1),
    queue("r", reclaimable=True),
    *(
        quota("a", min={"cpu": 3, "memory": "2Gi"}, max={"cpu": 6}),
        quota("b", min={"cpu": 2}),
        quota("c", max={"cpu": 9}),
    ),
    *(group("d", 2), _unbounded("d0"), _unbounded("d1")),
    group("b", 3),
    made(POD_GROUPS[1], "volcano", "b", spec={"minMember": 2, "queue": "q"}),
    made(NATIVE, "native", "a", spec={"schedulingPolicy": {"gang": {"minCount": 2}}}),
    made(RESOURCE_QUOTAS, "quotaward", "b", MANAGED, spec={"hard": {WEIGHT: "3", "requests.cpu": "3"}}),
    budget("a", {"app": "x"}),
    *(_job("a", "train"), _of_job("a", "train-0"), _suspended("c", "waits")),
    made(PRIORITY_CLASSES, "high", value=1000, globalDefault=True, preemptionPolicy="Never"),
    made(LIMIT_RANGES, "defaults", "c", spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "500m"}}]}),
    made(DEVICE_CLASSES, "gpu", spec={"extendedResourceName": "example.com/gpu", "selectors": [_OF_DRIVER]}),
    made(RESOURCE_SLICES, "n1-gpus", spec=_SLICE),
    made(RESOURCE_CLAIMS, "shared", "a", spec=_DEVICES, status=_ALLOCATED),
    made(RESOURCE_CLAIM_TEMPLATES, "own", "a", spec={"spec": _DEVICES}),
    _with_claims("devices"),
    made(RUNTIME_CLASSES, "vm", overhead={"podFixed": {"cpu": "250m"}}),
    *(*running("a", 5), *running("b", 3), *running("c", 2)),
    *(member("m0"), member("m1"), refused(member("m2"), "Gang minimum cannot be placed yet")),
    *(_gated("g0"), _gated("g1"), _choosy("choosy"), refused(pod("p", "a", {"cpu": 20}, created(3)), _NO_ROOM)),
    refused(pod("p", "b"), _NO_ROOM),
    refused(pod("over", "b", {"cpu": 4}), "0/3 nodes are available: 3 ElasticQuota borrowing exhausted: cpu."),
    reservation("starving-a.p", "Starving", "a/p", job="pods/p"),
    reservation("reclaim-b.p", "Reclaim", "b/p", "a/r-0"),
]


def requests() -> list[bytes]:
    """Bodies that a scheduler sent, and some about pods that are there."""
    recorded = [recording(file.stem) for file in sorted(DIRECTORY.glob("*.json"))]
    lines = [_line(each.verb, each.request) for each in recorded]
    waiting = [item for item in ITEMS if item["kind"] == "Pod" and not item["spec"].get("nodeName")]
    for item in waiting:
        asked = {"Pod": item, "NodeNames": ["n1", "n2", "n3"]}
        names = {"PodName": item["metadata"]["name"], "PodNamespace": item["metadata"]["namespace"]}
        bound = names | {"PodUID": item["metadata"]["uid"], "Node": "n2"}
        lines.append(b"\n".join([_line("filter", asked), _line("prioritize", asked), _line("bind", bound)]))
        victims = {"n1": {"Pods": [{"UID": "a/r-0"}]}, "n2": {"Pods": []}}
        lines.append(_line("preempt", {"Pod": item, "NodeNameToMetaVictims": victims}))
    return lines


def events() -> list[bytes]:
    """Lines of watches: each object changed, and gone; bookmarks, ends of watches, and lists where one is missing."""
    lines = []
    for item in ITEMS:
        label = _label(item)
        event = {"type": "MODIFIED", "object": item | {"metadata": item["metadata"] | {"resourceVersion": "9"}}}
        lines += [_line(label, event), _line(label, event | {"type": "DELETED"}) + b"\n" + _line(label, event)]
    for kind in KINDS:
        items = [item for item in ITEMS if _label(item) == kind.label]
        page = {"metadata": {"resourceVersion": "8"}, "items": items[1:]}
        lines += [
            _line(f"list/{kind.label}", page),
            _line(f"list/{kind.label}", page | {"metadata": {"continue": "x"}}),
        ]
    lines.append(_line("pods", {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}}))
    lines.append(_line("pods", {"type": "ERROR", "object": {"code": 410, "message": "too old"}}))
    return lines


def reviews() -> list[bytes]:
    """Reviews of pods of every kind that there is."""
    pods = [item for item in ITEMS if item["kind"] == "Pod"]
    return [json.dumps({"request": {"uid": "r", "object": item}}).encode() for item in pods]


def changes() -> list[bytes]:
    """Questions of what would be if each object were changed, or were gone."""
    asked = [*EXAMPLES]
    for item in ITEMS:
        if item["kind"] != "Reservation":
            metadata = item["metadata"]
            gone = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
            asked += [{"apply": [item]}, {"remove": [{"kind": item["kind"], "apiVersion": item["apiVersion"]} | gone]}]
    return [json.dumps(each).encode() for each in asked]


def manifests() -> list[bytes]:
    """Files of manifests: of the objects that there are, of the examples, and of what YAML has besides."""
    files = [file.read_bytes() for file in sorted(_ROOT.glob("examples/*/*.yaml"))]
    documents = [json.dumps(item).encode() for item in ITEMS]
    files += [b"\n---\n".join(documents[at : at + 5]) for at in range(0, len(documents), 5)]
    files.append(json.dumps({"apiVersion": "v1", "kind": "List", "items": ITEMS[:8]}).encode())
    files.append((_ROOT / "manifests/scheduler/config.yaml").read_bytes())
    aliases = "&a {cpu: 1}\nmax: *a\nuntil: 2026-11-01\nratio: .inf\nbinary: !!binary aGk=\nset: !!set {x, y}\n"
    files.append(
        b"apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {name: q}\nspec: " + aliases.encode()
    )
    story = pod(
        "late",
        "a",
        metadata={"annotations": {"simulation.quotaward.dev/at": "5s", "simulation.quotaward.dev/for": "1m"}},
    )
    files.append(yaml.safe_dump_all([*ITEMS[:8], story]).encode())
    return files


def texts() -> list[bytes]:
    """What terminals obey, and what readers do not see."""
    harmful = [
        "\x1b]52;c;cm0=\x07\x1b[2J",
        "\x7f",
        "\x9b31m",
        "\u202emoc\u2066",
        "\u200b\ufeff",
        "\u2028\r\n",
        "ㅤ️",
        "\U000e0041",
    ]
    return [each.encode() for each in (*harmful, "plain", "größer ✕ ░▒▓█ … 😀 数", r"\x1b", '"{}[],:')]


def _label(item: Json) -> str:
    return next(kind.label for kind in KINDS if (kind.api_version, kind.name) == (item["apiVersion"], item["kind"]))


def _line(word: str, document: Json) -> bytes:
    return word.encode() + b" " + json.dumps(document, separators=(",", ":")).encode()
