"""A thin, synchronous client of the API server for tests: JSON in, JSON out."""

import json
import ssl
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.controlplane.objects import Object
from tests.reading import documents

_AT_ONCE = 16  # requests under way at the same time when many objects are created
_WATCH_IDLE = 1.0
_DELETIONS = 5  # requests for all objects of a namespace at most
_API = {
    "elasticquotas": "/apis/scheduling.x-k8s.io/v1alpha1",
    "queues": "/apis/scheduling.volcano.sh/v1beta1",
    "podgroups": "/apis/scheduling.x-k8s.io/v1alpha1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "runtimeclasses": "/apis/node.k8s.io/v1",
    "deployments": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "validatingadmissionpolicies": "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings": "/apis/admissionregistration.k8s.io/v1",
    "replicasets": "/apis/apps/v1",
    "reservations": "/apis/quotaward.dev/v1alpha1",
    "jobs": "/apis/batch/v1",
    "resourceclaims": "/apis/resource.k8s.io/v1",
    "resourceslices": "/apis/resource.k8s.io/v1",
}


class Api:
    """The API server, as the bearer of a token sees it."""

    def __init__(self, url: str, ca_file: Path, token: str):
        self.url = url
        self.ca_file = ca_file
        self.token = token
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}
        context = ssl.create_default_context(cafile=str(ca_file))
        self._client = httpx.Client(
            base_url=url,
            transport=httpx.HTTPTransport(verify=context, trust_env=False, retries=3),  # of connections, not requests
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    def is_ready(self) -> bool:
        try:
            return self._client.get("/readyz", timeout=2).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def collect_garbage(self) -> None:
        """Returns once the API server has looked for garbage: what it does not do again in the next seconds."""
        self._client.get("/debug/pprof/heap", params={"gc": "1"}).raise_for_status()

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object:
        return self.request("GET", path(resource, namespace, name))

    def items(self, resource: str, namespace: str | None = None, **query: Any) -> list[Object]:
        return self.request("GET", path(resource, namespace), params=query)["items"]

    def create(self, item: Object) -> Object:
        return self.request("POST", self._path_of(item), json=item)

    def create_all(self, items: Iterable[Object]) -> list[Object]:
        """Create many at once."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self.create, items))

    def apply(self, item: Object, **query: Any) -> Object:
        """Server-side apply, as ``kubectl apply --server-side --force-conflicts`` does."""
        return self.request(
            "PATCH",
            f"{self._path_of(item)}/{item['metadata']['name']}",
            params={"fieldManager": "tests", "force": "true"} | query,
            content=json.dumps(item),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )

    def apply_files(self, *files: Path) -> list[Object]:
        """Apply every object in these files or in the files of these directories, namespaces and definitions first."""
        items = [item for file in files for item in read_manifests(file)]
        first = ("Namespace", "CustomResourceDefinition")
        items.sort(key=lambda item: item["kind"] not in first)
        return [self.apply(item) for item in items]

    def patch(self, resource: str, name: str, body: Object, namespace: str | None = None) -> Object:
        """A JSON merge patch; ``name`` may end in a subresource (``pod-1/status``)."""
        return self.merge(path(resource, namespace, name), body)

    def merge(self, url: str, body: Object) -> Object:
        """A JSON merge patch of what is at this path."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return self.request("PATCH", url, content=json.dumps(body), headers=headers)

    def delete(self, resource: str, name: str, namespace: str | None = None, grace: int | None = None) -> None:
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        self.request("DELETE", path(resource, namespace, name), json=options)

    def delete_all(self, resource: str, namespace: str | None = None) -> None:
        """Delete every object of a namespace (of the cluster, where there are none) at once.

        Jobs would else stay until the garbage collector, which does not run, has orphaned their pods. On a busy machine
        some hundreds take longer than an answer may: those that are left are then deleted by another request.
        """
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for again in reversed(range(_DELETIONS)):
            try:
                self.request("DELETE", path(resource, namespace), json=options)
            except httpx.ReadTimeout:
                if not again:
                    raise
            else:
                return

    def watch(self, resource: str, namespace: str | None, since: str, **query: str) -> Iterator[Object]:
        """Watch events from this resource version on, until the API server ends the stream or nothing has come
        for a second (httpx.ReadTimeout): so that the reader can look up, and go on from the last event.
        """
        query |= {"watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true"}
        with self._client.stream("GET", path(resource, namespace), params=query, timeout=_WATCH_IDLE) as response:
            response.raise_for_status()
            yield from map(json.loads, response.iter_lines())

    def service_account_token(self, name: str, namespace: str, lifetime: int = 24 * 3600) -> str:
        """A token with which one is this service account, and has its rights only."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        request["spec"] = {"expirationSeconds": lifetime}
        answer = self.request("POST", f"{path('serviceaccounts', namespace, name)}/token", json=request)
        return answer["status"]["token"]

    def request(self, method: str, url: str, **arguments: Any) -> Any:
        """Any request; what the API server has against it is in the exception."""
        response = self._client.request(method, url, **arguments)
        if response.is_error:
            text = f"{method} {url}: {response.status_code} {response.text}"
            raise httpx.HTTPStatusError(text, request=response.request, response=response)
        return response.json()

    def serves(self, url: str) -> bool:
        """Whether there is such a collection (the definition of a custom resource may not be installed)."""
        return self._client.get(url, params={"limit": 1}).is_success

    def is_ready_for(self, url: str) -> bool:
        """Whether objects can be applied to a collection: it is served, and its group's version lists it.

        The API server does the one a moment before the other.
        """
        version, _, plural = url.rpartition("/")
        listed = self._client.get(version)
        return (
            self.serves(url) and listed.is_success and plural in {kind["name"] for kind in listed.json()["resources"]}
        )

    def kubeconfig(self, token: str | None = None) -> str:
        """The text of a kubeconfig for the bearer of this token."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}],
            "users": [{"name": "test", "user": {"token": token or self.token}}],
        }
        return yaml.safe_dump(config)

    def _path_of(self, item: Object) -> str:
        version = item["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, item["kind"]) not in self._kinds:
            for known in self.request("GET", root)["resources"]:
                if "/" not in known["name"]:
                    self._kinds[version, known["kind"]] = known["name"], known["namespaced"]
        plural, namespaced = self._kinds[version, item["kind"]]
        return f"{root}/namespaces/{item['metadata']['namespace']}/{plural}" if namespaced else f"{root}/{plural}"


def path(resource: str, namespace: str | None = None, name: str | None = None) -> str:
    parts = [_API.get(resource, "/api/v1")]
    if namespace:
        parts += ["namespaces", namespace]
    parts.append(resource)
    if name:
        parts.append(name)
    return "/".join(parts)


def read_manifests(where: Path) -> list[Object]:
    """The objects in a YAML file, or in those of a directory (what only kustomize reads is left out)."""
    files = sorted(where.glob("*.yaml")) if where.is_dir() else [where]
    found = (each for file in files for each in documents(file.read_text()))
    return [each for each in found if "kustomize" not in each["apiVersion"]]
