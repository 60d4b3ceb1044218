"""Fills a real API server fast: objects are put into its etcd, a hundred in a transaction, and it serves them.

What is put there is what a client would have created; only the time that creating takes is saved.
"""

import base64
import itertools
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.bench.world import Object
from tests.controlplane.api import Api, path
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_definitions

AT_ONCE = 100
"""Objects in a transaction. They get one version together: a watch that is cut between them never sees the others."""
_PREFIXES = {
    "Pod": "pods",
    "Job": "jobs",
    "Node": "minions",
    "Namespace": "namespaces",
    "ElasticQuota": "scheduling.x-k8s.io/elasticquotas",
    "Queue": "scheduling.volcano.sh/queues",
    "ResourceClaim": "resourceclaims",
    "ResourceSlice": "resourceslices",
}
_numbers = itertools.count(1)


class Etcd:
    """The store behind the API server of a control plane."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=60)
        self._last: dict[str, str] = {}

    def put(self, items: Iterable[Object], at_once: int = AT_ONCE) -> None:
        """Stores objects, in place of those of the same name."""
        for batch in _batches(map(_stored, items), at_once):
            operations = [{"requestPut": {"key": _coded(key), "value": _coded(value)}} for key, value in batch]
            self._http.post("/v3/kv/txn", json={"success": operations}).raise_for_status()
            self._last |= {key.split("/")[2]: key for key, _ in batch}

    def is_served(self, api: Api) -> bool:
        """Whether the API server caches the pod, node, slice and claim that were put last; they come in order."""
        return all(_is_cached(api, url) for url in map(_url, self._last.values()) if url)

    def delete(self, resource: str, namespace: str) -> None:
        """Removes all pods or all Jobs of a namespace at once."""
        start = f"/registry/{resource}/{namespace}/"
        body = {"key": _coded(start), "range_end": _coded(start[:-1] + "0")}  # the character after the slash
        self._http.post("/v3/kv/deleterange", json=body).raise_for_status()

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()


@contextmanager
def filled(directory: Path, items: Iterable[Object]) -> Iterator[tuple[ControlPlane, Etcd]]:
    """A control plane with Quotaward's definitions and these objects, once it serves them; without fake kubelets."""
    with ControlPlane(directory) as control_plane:
        control_plane.kwok.kill()  # it would look at every object as it comes
        install_definitions(control_plane.api)
        etcd = Etcd(control_plane.etcd_url)
        try:
            etcd.put(items)
            wait_until(lambda: etcd.is_served(control_plane.api), "the API server serves all that was put", 300)
            yield control_plane, etcd
        finally:
            etcd.close()


def _batches(stored: Iterator[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    while batch := list(itertools.islice(stored, size)):
        yield batch


def _stored(item: Object) -> tuple[str, str]:
    """The key and the text of an object in etcd, with what the API server would have added."""
    metadata = {
        "uid": f"10000000-0000-0000-0000-{next(_numbers):012}",
        "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "generation": 1,
    } | item["metadata"]
    parts = ["/registry", _PREFIXES[item["kind"]], metadata.get("namespace"), metadata["name"]]
    return "/".join(filter(None, parts)), json.dumps(item | {"metadata": metadata})


def _is_cached(api: Api, url: str) -> bool:
    try:
        api.request("GET", url, params={"resourceVersion": "0"})
    except httpx.HTTPStatusError:
        return False
    return True


def _url(key: str) -> str:
    """Where the API server serves what is stored there; empty but for a few kinds."""
    match key.split("/")[2:]:
        case "minions", name:
            return path("nodes", name=name)
        case "resourceslices", name:
            return path("resourceslices", name=name)
        case "pods" | "resourceclaims" as plural, namespace, name:
            return path(plural, namespace, name)
    return ""


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
