"""Defaults that the API server would have filled into an object that it has never seen."""

from typing import Any

from app.store.jobs import JOBS
from app.store.kind import Kind
from app.store.limit_ranges import CONTAINER
from app.store.pod_templates import RESERVED_WHOLE
from app.store.pods import PODS

CONTAINERS = ("containers", "initContainers")
"""Fields of a pod's spec that hold containers."""


def with_defaults(kind: Kind, document: dict[str, Any]) -> dict[str, Any]:
    """Fills in what the API server would: the namespace, an identity, and amounts that follow from others."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    metadata = dict(metadata)
    if kind.namespaced:
        metadata["namespace"] = metadata.get("namespace") or "default"
    if kind in (PODS, JOBS):
        metadata["uid"] = metadata.get("uid") or _uid_of(metadata["namespace"], metadata)
    elif kind.owns_pods:
        metadata["uid"] = metadata.get("uid") or _uid_of(metadata["namespace"], metadata, kind.name)
    if isinstance(owners := metadata.get("ownerReferences"), list):
        metadata["ownerReferences"] = [_with_uid(owner, metadata.get("namespace")) for owner in owners]
    match kind.name, document:
        case "Pod", {"spec": dict(spec)}:
            spec = _with_host_ports(spec | _containers_that_request(spec))
            document = {**document, "spec": _that_requests_as_a_pod(spec)}
        case "Node", {"status": {"capacity": capacity, **status}}:
            document = {**document, "status": {"allocatable": capacity, **status}}
        case "LimitRange", {"spec": {"limits": list(limits)}}:
            document = {**document, "spec": {"limits": [_with_default_requests(each) for each in limits]}}
    return {**document, "metadata": metadata}


def _uid_of(namespace: str, named: dict[str, Any], kind: str = "") -> str:
    """Returns a substitute UID, the same for the object and for references to it. ``kind``: that of a custom job."""
    return "/".join(filter(None, (namespace, kind.lower(), str(named.get("name")))))


def _with_uid(owner: Any, namespace: str | None) -> Any:
    """Adds the UID to a reference to an owner, which is in the namespace of the object."""
    if not namespace or not isinstance(owner, dict) or owner.get("uid"):
        return owner
    if owner.get("kind") == JOBS.name:
        return {**owner, "uid": _uid_of(namespace, owner)}
    if "." in str(owner.get("apiVersion")).partition("/")[0]:
        return {**owner, "uid": _uid_of(namespace, owner, str(owner.get("kind")))}
    return owner


def _with_default_requests(limits: Any) -> Any:
    """Returns the limits of a type with all requests by default (``SetDefaults_LimitRangeItem`` of Kubernetes 1.37)."""
    match limits:
        case {"type": str(of)} if of == CONTAINER:
            given: list[Any] = [limits.get(field) or {} for field in ("min", "max", "default", "defaultRequest")]
            if all(isinstance(each, dict) for each in given):
                requests = {resource: amount for each in given for resource, amount in each.items()}
                return {**limits, "defaultRequest": requests}
    return limits


def _containers_that_request(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns the containers of a pod's spec. Each requests its limit of a resource for which it names no request."""
    return {
        field: [_that_requests(each) for each in spec[field]]
        for field in CONTAINERS
        if isinstance(spec.get(field), list)
    }


def _that_requests(container: Any) -> Any:
    match container:
        case {"resources": {"limits": dict(limits), **resources}}:
            requests = resources.get("requests") or {}
            if isinstance(requests, dict):
                return {**container, "resources": {**resources, "requests": {**limits, **requests}}}
    return container


def _with_host_ports(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a pod's spec with a port of the host for each port of its containers, if it uses the host's network."""
    if spec.get("hostNetwork") is not True:
        return spec
    return spec | {
        field: [_with_host_port_of_each(each) for each in spec[field]]
        for field in CONTAINERS
        if isinstance(spec.get(field), list)
    }


def _with_host_port_of_each(container: Any) -> Any:
    match container:
        case {"ports": list(ports)} if all(isinstance(port, dict) for port in ports):
            filled = [{**port, "hostPort": port.get("hostPort") or port.get("containerPort")} for port in ports]
            return {**container, "ports": filled}
    return container


def _that_requests_as_a_pod(spec: dict[str, Any]) -> dict[str, Any]:
    """Sets the pod-level requests of a pod's spec from its pod-level limits.

    This applies to cpu and memory if neither the pod nor any container requests it, and to huge pages if the pod does
    not. Kubernetes 1.37 does the same (``DefaultPodLevelResources`` in pkg/api/pod), as far as requests are concerned.
    """
    match spec:
        case {"resources": {"limits": dict(limits), **resources}}:
            requests = resources.get("requests") or {}
            if isinstance(requests, dict):
                elsewhere = _requested_by_containers(spec)
                of_limits = {
                    name: limit
                    for name, limit in limits.items()
                    if (name in ("cpu", "memory") and name not in elsewhere) or str(name).startswith(RESERVED_WHOLE)
                }
                return {**spec, "resources": {**spec["resources"], "requests": {**of_limits, **requests}}}
    return spec


def _requested_by_containers(spec: dict[str, Any]) -> set[str]:
    """Returns the resources that any container requests."""
    names: set[str] = set()
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        match container:
            case {"resources": {"requests": dict(requests)}}:
                names.update(requests)
    return names
