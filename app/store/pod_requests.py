"""The effective request of a pod: from its containers, its pod-level resources, and a resize.

Pods of one template request the same, so they share one result.
"""

from app.store.pod_object import ContainerSpec, ContainerStatus, PodSpec, PodStatus, Requirements
from app.store.quantities import milli_of, milli_or_none
from app.store.remembered import remembered
from app.store.shared import shared_amounts
from policy.objects.constraints import MOST_RESOURCES
from policy.objects.pod import Container, PodRequests, effective_request
from policy.objects.quantity import Quantity
from policy.objects.resources import Resources

Asked = tuple[tuple[tuple[tuple[str, Quantity | None], ...], str | None], ...]
"""The requests and the restart policy of each container."""


def drop_excess_resources(spec: PodSpec) -> bool:
    """Cuts the resources of a spec to the number that is judged. Returns whether it dropped any.

    It keeps cpu, memory and ephemeral-storage, and then the first by name. Requests of "0", as the API server writes
    it, are dropped first and do not count as dropped. Overhead stays, as no tenant writes it.
    """
    holders = [*(spec.containers or ()), *(spec.init_containers or ()), spec]
    asked = [each.resources for each in holders if each.resources]
    if sum([len(each.requests or ()) for each in asked]) <= MOST_RESOURCES:
        return False
    lists = [each.requests or {} for each in asked]
    if len(set().union(*lists)) <= MOST_RESOURCES:
        return False
    names = {name for requests in lists for name, quantity in requests.items() if quantity != "0"}
    usual = names & {"cpu", "memory", "ephemeral-storage"}
    kept = usual | set(sorted(names - usual)[: MOST_RESOURCES - len(usual)])
    for each in asked:
        each.requests = {name: quantity for name, quantity in (each.requests or {}).items() if name in kept}
    return len(kept) < len(names)


def request_of(spec: PodSpec, status: PodStatus) -> Resources:
    """Returns the effective request. Before a pod has started, this mostly depends on its containers alone.

    Pods of one template have the same containers, so they share one result.
    """
    started = status.container_statuses or status.init_container_statuses or status.allocated_resources
    if started or status.resources or spec.overhead or spec.resources or _is_resize_infeasible(spec, status):
        return shared_amounts(tuple(effective_request(requests_of(spec, status)).items()))
    return _request_of_containers(asked_for(spec.containers), asked_for(spec.init_containers))


def asked_for(containers: list[ContainerSpec] | None) -> Asked:
    """Returns what containers request, to be remembered."""
    if not containers:
        return ()
    return tuple(
        [
            (
                tuple(given.resources.requests.items()) if given.resources and given.resources.requests else (),
                given.restart_policy,
            )
            for given in containers
        ]
    )


@remembered(8192)
def _request_of_containers(containers: Asked, init_containers: Asked) -> Resources:
    """Returns the effective request of these containers. Raises InvalidObject."""
    spec = PodSpec(containers=containers_of(containers), init_containers=containers_of(init_containers))
    return shared_amounts(tuple(effective_request(requests_of(spec, PodStatus())).items()))


def containers_of(asked: Asked) -> list[ContainerSpec]:
    """Returns containers that request this."""
    return [
        ContainerSpec(resources=Requirements(dict(requests)), restart_policy=restart) for requests, restart in asked
    ]


def requests_of(spec: PodSpec, status: PodStatus) -> PodRequests:
    """Returns the inputs of the effective request. Raises InvalidObject."""
    resized = None if status.resources is None else status.resources.requests or {}
    return PodRequests(
        containers=_containers(spec.containers, status.container_statuses, "spec.containers"),
        init_containers=_containers(spec.init_containers, status.init_container_statuses, "spec.initContainers"),
        overhead=milli_of(spec.overhead, "spec.overhead"),
        pod_level=milli_of(spec.resources.requests if spec.resources else None, "spec.resources.requests"),
        pod_level_allocated=milli_or_none(status.allocated_resources, "status.allocatedResources"),
        pod_level_actuated=milli_or_none(resized, "status.resources.requests"),
        resize_infeasible=_is_resize_infeasible(spec, status),
    )


def _is_resize_infeasible(spec: PodSpec, status: PodStatus) -> bool:
    """Whether the kubelet says that the requested resize can never be done. A pod without a node has no kubelet."""
    if not (spec.node_name and status.conditions):
        return False
    return any(each.type == "PodResizePending" and each.reason == "Infeasible" for each in status.conditions)


def _containers(
    specs: list[ContainerSpec] | None, statuses: list[ContainerStatus] | None, path: str
) -> tuple[Container, ...]:
    if not specs:
        return ()
    by_name = {status.name: status for status in statuses} if statuses else {}
    result = []
    for index, spec in enumerate(specs):
        where = f"{path}[{index}].resources.requests"
        requests = milli_of(spec.resources.requests if spec.resources else None, where)
        status = by_name.get(spec.name)
        allocated = milli_or_none(status.allocated_resources, where) if status else None
        actuated = milli_or_none(status.resources.requests, where) if status and status.resources else None
        result.append(Container(requests, allocated, actuated, restartable=spec.restart_policy == "Always"))
    return tuple(result)
