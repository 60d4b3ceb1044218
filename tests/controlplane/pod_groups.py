"""Pod groups: the little of their definitions that is read of them, and groups with their members."""

from typing import Any

from tests.controlplane.api import Api
from tests.controlplane.objects import GROUP, Object, labelled, pods
from tests.controlplane.processes import wait_until

SCHEDULER_PLUGINS = "scheduling.x-k8s.io/v1alpha1"
OLDER_SCHEDULER_PLUGINS = "scheduling.sigs.k8s.io/v1alpha1"
VOLCANO = "scheduling.volcano.sh/v1beta1"
NATIVE = "scheduling.k8s.io/v1beta1"
"""The API groups and versions that have pod groups."""
NATIVE_GATE = "--feature-gates=GenericWorkload=true"
"""What the API server and the scheduler need for native ones, and what the API server needs besides."""
NATIVE_SERVED = f"--runtime-config={NATIVE}=true"


def install_pod_groups(api: Api, version: str = SCHEDULER_PLUGINS) -> None:
    """Install the definition of pod groups of an API group, and wait until it is served."""
    group, _, name = version.partition("/")
    spec = {"type": "object", "properties": {"minMember": {"type": "integer"}, "queue": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    served = {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"podgroups.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }
    api.apply(definition)
    url = f"/apis/{version}/podgroups"
    wait_until(lambda: api.is_ready_for(url), f"the API server serves pod groups of {group}")


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
