"""Pod groups: the little of scheduler-plugins' definition that is read of it, and groups with their members."""

from typing import Any

from tests.controlplane.api import Api
from tests.controlplane.objects import GROUP, Object, labelled, pods
from tests.controlplane.processes import wait_until

_SERVED = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"


def install_pod_groups(api: Api) -> None:
    """Install the definition, and wait until it is served."""
    spec = {"type": "object", "properties": {"minMember": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "podgroups.scheduling.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {"group": "scheduling.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    api.apply(definition)
    wait_until(lambda: api.is_ready_for(_SERVED), "the API server serves pod groups")


def pod_group(name: str, namespace: str, minimum: int) -> Object:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": minimum},
    }


def members(name: str, namespace: str, count: int, **arguments: Any) -> list[Object]:
    """Pods of a group, as ``pods`` makes them."""
    return [labelled(each, **{GROUP: name}) for each in pods(count, namespace, prefix=name, **arguments)]
