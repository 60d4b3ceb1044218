"""Pods that do not exist yet, as the template of a Job describes them, and what is added when they are created.

A template has no priority, and no requests that a LimitRange of its namespace adds: the API server fills these into
each pod. A Job that waits as a whole has no pods, so its demand is computed in the same way. The functions follow the
admission plugins LimitRanger, Priority and RuntimeClass of Kubernetes 1.37.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policy.objects.pod import Container, MilliResources, Pod, PodRequests, effective_request


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass. ``is_default``: pods that name no class are of this one."""

    value: int = 0
    may_preempt: bool = True
    is_default: bool = False


NO_CLASS = PriorityClass()
"""The priority of a pod that names no class where none is the default."""
SYSTEM: Mapping[str, PriorityClass] = {
    "system-node-critical": PriorityClass(2_000_001_000),
    "system-cluster-critical": PriorityClass(2_000_000_000),
}
"""The classes that each API server has, by name."""


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """The parts of a pod template to which something may be added.

    ``requests`` has the requests of the template. Each container requests its own limit of a resource for which it
    names no request. ``limits`` are cpu and memory in the limits of the pod as a whole, in thousandths.
    """

    requests: PodRequests
    limits: MilliResources = field(default_factory=dict)
    priority_class: str = ""
    runtime_class: str = ""


def class_named(name: str, classes: Mapping[str, PriorityClass]) -> PriorityClass:
    """Returns the priority class of a pod that names this one, or none (an empty name).

    As ``establishPriority`` of the admission plugin Priority: of several default classes the lowest counts. The API
    server creates no pod that names an unknown class.
    """
    if name:
        return classes.get(name) or SYSTEM.get(name, NO_CLASS)
    return min((each for each in classes.values() if each.is_default), key=lambda each: each.value, default=NO_CLASS)


def created(
    pod: Pod, template: PodTemplate, of: PriorityClass, defaults: MilliResources, overhead: MilliResources
) -> Pod:
    """Returns a pod of the template with what the API server adds.

    ``of`` is its priority class. ``defaults`` are the requests that LimitRanges give to a container that names none
    (``mergeContainerResources`` of LimitRanger). ``overhead`` is that of its RuntimeClass, which replaces its own.
    """
    asked = template.requests
    containers = tuple(_with_defaults(each, defaults) for each in asked.containers)
    init_containers = tuple(_with_defaults(each, defaults) for each in asked.init_containers)
    requests = replace(
        asked,
        containers=containers,
        init_containers=init_containers,
        overhead=overhead or asked.overhead,
        pod_level=_pod_level(template, containers + init_containers),
    )
    return replace(pod, request=effective_request(requests), priority=of.value, may_preempt=of.may_preempt)


def _with_defaults(container: Container, defaults: MilliResources) -> Container:
    if defaults.keys() <= container.requests.keys():
        return container
    return replace(container, requests={**defaults, **container.requests})


def _pod_level(template: PodTemplate, containers: tuple[Container, ...]) -> MilliResources:
    """Returns the requests of the pod as a whole. A limit is the request if neither the pod nor a container names one.

    As ``defaultPodLevelRequests`` in pkg/api/pod, which comes after LimitRanger: so a default of a container counts.
    """
    given = template.requests.pod_level
    if not template.limits:
        return given
    named = given.keys() | {resource for each in containers for resource in each.requests}
    return {**{resource: limit for resource, limit in template.limits.items() if resource not in named}, **given}
