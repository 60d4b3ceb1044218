"""What one test does in the cluster, and that nothing of it is left for the next."""

import itertools
from typing import Any

import httpx

from app.store.device_classes import DEVICE_CLASSES
from app.store.kind import Kind
from app.store.kinds import QUOTA_KINDS
from app.store.pod_groups import POD_GROUPS
from app.store.pods import PODS
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from app.store.resource_slices import RESOURCE_SLICES
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import Object, condition, elastic_quota, node, priority_class, queue
from tests.controlplane.processes import wait_until

QUEUE = "scheduling.volcano.sh/queue-name"
GATED = "quotaward.dev/gated"
JOBS = "quotaward.dev/jobs"
_numbers = itertools.count(1)


class Cluster:
    """A cluster that is empty when a test gets it."""

    def __init__(self, control_plane: ControlPlane):
        self.control_plane = control_plane
        self.api = control_plane.api
        self._namespaces: list[str] = []

    def namespace(self, prefix: str = "team", queue: str | None = None) -> str:
        """A new namespace, that no other test has had; of a queue, if one is named."""
        name = f"{prefix}-{next(_numbers)}"
        metadata = {"name": name, "annotations": {QUEUE: queue} if queue else {}}
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self._namespaces.append(name)
        return name

    def label(self, namespace: str, *, gated: bool) -> None:
        """New pods of the namespace are to wait at gates, where the policy is in force; or no longer."""
        self.api.patch("namespaces", namespace, {"metadata": {"labels": {GATED: "true" if gated else None}}})

    def node(self, name: str = "node", **size: Any) -> str:
        """A new node that is ready to run pods."""
        self.api.create(node(name, **size))
        wait_until(
            lambda: condition(self.api.get("nodes", name), "Ready").get("status") == "True", f"node {name} is ready"
        )
        return name

    def nodes(self, count: int, **size: str | int) -> list[str]:
        return [self.node(f"node-{number}", **size) for number in range(count)]

    def quota(self, namespace: str, **bounds: dict[str, str | int]) -> Object:
        return self.api.create(elastic_quota(namespace, **bounds))

    def change_quota(self, namespace: str, **bounds: dict[str, str | int]) -> None:
        self.api.apply(elastic_quota(namespace, **bounds))

    def queue(self, name: str, **spec: object) -> str:
        """A new queue."""
        self.api.create(queue(name, **spec))
        return name

    def change_queue(self, name: str, **spec: object) -> None:
        self.api.apply(queue(name, **spec))

    def weigh(self, namespace: str, weight: int) -> None:
        """Give a namespace a weight in its queue, where there is none yet."""
        hard = {"volcano.sh/namespace.weight": str(weight)}
        metadata = {"name": "weight", "namespace": namespace}
        self.api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})

    def priority(self, name: str, value: int) -> str:
        self.api.create(priority_class(name, value))
        return name

    def wipe(self) -> None:
        """Delete everything but the namespaces themselves, which nobody here would bring to an end.

        Each kind is listed once, and deleted where there are any of it: most tests make a few kinds in one namespace.
        What Quotaward lets go after a second only comes first.
        """
        mine = set(self._namespaces)
        self._empty(mine, *QUOTA_KINDS, *POD_GROUPS)
        self._delete(QUEUES)
        for item in self.api.items("priorityclasses"):
            if not item["metadata"]["name"].startswith("system-"):
                self.api.delete("priorityclasses", item["metadata"]["name"])
        for item in self.api.items("namespaces"):
            if item["metadata"]["name"] in mine:
                self._unmark(item["metadata"])
        for resource in ("replicasets", "jobs", "resourcequotas", "poddisruptionbudgets", "limitranges"):
            for namespace in _namespaces_of(self.api.items(resource)) & mine:
                self.api.delete_all(resource, namespace)
        self._empty(mine, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
        self._delete(RESERVATIONS, DEVICE_CLASSES, RESOURCE_SLICES)
        self.api.delete_all("nodes")
        wait_until(self._are_pods_gone, "all pods are gone")
        wait_until(lambda: not self.api.items("nodes"), "all nodes are gone")

    def _empty(self, namespaces: set[str], *kinds: Kind) -> None:
        """Delete what there is of these kinds in these namespaces."""
        for kind in kinds:
            for namespace in _namespaces_of(self._all(kind)) & namespaces:
                self._release(kind, namespace)
                self.api.request("DELETE", _path_in(namespace, kind))

    def _delete(self, *kinds: Kind) -> None:
        """Delete what there is of kinds that stand in no namespace."""
        for kind in kinds:
            if self._all(kind):
                self.api.request("DELETE", kind.path)

    def _unmark(self, namespace: Object) -> None:
        """Takes off a namespace what tests write on it; ``namespace``: its metadata."""
        for field, names in (("annotations", (QUEUE,)), ("labels", (GATED, JOBS))):
            if namespace.get(field, {}).keys() & set(names):
                self.api.patch("namespaces", namespace["name"], {"metadata": {field: dict.fromkeys(names)}})

    def _all(self, kind: Kind) -> list[Object]:
        """All objects of a kind; none where its definition is not installed."""
        found: list[Object] = []

        def is_listed() -> bool:
            try:
                found[:] = self.api.request("GET", kind.path)["items"]
            except httpx.HTTPStatusError as error:
                if error.response.status_code == httpx.codes.TOO_MANY_REQUESTS:
                    return False  # an API server that was started a moment ago still reads this kind
                if error.response.status_code != httpx.codes.NOT_FOUND:
                    raise
            return True

        wait_until(is_listed, f"{kind.path} is served")
        return found

    def _are_pods_gone(self) -> bool:
        """Deletes the pods that are there, whatever namespace they are in: a controller may make one late."""
        namespaces = _namespaces_of(self.api.items("pods"))
        for namespace in namespaces:
            self._release(PODS, namespace)
            self.api.delete_all("pods", namespace)
        return not namespaces

    def _release(self, kind: Kind, namespace: str) -> None:
        """Takes off the finalizers of controllers that have stopped, or do not run: nobody else would.

        The controllers of Jobs, of native pod groups and of claims have such.
        """
        for item in self.api.request("GET", _path_in(namespace, kind))["items"]:
            if not item["metadata"].get("finalizers"):
                continue
            try:
                self.api.merge(kind.path_of(namespace, item["metadata"]["name"]), {"metadata": {"finalizers": None}})
            except httpx.HTTPStatusError as error:
                if error.response.status_code != httpx.codes.NOT_FOUND:  # its controller was faster
                    raise


def _namespaces_of(items: list[Object]) -> set[str]:
    return {item["metadata"]["namespace"] for item in items}


def _path_in(namespace: str, kind: Kind) -> str:
    """The path of all objects of a kind in a namespace."""
    return kind.path_of(namespace, "").rstrip("/")
