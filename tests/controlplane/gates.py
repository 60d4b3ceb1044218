"""Gates on the real API server: the policy and the rights as the manifests have them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.controlplane.api import read_manifests
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object, pod
from tests.controlplane.processes import wait_until

GATE = "quotaward.dev/quota"
_MANIFESTS = Path(__file__).parents[2] / "manifests" / "gates"
POLICY, RIGHTS = _MANIFESTS / "quotaward-gate.yaml", _MANIFESTS / "quotaward-gates.yaml"
_PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def is_gated(item: Object) -> bool:
    return any(gate["name"] == GATE for gate in item["spec"].get("schedulingGates", ()))


def gated_namespace(cluster: Cluster, prefix: str = "gated", queue: str | None = None) -> str:
    """A new namespace whose pods wait at gates from now on: the API server itself learns of a label a little later."""
    namespace = cluster.namespace(prefix, queue)
    cluster.label(namespace, gated=True)
    wait_until(lambda: is_gated(cluster.api.apply(pod("p", namespace), dryRun="All")), "new pods are gated")
    return namespace


@contextmanager
def policy(cluster: Cluster) -> Iterator[None]:
    """The policy is in force while this is open."""
    items = read_manifests(POLICY)
    for item in items:
        cluster.api.apply(item)
    try:
        gated_namespace(cluster)
        yield
    finally:
        for item in reversed(items):
            delete(cluster, item)


@contextmanager
def right_to_open(cluster: Cluster) -> Iterator[None]:
    """Quotaward may open gates while this is open."""
    items = cluster.api.apply_files(RIGHTS)
    try:
        yield
    finally:
        for item in items:
            delete(cluster, item)


def delete(cluster: Cluster, item: Object) -> None:
    """Delete an object of the manifests; one that is gone is no error."""
    plural = _PLURALS.get(item["kind"], f"{item['kind'].lower()}s")
    try:
        cluster.api.request("DELETE", f"/apis/{item['apiVersion']}/{plural}/{item['metadata']['name']}")
    except httpx.HTTPStatusError as error:
        if error.response.status_code != httpx.codes.NOT_FOUND:
            raise
