"""What tenants could do: the rows of the table in docs/security.md, as requests that change nothing."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

from tests.controlplane.api import Api, path
from tests.controlplane.objects import Object, disruption_budget, job, node, pod, priority_class, queue

SCHEDULER, SYSTEM = "quotaward-scheduler", "quotaward-system"
QUEUE, ALLOWED, GATED = "scheduling.volcano.sh/queue-name", "quotaward.dev/allowed-queues", "quotaward.dev/gated"
JOBS_WAIT = "quotaward.dev/jobs"
GATE, MANAGED, WEIGHT = "quotaward.dev/quota", "quotaward.dev/managed", "volcano.sh/namespace.weight"
RUNNING, WAITING, NODE = "running", "waiting", "node"
"""The pods that there are in each namespace, and their node."""
_RBAC = "rbac.authorization.k8s.io"
_METHODS = {"create": "POST", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}


@dataclass(frozen=True, slots=True)
class Deed:
    """A request, by the verb and the resource that a Role names, such as ``create`` and ``pods/binding``.

    ``home`` is the namespace, empty for objects of the cluster; ``name`` that of an object that is there already.
    """

    verb: str
    resource: str
    home: str
    name: str = ""
    body: Object | None = None

    @property
    def rule(self) -> Object:
        """The rule of a Role that allows this and nothing else."""
        _, _, *root = path(self.resource.partition("/")[0]).split("/")
        group = root[0] if len(root) > 2 else ""
        return {"apiGroups": [group], "resources": [self.resource], "verbs": [self.verb]}

    def asked(self, api: Api, **headers: str) -> str:
        """Asks the API server for it, but for the change itself. What it has against it, empty for nothing."""
        plural, _, part = self.resource.partition("/")
        name = "/".join(filter(None, (self.name, part)))
        url = path(plural, "" if plural == "namespaces" else self.home, name)
        more: dict[str, Any] = {"params": {"dryRun": "All"}, "headers": headers}
        if self.verb == "patch":
            sort = "strategic-merge" if self.rule["apiGroups"] == [""] else "merge"
            more["content"] = json.dumps(self.body)
            more["headers"] = {"Content-Type": f"application/{sort}-patch+json"} | headers
        elif self.body is not None:
            more["json"] = self.body
        try:
            api.request(_METHODS[self.verb], url, **more)
        except httpx.HTTPStatusError as error:
            return str(error)
        return ""


def ours(name: str, home: str, **spec: Any) -> Object:
    """A pod of the scheduler that asks Quotaward."""
    return pod(name, home, schedulerName=SCHEDULER, **spec)


def resized(home: str, cpu: str) -> Deed:
    """The running pod, which has one cpu, asks for so much in place."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return Deed("patch", "pods/resize", home, RUNNING, {"spec": {"containers": [container]}})


def said(home: str, kind: str, message: str = "") -> Deed:
    """A condition of the running pod is written."""
    condition = {"type": kind, "status": "True", "message": message}
    return Deed("patch", "pods/status", home, RUNNING, {"status": {"conditions": [condition]}})


