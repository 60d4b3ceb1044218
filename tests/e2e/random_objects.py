"""Nodes and pods by chance, as Kubernetes spells them, with every kind of constraint that keeps pods off nodes."""

import random
from typing import Any

from tests.controlplane.objects import Object, node

GPU = "example.com/gpu"
LINGERS = "tests.quotaward.dev/lingers"  # the fake kubelet leaves such pods to whoever deletes them
_APPS = ("web", "db", "batch")


class Chance:
    """What is made depends on the seed alone."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def node(self, number: int) -> Object:
        """The first few have what the rules are about; else there might be none at all."""
        name = f"node-{number}"
        size = {"cpu": self.of(1, 2, 3), "memory": self.of("2Gi", "3Gi"), "pods": self.of(3, 5, 7, 9)}
        labels = {"kubernetes.io/hostname": name, "disk": self.of("ssd", "hdd"), "rank": str(number)}
        if number != 1:
            labels["zone"] = self.of("a", "b", "c")
        if self.often(0.7):
            labels["rack"] = self.of("1", "2", "3", "4")
        made = node(name, **size, labels=labels)
        made["spec"] = {"unschedulable": number == 2, "taints": self._taints(number)}
        return made

    def extended(self, number: int) -> dict[str, str]:
        """What a node has of extended resources."""
        return {GPU: self.of("1", "2", "4")} if number % 3 == 0 else {}

    def pod(self, name: str, namespaces: list[str]) -> Object:
        namespace = self.of(*namespaces)
        labels = {"app": self.of(*_APPS)} | ({"tier": "front"} if self.often(0.4) else {})
        spec: Object = {"containers": [self._container()], "terminationGracePeriodSeconds": 30}
        if self.often(0.2):
            spec["initContainers"] = [self._init_container()]
        if self.often(0.2):
            spec["nodeSelector"] = self.of(
                {"disk": "ssd"}, {"zone": "a"}, {"zone": "b", "disk": "hdd"}, {"zone": "none"}
            )
        if self.often(0.5):
            spec["tolerations"] = [self._toleration() for _ in range(self.of(1, 2))]
        if self.often(0.2):
            spec["topologySpreadConstraints"] = [self._spread(key) for key in self._keys(self.of(1, 1, 2))]
        if affinity := self._affinity(namespaces):
            spec["affinity"] = affinity
        if self.often(0.05):  # its ports are ports of the node, without saying so
            spec["hostNetwork"] = True
            for container in spec["containers"] + spec.get("initContainers", []):
                container["ports"] = [{"containerPort": self.of(80, 443)}]
        annotations = {LINGERS: "true"} if self.often(0.2) else {}
        metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _taints(self, number: int) -> list[Object]:
        if number % 4 == 3:
            return [{"key": "gpu", "value": self.of("yes", "no"), "effect": self.of("NoSchedule", "NoExecute")}]
        return [{"key": "old", "effect": "PreferNoSchedule"}] if self.often(0.3) else []

    def _container(self) -> Object:
        container = {"name": "main", "image": "none", "resources": self._resources()}
        if self.often(0.2):
            container["ports"] = [self._port()]
        return container

    def _init_container(self) -> Object:
        container = {"name": "init", "image": "none", "resources": self._resources()}
        if self.often(0.5):
            container |= {"restartPolicy": "Always", "ports": [self._port()]}
        return container

    def _resources(self) -> Object:
        requests = {}
        if self.often(0.7):
            requests["cpu"] = self.of("1m", "100m", "250m", "500m", "1", "1500m")
        if self.often(0.4):
            requests["memory"] = self.of("100Mi", "500Mi", "1Gi", "1500M")
        extended = {GPU: self.of("1", "1", "2")} if self.often(0.12) else {}
        return {"requests": requests | extended, "limits": extended}

    def _port(self) -> Object:
        port = {"containerPort": 8080, "hostPort": self.of(80, 443), "protocol": self.of("TCP", "TCP", "UDP")}
        return port | ({"hostIP": self.of("10.0.0.1", "10.0.0.2", "0.0.0.0")} if self.often(0.5) else {})

    def _toleration(self) -> Object:
        return self.of(
            {"key": "gpu", "operator": "Exists"},
            {"key": "gpu", "operator": "Equal", "value": "yes"},
            {"key": "gpu", "value": "no", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute"},
            {"operator": "Exists"},
        )

    def _keys(self, count: int) -> list[str]:
        return self.random.sample(("zone", "rack", "kubernetes.io/hostname"), count)

    def _selector(self) -> Object:
        return self.of(
            {"matchLabels": {"app": self.of(*_APPS)}},
            {"matchLabels": {"app": self.of(*_APPS)}},
            {"matchLabels": {"app": self.of(*_APPS), "tier": "front"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": list(self.random.sample(_APPS, 2))}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [self.of(*_APPS)]}]},
            {"matchExpressions": [{"key": "tier", "operator": self.of("Exists", "DoesNotExist")}]},
            {},
        )

    def _spread(self, key: str) -> Object:
        rule = {"topologyKey": key, "maxSkew": self.of(1, 1, 2), "whenUnsatisfiable": "DoNotSchedule"}
        rule["labelSelector"] = self._selector()
        if self.often(0.3):
            rule["minDomains"] = self.of(1, 2, 3, 4)
        if self.often(0.3):
            rule["nodeAffinityPolicy"] = self.of("Honor", "Ignore")
        if self.often(0.5):
            rule["nodeTaintsPolicy"] = self.of("Honor", "Ignore")
        if self.often(0.15) and rule["labelSelector"].get("matchLabels", {}).keys() == {"app"}:
            rule |= {"matchLabelKeys": ["tier"]}
        if self.often(0.15):
            rule |= {"whenUnsatisfiable": "ScheduleAnyway"}
            rule.pop("minDomains", None)
        return rule

    def _affinity(self, namespaces: list[str]) -> Object:
        required, affinity = "requiredDuringSchedulingIgnoredDuringExecution", {}
        if self.often(0.25):
            terms = [self._node_term() for _ in range(self.of(1, 2))]
            affinity["nodeAffinity"] = {required: {"nodeSelectorTerms": terms}}
        if self.often(0.15):
            affinity["podAffinity"] = {required: [self._term(key, namespaces) for key in self._keys(self.of(1, 1, 2))]}
        if self.often(0.12):
            terms = [self._term(key, namespaces) for key in self._keys(self.of(1, 1, 2))]
            affinity["podAntiAffinity"] = {required: terms}
        return affinity

    def _node_term(self) -> Object:
        labels = self.of(
            {"key": "zone", "operator": "In", "values": ["a", "b"]},
            {"key": "zone", "operator": "NotIn", "values": ["c"]},
            {"key": "rack", "operator": "Exists"},
            {"key": "rack", "operator": "DoesNotExist"},
            {"key": "rank", "operator": "Gt", "values": ["4"]},
            {"key": "rank", "operator": "Lt", "values": ["9"]},
        )
        name = {"key": "metadata.name", "operator": self.of("In", "NotIn"), "values": [f"node-{self.of(1, 5, 6)}"]}
        return self.of({"matchExpressions": [labels]}, {"matchExpressions": [labels]}, {"matchFields": [name]}) | (
            {"matchExpressions": [labels]} if self.often(0.2) else {}
        )

    def _term(self, key: str, namespaces: list[str]) -> Object:
        term: Object = {"topologyKey": key, "labelSelector": self._selector()}
        if self.often(0.2):
            term["namespaces"] = self.random.sample(namespaces, 2)
        if self.often(0.1):
            term["namespaceSelector"] = {}
        return term
