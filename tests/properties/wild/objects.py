"""Kubernetes objects by chance: all of them valid, and most of them unusual."""

from datetime import UTC, datetime
from typing import Any

from app.store.heeded import ALLOWED_QUEUES, GATE, GATED, GROUP, PREEMPTIBLE, QUEUE, VOLCANO_GROUP, WEIGHT
from app.store.kinds import KINDS
from app.store.pod_groups import NATIVE_GROUPS
from policy.quota import kept_nodes
from tests.properties.walk import Pick

Json = dict[str, Any]
NAMESPACES = ("a", "b", "c")
NODES = ("n1", "n2", "n3", "n4")
QUEUES = ("q", "r", "default")
EPOCH = 1_800_000_000.0

ONLY_ONE_NODE_HAS = "example.com/odd"
NOBODY_HAS = "nvidia.com/gpu"
RESOURCES = (
    "cpu",
    "cpu",
    "memory",
    "example.com/gpu",
    ONLY_ONE_NODE_HAS,
    NOBODY_HAS,
    "ephemeral-storage",
    "hugepages-2Mi",
)
AMOUNTS = {
    "cpu": ("1", "1", "2", "500m", "1m", "0", "3", "4", "1n", 1, 0.5, "100", "9223372036854775807"),
    "memory": ("1Gi", "1Gi", "2Gi", "100Mi", "0", "1", "1500M", "8Gi", "8Ei"),
    "": ("1", "1", "2", "0", "4", "1000", "9223372036854775807"),
}
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


