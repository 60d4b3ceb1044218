"""Kubernetes objects by chance: all of them valid, and as unusual as they are asked to be."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.store.budgets import BUDGETS
from app.store.device_classes import DEVICE_CLASSES
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.heeded import (
    ALLOWED_QUEUES,
    GATE,
    GATED,
    GROUP,
    JOBS_WAIT,
    MAX_RUN_TIME,
    MIN_PARALLELISM,
    MIN_RUN_TIME,
    PARALLELISM,
    PREEMPTIBLE,
    QUEUE,
    QUEUED,
    RUN_TIME,
    VOLCANO_GROUP,
    WEIGHT,
)
from app.store.jobs import JOBS
from app.store.limit_ranges import LIMIT_RANGES
from app.store.namespaces import NAMESPACES as NAMESPACE
from app.store.pod_groups import NATIVE_GROUPS, POD_GROUPS
from app.store.pods import PODS
from app.store.priority_classes import PRIORITY_CLASSES
from app.store.reservations import RESERVATIONS
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from app.store.resource_quotas import RESOURCE_QUOTAS
from app.store.resource_slices import RESOURCE_SLICES
from app.store.runtime_classes import RUNTIME_CLASSES
from policy.objects.queue import ROOT
from policy.quota import kept_nodes
from tests.unit.app.given import Json, made, node, pod, queue
from tests.worlds.kinds import JOB_SETS, ROWS
from tests.worlds.walk import Pick

NAMESPACES = ("a", "b", "c")
NODES = ("n1", "n2", "n3", "n4")
QUEUES = ("q", "r", "s", "default")
EPOCH = 1_800_000_000.0
JOB_SET_NAME = ROWS[0].pod_label

ONLY_ONE_NODE_HAS = "example.com/odd"
NOBODY_HAS = "nvidia.com/gpu"
RESOURCES = (
    *("cpu", "cpu", "memory", "example.com/gpu", ONLY_ONE_NODE_HAS, NOBODY_HAS),
    *("ephemeral-storage", "hugepages-2Mi"),
)
AMOUNTS = {
    "cpu": ("1", "1", "2", "500m", "1m", "0", "3", "4", "1n", 1, 0.5, "100", "9223372036854775807"),
    "memory": ("1Gi", "1Gi", "2Gi", "100Mi", "0", "1", "1500M", "8Gi", "8Ei"),
    "": ("1", "1", "2", "0", "4", "1000", "9223372036854775807"),
}
SMALL_AMOUNTS = {"cpu": ("1", "2", "4", "0"), "memory": ("1Gi", "4Gi", "0"), "ephemeral-storage": ("1", "2", "0")}
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_ROOM = "0/4 nodes are available: 4 Insufficient cpu."
SAID = (
    NO_ROOM,
    "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
    "0/4 nodes are available: 4 ElasticQuota max exceeded: cpu.",
    "0/4 nodes are available: 4 ElasticQuota borrowing exhausted: cpu, memory.",
    "0/4 nodes are available: 4 Queue capability exceeded: cpu.",
    "0/4 nodes are available: 4 Queue deserved exceeded: nvidia.com/gpu.",
    "0/4 nodes are available: 4 Queue is closed.",
    "0/4 nodes are available: 4 Namespace fair share exceeded: cpu.",
    "0/4 nodes are available: 4 Gang minimum cannot be placed yet.",
    f"0/4 nodes are available: 1 {kept_nodes.RESERVED.text}, 3 Insufficient cpu.",
    f"0/4 nodes are available: 1 {kept_nodes.HELD.text}, 3 Insufficient cpu.",
    "",
)


@dataclass(frozen=True, slots=True)
class Character:
    """What is usual in a world and rare in another. Numbers are tenths of all objects, or of what they consist of."""

    odd: int = 0
    """Not as an object mostly is."""
    choosy: int = 0
    """Does not take any node, or any pod: half as many objects again as parts of those."""
    in_groups: int = 0
    in_queues: int = 0
    placed: int = 0
    gated: int = 0
    unknowable: bool = True
    """Pods may ask for what nobody can judge: devices that no node lists, volumes, amounts beyond all that there is."""


def any_character(pick: Pick) -> Character:
    """How worlds are in which anything may happen."""
    return Character(
        in_groups=pick((3, 0, 8)),
        odd=pick((1, 3, 0, 7)),
        choosy=pick((1, 0, 0, 2)),
        placed=pick((6, 3, 8, 0)),
        gated=pick((0, 0, 1, 6)),
        in_queues=pick((3, 0)),
    )


CHOOSY = Character(odd=5, choosy=4, unknowable=False)
"""Nodes and pods with every kind of constraint, in which nothing else is unusual."""


class Objects:
    """Makes objects; what is made depends on ``pick`` alone, and is plain if that always picks the first option.

    Small worlds: few names, so that everything meets everything.
    """

    def __init__(self, pick: Pick, character: Character | None = None) -> None:
        self.pick = pick
        self._usual = character or any_character(pick)

    def often(self, tenths: int) -> bool:
        return self.pick(range(10)) >= 10 - tenths

    def of(self, *options: Any) -> Any:
        return self.pick(options)

    def several(self, make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(self.of(1, 1, 2))]

    def ago(self, now: float) -> str:
        seconds = self.of(0, 0, 1, 60, 86400, 3 * 86400, -100)
        return (datetime.fromtimestamp(EPOCH + now - seconds, UTC)).isoformat()

    def sane(self) -> bool:
        """Whether something is to be as it mostly is."""
        return not self.often(self._usual.odd)

    def amounts(self, most: int = 3, *, pods: bool = False) -> Json:
        known, names = (AMOUNTS, RESOURCES) if self._usual.unknowable else (SMALL_AMOUNTS, tuple(SMALL_AMOUNTS))
        if self.often(5):
            more = ({NOBODY_HAS: "1"}, {"example.com/gpu": "1"}) if self._usual.unknowable else ()
            return {"cpu": self.of("1", "2", "4")} | self.of({}, {}, {"memory": self.of("1Gi", "4Gi")}, *more)
        resources = [self.of(*names, *(["pods"] if pods else [])) for _ in range(self.pick(range(most + 1)))]
        return {resource: self.of(*known.get(resource, known.get("", ()))) for resource in resources}

    # Nodes

    def node(self, name: str) -> Json:
        allocatable: Json = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        if not self.sane():
            sizes = {"cpu": ("2", "8", "0"), "memory": ("8Gi", "2Gi", "0"), "pods": ("3", "0", "110")}
            allocatable = {resource: self.of(*some) for resource, some in sizes.items() if not self.often(2)}
        allocatable |= {r: self.of("0", "1", "4") for r in ("example.com/gpu", "ephemeral-storage") if self.often(4)}
        if name == "n1" and self.often(6):
            allocatable[ONLY_ONE_NODE_HAS] = self.of("2", "0")
        item = node(name)
        item["status"]["allocatable"] = {} if not self.sane() and self.often(1) else allocatable
        where = {"zone": ("x", "y", ""), "rack": ("1", "2", "3"), "disk": ("ssd", "7", "12")}
        labels = {key: self.of(*values) for key, values in where.items() if self.often(7)}
        item["metadata"]["labels"] = labels | ({HOSTNAME: name} if self.sane() else {})
        if not self.sane():
            ready = self.of("True", "True", "True", "False", "Unknown")
            item["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        spec: Json = {"unschedulable": True} if not self.sane() and self.often(3) else {}
        if self.often(self._usual.choosy):
            spec["taints"] = self.several(self._taint)
        return item | ({"spec": spec} if spec else {})

    def _taint(self) -> Json:
        effect = self.of("NoSchedule", "PreferNoSchedule", "NoExecute")
        return {"key": self.of("k", "l"), "value": self.of("v", ""), "effect": effect}

    # Pods

    def pod(self, namespace: str, name: str, uid: str, now: float) -> Json:
        """A pod that waits, or stands somewhere already."""
        annotations: Json = {RUN_TIME: self.of("90m", "PT1M", "soon")} if self.often(1) else {}
        annotations |= {MIN_RUN_TIME: self.of("1s", "1h", "soon")} if self.often(1) else {}
        labels = {"app": self.of("web", "db")} if self.often(9) else {}
        if self.often(3):
            labels["tier"] = "front"
        if self.often(1):
            annotations[PREEMPTIBLE] = self.of("false", "false", "true", "")
        if self.often(self._usual.in_queues):
            annotations[QUEUE] = self.of(*QUEUES, "q", "gone", "")
        metadata: Json = {"uid": uid, "creationTimestamp": self.ago(now), "annotations": annotations, "labels": labels}
        item = pod(name, namespace, metadata=metadata | self._owned(namespace, annotations))
        spec = item["spec"]
        spec["containers"] = [self.container() for _ in range(1 if self.sane() else self.of(1, 2, 0))]
        if self.often(self._usual.in_groups):
            self._join(self.of("g", "g", "g", "h"), annotations, labels, spec)
        if self.often(4):
            spec["priority"] = self.of(1, 10) if self.sane() else self.of(-5, -2147483648, 1_000_000_000, 2_000_001_000)
        if self.often(self._usual.gated):
            ours, others = {"name": GATE}, {"name": "other"}
            spec["schedulingGates"] = self.of([ours], [ours], [others], [others, ours], [])
        for part, value in self._odd_parts().items():
            if not self.sane() and self.often(3):
                spec[part] = value
        self.constrain(spec)
        item["status"] = {"phase": "Pending"}
        if self.often(self._usual.placed) and not spec.get("schedulingGates"):
            spec["nodeName"] = self.of(*NODES[:2]) if self.sane() else self.of(*NODES, "gone")
            phases = ("Running",) if self.sane() else ("Pending", "Succeeded", "Failed", "Unknown")
            item["status"] = {"phase": self.of(*phases)}
        self._claim_devices(spec, item["status"])
        return item

    def _claim_devices(self, spec: Json, status: Json) -> None:
        """Lets some pods use claims: one that may be shared, or one that is made for them."""
        if not self.often(1):
            return
        spec["resourceClaims"] = self.several(
            lambda: {"name": "x", self.of("resourceClaimName", "resourceClaimTemplateName"): self.of("c", "d")}
        )
        if self.often(3):
            status["resourceClaimStatuses"] = [{"name": "x", "resourceClaimName": self.of("c", "e", None)}]

    def _join(self, group: str, annotations: Json, labels: Json, spec: Json) -> None:
        """Makes a pod a member of a group of one of the three kinds, mostly of the same."""
        kind = self.of(VOLCANO_GROUP, "", GROUP, GROUP, GROUP)
        if kind == VOLCANO_GROUP:
            annotations[kind] = group
        elif kind == GROUP:
            labels[kind] = group
        else:
            spec["schedulingGroup"] = {"podGroupName": group}

    def _odd_parts(self) -> Json:
        sidecar = self.of({}, {"restartPolicy": "Always"})
        return {
            "initContainers": [self.container() | sidecar for _ in range(self.of(1, 2))],
            "overhead": self.amounts(2),
            "resources": {"requests": self.amounts(2)},
            "preemptionPolicy": self.of("Never", "PreemptLowerPriority"),
            "schedulerName": self.of("default-scheduler", "nobody", ""),
        }

    def container(self) -> Json:
        item: Json = {"name": "main"}
        if self.often(9):
            item["resources"] = {"requests": {"cpu": self.of("1", "1", "2")} if self.sane() else self.amounts()}
        if self.often(max(1, self._usual.choosy)):
            item["ports"] = self.several(self._port)
        return item

    def _port(self) -> Json:
        address = self.of("0.0.0.0", "10.0.0.1", "10.0.0.2")
        return {"hostPort": self.of(80, 81), "protocol": self.of("TCP", "UDP"), "hostIP": address}

    # Where pods may go

    def constrain(self, spec: Json) -> None:
        often = self._usual.choosy
        if not self.often(often * 2):
            return
        if self.often(often):
            spec["nodeSelector"] = self.of(
                {"zone": "x"}, {"zone": "none"}, {HOSTNAME: "n1"}, {"rack": "1", "disk": "ssd"}
            )
        if self.often(often * 2):
            spec["tolerations"] = self.several(self._toleration)
        if self.often(often):
            spec["topologySpreadConstraints"] = [self._spread(key) for key in self._keys()]
        affinity: Json = {}
        if self.often(often):
            affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": self.several(self._node_term)}}
        for kind in ("podAffinity", "podAntiAffinity"):
            if self.often(often):
                affinity[kind] = {REQUIRED: [self._pod_term(key) for key in self._keys()]}
        if affinity:
            spec["affinity"] = affinity
        if self._usual.unknowable and self.often(1):
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]

    def _toleration(self) -> Json:
        if self.often(3):
            return {"operator": "Exists"} | self.of({}, {"key": "node.kubernetes.io/unschedulable"})
        value = self.of({"operator": "Exists"}, {"value": "v"}, {"operator": "Equal", "value": ""})
        return {"key": self.of("k", "l"), "effect": self.of("", "NoSchedule", "NoExecute")} | value

    def _expression(self, keys: Sequence[str], values: Sequence[str]) -> Json:
        key, operator = self.of(*keys), self.of("In", "In", "NotIn", "Exists", "DoesNotExist")
        named = {"values": sorted({*self.several(lambda: self.of(*values))})} if operator.endswith("In") else {}
        return {"key": key, "operator": operator} | named

    def _node_term(self) -> Json:
        name = {"key": "metadata.name", "operator": self.of("In", "NotIn"), "values": [self.of(*NODES)]}
        where = self.of({"matchExpressions": self.several(self._node_expression)}, {})
        return where | self.of({}, {}, {"matchFields": [name]})

    def _node_expression(self) -> Json:
        if self.often(3):
            return {"key": self.of("disk", "rack"), "operator": self.of("Gt", "Lt"), "values": [self.of("2", "9")]}
        return self._expression(("zone", "zone", "rack", "disk"), ("x", "y", "ssd", "1"))

    def _keys(self) -> list[str]:
        return self.of(["zone"], [HOSTNAME], ["rack"], ["zone", HOSTNAME])

    def selector(self) -> Json | None:
        return self.of(
            {},
            {"matchLabels": {"app": "web"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]},
            *[{"matchExpressions": self.several(lambda: self._expression(("app", "tier"), ("web", "db", "front")))}]
            * 4,
            None,
        )

    def _pod_term(self, key: str) -> Json:
        reach = self.of({}, {"namespaceSelector": {}}, {"namespaces": ["a"]}, {"namespaces": ["a", "b"]})
        return {"topologyKey": key, "labelSelector": self.selector()} | reach

    def _spread(self, key: str) -> Json:
        item = {"topologyKey": key, "maxSkew": self.of(1, 1, 2), "whenUnsatisfiable": "DoNotSchedule"}
        item |= self.of({}, {}, {"minDomains": self.of(1, 2, 3)}, {"matchLabelKeys": ["tier"]})
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            item |= self.of({}, {policy: "Honor"}, {policy: "Ignore"})
        return item | {"labelSelector": self.selector()}

    # What is changed of them

    def condition(self) -> Json:
        reason = "Unschedulable" if self.often(8) else self.of("SchedulerError", "SchedulingGated", "")
        message = SAID[0] if self.often(4) else self.of(*SAID)
        return {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}

    def change(self, item: Json) -> None:
        """Makes one thing about an object unusual."""
        meta, spec = item["metadata"], item.setdefault("spec", {})
        changes = {
            "Node": self._node_changes,
            "Pod": self._pod_changes,
            "Queue": self._queue_changes,
            "PodGroup": self._group_changes,
        }
        if item["kind"] in changes:
            into, more = self.pick(changes[item["kind"]](item))
            into.update(more)
        elif item["kind"] == "ElasticQuota":
            spec.setdefault(self.of("min", "max"), {})[self.of(*RESOURCES)] = self.of("0", "1", "3")
        elif item["kind"] == "Namespace":
            labels = {}, {GATED: "true"}, {JOBS_WAIT: "queued"}
            named = {"annotations": {QUEUE: self.of(*QUEUES, "gone")}}
            meta.update(self.of(named, *({"labels": each} for each in labels)))
        elif item["kind"] == "JobSet":
            spec["suspend"] = self.of(not spec["suspend"], spec["suspend"])
            spec["replicatedJobs"][0]["replicas"] = self.of(0, 1, 3)
        elif item["kind"] == "Job":
            if "suspend" in spec and self.often(6):
                spec |= {"suspend": not spec["suspend"], "parallelism": self.of(0, 1, 3)}
            else:
                item["status"] = self._job_status()
        else:
            item["status"] = {"disruptionsAllowed": self.of(0, 1)}

    def _node_changes(self, item: Json) -> list[tuple[Json, Json]]:
        status, there, spec = item["status"], item["status"]["allocatable"], item["spec"]
        lost = self.of(*there, "")
        return [
            (status, {"allocatable": {name: amount for name, amount in there.items() if name != lost}}),
            (there, {self.of(*there, ONLY_ONE_NODE_HAS, NOBODY_HAS): self.of("0", "2")}),
            (spec, {"unschedulable": not spec.get("unschedulable")}),
            (status, {"conditions": [{"type": "Ready", "status": self.of("False", "Unknown", "True")}]}),
            (spec, {"taints": self.of([], [{"key": "k", "value": "v", "effect": "NoSchedule"}])}),
        ]

    def _pod_changes(self, item: Json) -> list[tuple[Json, Json]]:
        meta, spec = item["metadata"], item["spec"]
        requests = self.of(
            self.amounts() | {NOBODY_HAS: "1"}, {self.of("cpu", ONLY_ONE_NODE_HAS): self.of("0", "1", "3")}
        )
        resized = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
        return [
            *([(spec, resized)] * 2 if "nodeName" not in spec else []),
            (spec, {"priority": self.of(-1, 0, 1000, 2_000_000_000)}),
            (meta.setdefault("labels", {}), {GROUP: self.of("g", "h", "gone")}),
            (meta.setdefault("annotations", {}), {self.of(QUEUE, PREEMPTIBLE): self.of("q", "r", "gone", "false")}),
        ]

    def _queue_changes(self, item: Json) -> list[tuple[Json, Json]]:
        spec = item["spec"]
        return [
            (spec, {"capability": self.of({}, {"cpu": "0"}, {"cpu": "2"}, {NOBODY_HAS: "1"})}),
            (spec, {"guarantee": {"resource": self.of({}, {"cpu": "100"}, {"cpu": "2"}, {NOBODY_HAS: "1"})}}),
            (spec, {"weight": self.of(0, 1, 100)}),
            (spec, {"parent": self.of(*QUEUES, ROOT)}),
            (spec, {"reclaimable": not spec.get("reclaimable", True)}),
            (item["metadata"], {"annotations": self._times()}),
            (item, {"status": {"state": self.of("Open", "Closed")}}),
        ]

    def _group_changes(self, item: Json) -> list[tuple[Json, Json]]:
        minimum = self.of(0, 1, 2, 3, 4, 100)
        native = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        return [(item["spec"], more) for more in ({"minMember": minimum}, native, {"queue": "r"})]

    # What bounds them

    def quota(self, namespace: str, name: str, now: float) -> Json:
        spec: Json = {"min": {"cpu": self.of("1", "2", "3")}}
        if self.often(5):
            spec["max"] = {"cpu": self.of("3", "6")}
        if not self.sane():
            spec = {bound: self.amounts(3, pods=True) for bound in ("min", "max") if self.often(7)}
        if not self.sane() and self.often(3):
            spec = self.of({}, {"min": {"cpu": "x"}}, {"max": {"cpu": "-1"}})
        metadata = {"creationTimestamp": self.ago(now), "annotations": self._times()}
        return made(ELASTIC_QUOTAS, name, namespace, metadata, spec=spec)

    def queue(self, name: str, uid: str) -> Json:
        spec: Json = {}
        if self.often(6):
            spec["weight"] = self.of(1, 2) if self.sane() else self.of(0, -1, 4, 2147483647)
        if self.often(2):
            spec["capability"] = self.amounts(3, pods=True)
        if self.often(4):
            spec["guarantee"] = self.of({}, {"resource": self.amounts(3, pods=True)}, {"resource": self.amounts(2)})
        if self.often(2):
            spec["reclaimable"] = self.often(5)
        if self.often(2):
            spec["priority"] = self.of(0, 5, -5)
        if self.often(2):
            spec["parent"] = self.of(*QUEUES, ROOT, "gone")
        if not self.sane() and self.often(3):
            spec |= self.of({"weight": "x"}, {"parent": 1}, {"deserved": {"cpu": "1"}}, {"capability": {"cpu": "x"}})
        item = queue(name, **spec)
        item["metadata"] |= {"uid": uid, "annotations": self._times()}
        if not self.sane():
            item["status"] = {"state": self.of("Open", "Closed", "Closing", "Unknown")}
        return item

    def _times(self) -> Json:
        """Sometimes a limit on run times, what counts for pods that say none, and for how long pods are protected."""
        if self.often(8):
            return {}
        least = {MIN_RUN_TIME: self.of("1m", "5s", "2h")} if self.often(5) else {}
        if least and self.often(5):
            return least
        most = {MAX_RUN_TIME: self.of("1m", "90m", "2h")}
        return most | least | ({RUN_TIME: self.of("1m", "90m")} if self.often(6) else {})

    def namespace(self, name: str) -> Json:
        annotations: Json = {}
        if self.often(6):
            annotations[QUEUE] = self.of(*QUEUES, "q", "gone")
        if self.often(2):
            annotations[ALLOWED_QUEUES] = self.of("q,r", " r , gone", "")
        labels = {GATED: "true"} if self.often(3) else {}
        labels |= {JOBS_WAIT: "queued"} if self.often(3) else {}
        return made(NAMESPACE, name, metadata={"annotations": annotations, "labels": labels})

    def resource_quota(self, namespace: str, name: str) -> Json:
        hard: Json = {}
        if self.often(6):
            hard[WEIGHT] = self.of("1", "3", "0", "x", 5, "1.5")
        if self.often(4):
            hard["requests.cpu"] = self.of("1", "x")
        metadata: Json = {"uid": f"rq-{namespace}-{name}"}
        if self.often(5):
            metadata["labels"] = {"quotaward.dev/managed": "true"}
        return made(RESOURCE_QUOTAS, name, namespace, metadata, spec={"hard": hard})

    def group(self, label: str, namespace: str, name: str, now: float) -> Json:
        spec: Json = {}
        minimum = self.of(2, 2, 3) if self.sane() else self.of(2, 1, 0, 10, 2147483647)
        if label == NATIVE_GROUPS:
            spec = {"schedulingPolicy": self.of({"gang": {"minCount": minimum}}, {"gang": {}}, {"basic": {}}, {})}
        elif self.often(9):
            spec["minMember"] = minimum
        if self.often(2):
            spec["queue"] = self.of(*QUEUES, "gone")
        kind = next(kind for kind in POD_GROUPS if kind.label == label)
        return made(kind, name, namespace, {"creationTimestamp": self.ago(now)}, spec=spec)

    def budget(self, namespace: str, name: str) -> Json:
        item = made(BUDGETS, name, namespace, spec={"selector": self.selector()} if self.often(9) else {})
        if self.often(9):
            disrupted = self.of({}, {"p1": None}, None)
            item["status"] = {"disruptionsAllowed": self.of(0, 0, 1, 5), "disruptedPods": disrupted}
        return item

    def job(self, namespace: str, name: str) -> Json:
        """A Job, at any moment of its life."""
        spec: Json = {"backoffLimit": self.of(0, 1, 6)}
        if self.often(2):
            spec["backoffLimitPerIndex"] = self.of(0, 1)
        if self.often(3):
            spec["activeDeadlineSeconds"] = self.of(60, 1)
        if self.often(3):
            codes = {"operator": self.of("In", "NotIn"), "values": [self.of(1, 137)]}
            disrupted = [{"type": "DisruptionTarget", "status": "True"}]
            rules = [{"onExitCodes": codes}, {"onPodConditions": disrupted}]
            actions = ("Ignore", "Count", "FailJob", "FailIndex")
            spec["podFailurePolicy"] = {"rules": [rule | {"action": self.of(*actions)} for rule in rules]}
        if self.often(5):
            spec |= {"suspend": self.often(7), "parallelism": self.of(0, 1, 3), "completions": self.of(None, 2)}
            containers = [{"name": "main", "resources": {"requests": self.amounts()}}]
            named = {"priorityClassName": self.of("x", "y", ""), "runtimeClassName": self.of("x", "y", None)}
            spec["template"] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers} | named}
        metadata = {"uid": f"job-{namespace}-{name}", "labels": {QUEUED: "true"} if self.often(2) else {}}
        if self.often(4):
            asked = {PARALLELISM: self.of("2", "5", "x")} if self.often(3) else {}
            metadata["annotations"] = {MIN_PARALLELISM: self.of("1", "1", "2", "x")} | asked
        return made(JOBS, name, namespace, metadata, spec=spec, status=self._job_status())

    def pod_of_job(self, job: Json, name: str, uid: str, now: float) -> Json:
        """A pod as the controller of Jobs makes it."""
        meta, spec = job["metadata"], deepcopy(job["spec"]["template"]["spec"])
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
        metadata = {
            "uid": uid,
            "creationTimestamp": self.ago(now),
            "labels": {"app": "web"},
            "ownerReferences": [owner],
        }
        return made(PODS, name, meta["namespace"], metadata, spec=spec, status={"phase": "Pending"})

    def job_set(self, namespace: str, name: str) -> Json:
        """A JobSet of one part or two."""
        parts = [
            {"name": part, "replicas": self.of(0, 1, 2), "template": {"spec": {"template": self._template()}}}
            for part in ("a", "b")[: self.of(1, 2, 2)]
        ]
        spec = {"suspend": self.pick((True, True, False, None)), "replicatedJobs": parts}
        metadata = {"uid": f"set-{namespace}-{name}", "labels": {QUEUED: "true"} if self.often(2) else {}}
        conditions = [{"type": self.of("Failed", "Completed"), "status": "True"}] if self.often(1) else []
        return made(JOB_SETS, name, namespace, metadata, spec=spec, status={"conditions": conditions})

    def pod_of_job_set(self, job_set: Json, part: Json, name: str, uid: str, now: float) -> Json:
        """A pod of a part."""
        meta, spec = job_set["metadata"], deepcopy(part["template"]["spec"]["template"]["spec"])
        owner = {"apiVersion": job_set["apiVersion"], "kind": "JobSet", "name": meta["name"], "uid": meta["uid"]}
        metadata = {
            "uid": uid,
            "creationTimestamp": self.ago(now),
            "labels": self.of({}, {JOB_SET_NAME: meta["name"]}),
            "ownerReferences": [owner | {"controller": True}],
        }
        return made(PODS, name, meta["namespace"], metadata, spec=spec, status={"phase": "Pending"})

    def _template(self) -> Json:
        return {"spec": {"containers": [{"name": "main", "resources": {"requests": self.amounts()}}]}}

    def default_of_pods(self, namespace: str, name: str) -> Json:
        """Something that the API server fills into pods when it creates them."""
        limits = [{"type": "Container", "defaultRequest": self.amounts()}]
        return self.of(
            made(LIMIT_RANGES, name, namespace, spec={"limits": limits}),
            made(PRIORITY_CLASSES, name, value=self.of(0, 5, -5), globalDefault=self.often(2)),
            made(RUNTIME_CLASSES, name, overhead=self.of(None, {"podFixed": self.amounts()})),
        )

    def device(self, namespace: str, name: str) -> Json:
        """Something that says what devices pods take."""
        mode = self.of({}, {}, {"allocationMode": "All"}, {"adminAccess": True})
        exactly = {"deviceClassName": self.of("x", "y"), "count": self.of(1, 2, None)} | mode
        requests = [{"name": "r", "exactly": exactly}]
        spec = {"devices": {"requests": requests}}
        allocated = {"allocation": {"devices": {"results": [{"request": "r"}] * self.of(0, 1, 3)}}}
        return self.of(
            made(DEVICE_CLASSES, self.of("x", "y"), spec=self._class_of_devices()),
            made(RESOURCE_SLICES, name, spec=self._slice_of_devices()),
            made(RESOURCE_CLAIM_TEMPLATES, name, namespace, spec={"spec": spec}),
            made(RESOURCE_CLAIMS, self.of("c", "d", "e"), namespace, spec=spec, status=self.of({}, allocated)),
        )

    def _class_of_devices(self) -> Json:
        expression = self.of("device.driver == 'x'", "device.attributes['x'].type == 'gpu'", "false")
        selectors = self.of([], [{"cel": {"expression": expression}}])
        return {"selectors": selectors} | self.of({}, {"extendedResourceName": self.of("cpu", "example.com/gpu")})

    def _slice_of_devices(self) -> Json:
        pool = {"name": self.of("p", "q"), "generation": self.of(1, 2), "resourceSliceCount": self.of(1, 1, 2)}
        device = {"name": "d", "attributes": {"type": {"string": self.of("gpu", "nic")}}}
        device |= self.of({}, {}, {"allowMultipleAllocations": True})
        return {"driver": "x", "nodeName": self.of(*NODES, None), "pool": pool, "devices": [device] * self.of(1, 2, 4)}

    def _job_status(self) -> Json:
        status: Json = {"failed": self.of(0, 0, 1, 7), "startTime": self.of("2026-01-01T00:00:00Z", None)}
        if self.often(3):
            status["uncountedTerminatedPods"] = {"failed": [self.of("uid-1", "uid-5")]}
        if self.often(2):
            status["conditions"] = [{"type": self.of("Failed", "Complete", "Suspended"), "status": "True"}]
        return status

    def _owned(self, namespace: str, annotations: Json) -> Json:
        """What the metadata of a pod has that somebody controls; a Job need not be there."""
        if self.often(1):
            return {"ownerReferences": [{"kind": self.of("DaemonSet", "Job", "Node"), "uid": "o", "controller": True}]}
        if not self.often(2):
            return {}
        name = self.of("j", "k")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
        owner["uid"] = f"job-{namespace}-{name}" if self.often(8) else "o"
        if self.often(2):
            annotations["batch.kubernetes.io/job-index-failure-count"] = self.of("0", "1", "x")
        finalizers = ["batch.kubernetes.io/job-tracking"] if self.often(8) else []
        return {"ownerReferences": [owner], "finalizers": finalizers}

    def reservation(self, pods: list[Json], now: float) -> Json:
        def reference() -> Json:
            if pods and self.often(8):
                meta = self.of(*pods)["metadata"]
                return {part: meta[part] for part in ("namespace", "name", "uid")}
            return {"namespace": "a", "name": "gone", "uid": "gone"}

        spec: Json = {"reason": self.of("Starving", "Reclaim"), "pod": reference(), "nodeName": self.of(*NODES, "gone")}
        spec["victims"] = [reference() for _ in range(self.of(0, 1, 2))]
        spec["failures"] = self.of(0, 0, 1, 3)
        if spec["reason"] == "Starving":
            spec["job"] = self.of(f"pods/{spec['pod']['name']}", "podgroups.scheduling.x-k8s.io/g", "pods/gone", "")
        status = {field: self.ago(now) for field in ("freedAt", "blockedSince", "failedAt") if self.often(1)}
        name = f"{spec['reason']}-{spec['pod']['uid']}".lower().replace("/", ".")
        return made(RESERVATIONS, name, metadata={"creationTimestamp": self.ago(now)}, spec=spec, status=status)