def bound(home: str, resource: str) -> Deed:
    """The free pod is bound to the node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    item = {"apiVersion": "v1", "kind": "Binding", **_named("free", home), "target": target}
    return Deed("create", resource, home, "free" if "/" in resource else "", item)


def limited(home: str, name: str, hard: Object, **labels: str) -> Object:
    """A ResourceQuota."""
    metadata = {"name": name, "namespace": home, "labels": labels}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def deeds(home: str) -> dict[str, list[Deed]]:
    """What each row of the table says, as requests from a namespace. All requests of a row are answered alike."""
    return (
        _placing(home) | _resizing(home) | _of_pods(home) | _of_bounds(home) | _of_the_namespace(home) | _beyond(home)
    )


def _placing(home: str) -> dict[str, list[Deed]]:
    static = ours("p", home, nodeName=NODE)
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    return {
        "create a pod for another scheduler": [_new("pods", pod("p", home))],
        "create a pod on a node (`spec.nodeName`)": [_new("pods", ours("p", home, nodeName=NODE))],
        "create a pod that passes for a static one (`kubernetes.io/config.mirror`, `spec.nodeName`)": [
            _new("pods", static)
        ],
        "bind a pod (`pods/binding`, `bindings`)": [bound(home, "pods/binding"), bound(home, "bindings")],
    }


def _resizing(home: str) -> dict[str, list[Deed]]:
    debugger = {"name": "debug", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    debugging = {"spec": {"ephemeralContainers": [debugger]}}
    return {
        "let a pod grow in place (`pods/resize`)": [resized(home, "1001m"), resized(home, "6")],
        "let a pod shrink in place": [resized(home, "999m")],
        "give an ephemeral container requests": [Deed("patch", "pods/ephemeralcontainers", home, RUNNING, debugging)],
    }


def _of_pods(home: str) -> dict[str, list[Deed]]:
    def changed(body: Object, name: str = RUNNING, resource: str = "pods") -> Deed:
        return Deed("patch", resource, home, name, body)

    opened = {"spec": {"schedulingGates": [{"name": GATE, "$patch": "delete"}]}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", **_named(RUNNING, home)}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": ours("p", home)["spec"]}
    daemons = {"apiVersion": "apps/v1", "kind": "DaemonSet", **_named("d", home)}
    daemons["spec"] = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {
        "write the conditions `quotaward.dev/...` of a pod": [
            said(home, "quotaward.dev/CountsIn", "elsewhere"),
            said(home, "quotaward.dev/Admissible"),
            changed({"status": {"conditions": None}}, "told", "pods/status"),
        ],
        "write the phase of a pod": [changed({"status": {"phase": "Succeeded"}}, resource="pods/status")],
        "write the condition `PodResizePending` of a pod": [said(home, "PodResizePending")],
        "write anything else of `pods/status`": [
            said(home, "example.com/Ready"),
            changed({"status": {"nominatedNodeName": NODE}}, WAITING, "pods/status"),
        ],
        "name the queue of a running pod anew": [changed(_annotated(QUEUE, "elsewhere"))],
        "make a pod not preemptible": [changed(_annotated("quotaward.dev/preemptible", "false"))],
        "take the gate `quotaward.dev/quota` off a pod": [changed(opened, WAITING)],
        "keep a deleted pod by a finalizer": [changed({"metadata": {"finalizers": ["example.com/kept"]}})],
        "give a pod a class of the system's": [_new("pods", ours("p", home, priorityClassName="system-node-critical"))],
        "evict or delete a pod of the namespace": [
            Deed("create", "pods/eviction", home, RUNNING, eviction),
            Deed("delete", "pods", home, RUNNING),
        ],
        "run DaemonSets, write disruption budgets and Jobs": [
            _new("daemonsets", daemons),
            _new("poddisruptionbudgets", disruption_budget("never", home, 1)),
            _new("jobs", job("j", home, backoffLimit=0)),
        ],
    }


def _of_bounds(home: str) -> dict[str, list[Deed]]:
    version = "scheduling.x-k8s.io/v1alpha1"
    high = {"spec": {"min": {"cpu": "99"}}}
    mine = {"apiVersion": version, "kind": "ElasticQuota", **_named("mine", home), **high}
    nameless = mine | {"metadata": {"generateName": "mine-", "namespace": home}}
    group = {"apiVersion": version, "kind": "PodGroup", **_named("g", home), "spec": {"minMember": 2}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **_named("c", home)}
    claim["spec"] = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    return {
        "ask for devices by a ResourceClaim": [_new("resourceclaims", claim)],
        "write a PodGroup (`scheduling.x-k8s.io`)": [_new("podgroups", group)],
        "write an ElasticQuota": [
            _new("elasticquotas", mine),
            _new("elasticquotas", nameless),
            Deed("patch", "elasticquotas", home, "quota", high),
            Deed("delete", "elasticquotas", home, "quota"),
            Deed("deletecollection", "elasticquotas", home),
        ],
        "write the status of an ElasticQuota": [
            Deed("patch", "elasticquotas/status", home, "quota", {"status": {"used": {"cpu": "0"}}})
        ],
    }


def _of_the_namespace(home: str) -> dict[str, list[Deed]]:
    def described(body: Object) -> Deed:
        return Deed("patch", "namespaces", home, home, body)

    def bounded(name: str, body: Object) -> Deed:
        return Deed("patch", "resourcequotas", home, name, body)

    heavy, roomy = {"spec": {"hard": {WEIGHT: "9"}}}, {"spec": {"hard": {"pods": "99"}}}
    return {
        "change the queue of the namespace, which others it allows, its gates, or if its Jobs wait or its pods grow": [
            described(_annotated(QUEUE, "rich")),
            described(_annotated(ALLOWED, "rich")),
            described({"metadata": {"labels": {GATED: "true"}}}),
            described({"metadata": {"labels": {JOBS_WAIT: "queued"}}}),
            described({"metadata": {"labels": {"quotaward.dev/growth": "allowed"}}}),
        ],
        "change anything else of the namespace": [described(_annotated("a", "b"))],
        "give the namespace a weight (a ResourceQuota)": [
            _new("resourcequotas", limited(home, "mine", {WEIGHT: "9"})),
            bounded("weight", heavy),
            bounded("plain", heavy),
            Deed("delete", "resourcequotas", home, "weight"),
            Deed("deletecollection", "resourcequotas", home),
        ],
        "change what the quota manager wrote": [
            _new("resourcequotas", limited(home, "mine", {"pods": "99"}, **{MANAGED: "true"})),
            bounded("quotaward", roomy),
            bounded("quotaward", {"metadata": {"labels": {MANAGED: None}}}),
            Deed("delete", "resourcequotas", home, "quotaward"),
        ],
        "write another ResourceQuota": [
            _new("resourcequotas", limited(home, "mine", {"pods": "99"})),
            bounded("plain", roomy),
            Deed("delete", "resourcequotas", home, "plain"),
        ],
    }


def _beyond(home: str) -> dict[str, list[Deed]]:
    """What is no tenant's business: objects of the cluster and of other namespaces."""
    spec = {"reason": "Reclaim", "pod": {"namespace": home, "name": "p", "uid": "u"}, "nodeName": NODE, "victims": []}
    reservation = {"apiVersion": "quotaward.dev/v1alpha1", "kind": "Reservation", "metadata": {"name": "r"}}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "quotaward-bind"}
    binds = {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", **_named("binds", home), "roleRef": role}
    binds["subjects"] = [{"kind": "ServiceAccount", "name": "edit", "namespace": home}]
    lax = {"spec": {"failurePolicy": "Ignore"}}
    return {
        "write a Queue, or its status": [
            _new("queues", queue("mine", weight=99)),
            Deed("patch", "queues/status", "", "poor", {"status": {"state": "Closed"}}),
        ],
        "write a Reservation": [_new("reservations", reservation | {"spec": spec})],
        "change a node, or make a priority class": [
            Deed("patch", "nodes", "", NODE, {"metadata": {"labels": {"a": "b"}}}),
            _new("nodes", node("mine")),
            _new("priorityclasses", priority_class("mine", 9)),
        ],
        "change the rules of `manifests/admission`": [
            Deed("patch", "validatingadmissionpolicies", "", "quotaward-scheduler-name", lax)
        ],
        "give oneself the right to bind pods": [_new("rolebindings", binds)],
        "create pods, or hold the Lease, in `quotaward-system`": [
            _new("pods", pod("p", SYSTEM)),
            Deed("patch", "leases", SYSTEM, "quotaward", {"spec": {"holderIdentity": "mine"}}),
        ],
    }


def _new(resource: str, item: Object) -> Deed:
    return Deed("create", resource, item["metadata"].get("namespace", ""), body=item)


def _named(name: str, home: str) -> Object:
    return {"metadata": {"name": name, "namespace": home}}


def _annotated(key: str, value: str) -> Object:
    return {"metadata": {"annotations": {key: value}}}