class Wild:
    """Makes objects; what is made depends on ``pick`` alone. Small worlds: few names, so that everything meets."""

    def __init__(self, pick: Pick) -> None:
        """Each world has a character of its own: what is usual in one is rare in another."""
        self.pick = pick
        self.in_groups, self.odd, self.choosy = pick((3, 0, 8)), pick((1, 3, 0, 7)), pick((1, 0, 0, 4))
        self.placed, self.gated, self.in_queues = pick((6, 3, 8, 0)), pick((0, 0, 1, 6)), pick((3, 0))

    def often(self, tenths: int) -> bool:
        return self.pick(range(10)) < tenths

    def of(self, *options: Any) -> Any:
        return self.pick(options)

    def ago(self, now: float) -> str:
        seconds = self.of(0, 0, 1, 60, 86400, 3 * 86400, -100)
        return (datetime.fromtimestamp(EPOCH + now - seconds, UTC)).isoformat()

    def sane(self) -> bool:
        """Whether something is to be as it mostly is."""
        return self.pick(range(10)) >= self.odd

    def amounts(self, most: int = 3, *, pods: bool = False) -> Json:
        if self.often(5):
            return {"cpu": self.of("1", "2", "4")} | self.of(
                {}, {}, {"memory": self.of("1Gi", "4Gi")}, {NOBODY_HAS: "1"}, {"example.com/gpu": "1"}
            )
        resources = [self.of(*RESOURCES, *(["pods"] if pods else [])) for _ in range(self.pick(range(most + 1)))]
        return {resource: self.amount(resource) for resource in resources}

    def amount(self, resource: str) -> Any:
        return self.of(*AMOUNTS.get(resource, AMOUNTS[""]))

    # Nodes

    def node(self, name: str) -> Json:
        allocatable: Json = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        if not self.sane():
            allocatable = {
                "cpu": self.of("2", "8", "0"),
                "memory": self.of("8Gi", "2Gi", "0"),
                "pods": self.of("3", "0", "110"),
            }
            for resource in list(allocatable):
                if self.often(2):
                    del allocatable[resource]
        allocatable |= {r: self.of("0", "1", "4") for r in ("example.com/gpu", "ephemeral-storage") if self.often(4)}
        if name == "n1" and self.often(6):
            allocatable[ONLY_ONE_NODE_HAS] = self.of("2", "0")
        if not self.sane() and self.often(1):
            allocatable = {}
        made: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": allocatable},
        }
        made["metadata"]["labels"] = {"kubernetes.io/hostname": name} | (
            {"zone": self.of("x", "y")} if self.often(7) else {}
        )
        if not self.sane():
            made["status"]["conditions"] = [
                {"type": "Ready", "status": self.of("True", "True", "True", "False", "Unknown")}
            ]
        spec: Json = {"unschedulable": True} if not self.sane() and self.often(3) else {}
        if self.often(self.choosy):
            spec["taints"] = [
                {
                    "key": self.of("k", "l"),
                    "value": "v",
                    "effect": self.of("NoSchedule", "PreferNoSchedule", "NoExecute"),
                }
            ]
        if spec:
            made["spec"] = spec
        return made

    # Pods

    def pod(self, namespace: str, name: str, uid: str, now: float) -> Json:
        """A pod that waits, or stands somewhere already."""
        annotations, labels = {}, {"app": self.of("web", "db")}
        if self.often(1):
            annotations[PREEMPTIBLE] = self.of("false", "false", "true", "")
        if self.often(self.in_queues):
            annotations[QUEUE] = self.of(*QUEUES, "q", "gone", "")
        metadata: Json = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": self.ago(now)}
        metadata |= {"annotations": annotations, "labels": labels}
        metadata |= self._owned(namespace, annotations)
        spec: Json = {"containers": [self.container() for _ in range(1 if self.sane() else self.of(1, 2, 0))]}
        if self.often(self.in_groups):
            self._join(self.of("g", "g", "g", "h"), annotations, labels, spec)
        if self.often(4):
            spec["priority"] = self.of(1, 10) if self.sane() else self.of(-5, -2147483648, 1_000_000_000, 2_000_001_000)
        if self.often(self.gated):
            ours, others = {"name": GATE}, {"name": "other"}
            spec["schedulingGates"] = self.of([ours], [ours], [others], [others, ours], [])
        for part, value in self._odd_parts().items():
            if not self.sane() and self.often(3):
                spec[part] = value
        self.constrain(spec)
        status = {"phase": "Pending"}
        if self.often(self.placed) and not spec.get("schedulingGates"):
            spec["nodeName"] = self.of(*NODES[:2]) if self.sane() else self.of(*NODES, "gone")
            status["phase"] = "Running" if self.sane() else self.of("Pending", "Succeeded", "Failed", "Unknown")
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

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

    def constrain(self, spec: Json) -> None:
        if not self.often(self.choosy * 2):
            return
        if self.often(1):
            spec["nodeSelector"] = self.of({"zone": "x"}, {"zone": "none"}, {"kubernetes.io/hostname": "n1"})
        if self.often(2):
            spec["tolerations"] = [
                self.of({"operator": "Exists"}, {"key": "k", "operator": "Exists"}, {"key": "l", "value": "v"})
            ]
        if self.often(1):
            rule = {
                "topologyKey": self.of("zone", "kubernetes.io/hostname"),
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
            }
            spec["topologySpreadConstraints"] = [rule | {"labelSelector": self.selector()}]
        if self.often(1):
            term = {"topologyKey": self.of("zone", "kubernetes.io/hostname"), "labelSelector": self.selector()}
            spec["affinity"] = {self.of("podAffinity", "podAntiAffinity"): {REQUIRED: [term]}}
        elif self.often(1):
            match = {"key": "zone", "operator": self.of("In", "NotIn"), "values": ["x"]}
            spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [match]}]}}}
        if self.often(1):
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]

    def container(self) -> Json:
        made: Json = {"name": "main"}
        if self.often(9):
            made["resources"] = {"requests": {"cpu": self.of("1", "1", "2")} if self.sane() else self.amounts()}
        if self.often(1):
            made["ports"] = [{"hostPort": self.of(80, 81)}]
        return made

    def selector(self) -> Json:
        return self.of(
            {},
            {"matchLabels": {"app": "web"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
        )

    def condition(self) -> Json:
        reason = "Unschedulable" if self.often(8) else self.of("SchedulerError", "SchedulingGated", "")
        return {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": SAID[0] if self.often(4) else self.of(*SAID),
        }

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
            meta.update(
                self.of({"annotations": {QUEUE: self.of(*QUEUES, "gone")}}, {"labels": {GATED: "true"}}, {"labels": {}})
            )
        elif item["kind"] == "Job":
            item["status"] = self._job_status()
        else:
            item["status"] = {"disruptionsAllowed": self.of(0, 1)}

    def _node_changes(self, item: Json) -> list[tuple[Json, Json]]:
        status, there = item["status"], item["status"]["allocatable"]
        lost = self.of(*there, "")
        return [
            (status, {"allocatable": {name: amount for name, amount in there.items() if name != lost}}),
            (there, {self.of(*there, ONLY_ONE_NODE_HAS, NOBODY_HAS): self.of("0", "2")}),
            (item["spec"], {"unschedulable": not item["spec"].get("unschedulable")}),
            (status, {"conditions": [{"type": "Ready", "status": self.of("False", "Unknown", "True")}]}),
            (item["spec"], {"taints": self.of([], [{"key": "k", "value": "v", "effect": "NoSchedule"}])}),
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
            (spec, {"reclaimable": not spec.get("reclaimable", True)}),
            (item, {"status": {"state": self.of("Open", "Closed")}}),
        ]

    def _group_changes(self, item: Json) -> list[tuple[Json, Json]]:
        minimum = self.of(0, 1, 2, 3, 4, 100)
        native = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        return [(item["spec"], more) for more in ({"minMember": minimum}, native, {"queue": "r"})]

    # What bounds them

    def quota(self, namespace: str, name: str, now: float) -> Json:
        spec: Json = {"min": {"cpu": self.of("1", "2", "3")}} | (
            {"max": {"cpu": self.of("3", "6")}} if self.often(5) else {}
        )
        if not self.sane():
            spec = {bound: self.amounts(3, pods=True) for bound in ("min", "max") if self.often(7)}
        if not self.sane() and self.often(3):
            spec = self.of({}, {"min": {"cpu": "x"}}, {"max": {"cpu": "-1"}})
        return {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": self.ago(now)},
            "spec": spec,
        }

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
        if not self.sane() and self.often(3):
            spec |= self.of(
                {"weight": "x"}, {"parent": "root"}, {"deserved": {"cpu": "1"}}, {"capability": {"cpu": "x"}}
            )
        version = "scheduling.volcano.sh/v1beta1"
        made: Json = {"apiVersion": version, "kind": "Queue", "metadata": {"name": name, "uid": uid}, "spec": spec}
        if not self.sane():
            made["status"] = {"state": self.of("Open", "Closed", "Closing", "Unknown")}
        return made

    def namespace(self, name: str) -> Json:
        annotations: Json = {}
        if self.often(6):
            annotations[QUEUE] = self.of(*QUEUES, "q", "gone")
        if self.often(2):
            annotations[ALLOWED_QUEUES] = self.of("q,r", " r , gone", "")
        labels = {GATED: "true"} if self.often(3) else {}
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "annotations": annotations, "labels": labels},
        }

    def resource_quota(self, namespace: str, name: str) -> Json:
        hard: Json = {}
        if self.often(6):
            hard[WEIGHT] = self.of("1", "3", "0", "x", 5, "1.5")
        if self.often(4):
            hard["requests.cpu"] = self.of("1", "x")
        metadata: Json = {"name": name, "namespace": namespace, "uid": f"rq-{namespace}-{name}"}
        if self.often(5):
            metadata["labels"] = {"quotaward.dev/managed": "true"}
        return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}

    def group(self, label: str, namespace: str, name: str, now: float) -> Json:
        kind = next(kind for kind in KINDS if kind.label == label)
        spec: Json = {}
        minimum = self.of(2, 2, 3) if self.sane() else self.of(2, 1, 0, 10, 2147483647)
        if label == NATIVE_GROUPS:
            spec = {"schedulingPolicy": self.of({"gang": {"minCount": minimum}}, {"gang": {}}, {"basic": {}}, {})}
        elif self.often(9):
            spec["minMember"] = minimum
        if self.often(2):
            spec["queue"] = self.of(*QUEUES, "gone")
        metadata = {"name": name, "namespace": namespace, "creationTimestamp": self.ago(now)}
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}

    def budget(self, namespace: str, name: str) -> Json:
        made: Json = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": namespace},
        }
        made["spec"] = {"selector": self.selector()} if self.often(9) else {}
        if self.often(9):
            made["status"] = {
                "disruptionsAllowed": self.of(0, 0, 1, 5),
                "disruptedPods": self.of({}, {"p1": None}, None),
            }
        return made

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
        metadata = {"name": name, "namespace": namespace, "uid": f"job-{namespace}-{name}"}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": spec,
            "status": self._job_status(),
        }

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
        return {
            "apiVersion": "quotaward.dev/v1alpha1",
            "kind": "Reservation",
            "metadata": {
                "name": f"{spec['reason']}-{spec['pod']['uid']}".lower().replace("/", "."),
                "creationTimestamp": self.ago(now),
            },
            "spec": spec,
            "status": status,
        }
