"""Templates of pods: fields that a pod has and nobody reads of it, as the API server has already used them.

They have structures of their own, so that pods, of which there are far more, are decoded as fast as before.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from app.store.metadata import Metadata
from app.store.pod_object import ContainerSpec, PodObject, PodSpec, PodStatus, Requirements
from app.store.pod_requests import Asked, asked_for, containers_of, requests_of
from app.store.pods import pod_of
from app.store.quantities import ResourceList, milli_of
from app.store.remembered import remembered
from policy.objects.pod import Pod
from policy.objects.pod_template import PodTemplate
from policy.objects.quantity import Quantity

Amounts = tuple[tuple[str, Quantity | None], ...]
"""Quantities by resource, to be remembered."""
RESERVED_WHOLE = "hugepages-"
"""Prefix of the memory resources that cannot be overcommitted: the limit of a pod is its request."""


class Limits(Struct, gc=False):
    """The limits of a container or a pod."""

    limits: ResourceList | None = None


class OwnPort(Struct, rename="camel", gc=False):
    """The fields that are read of a container's port beside those of ``Port``."""

    container_port: int | None = None


class LimitedContainer(Struct, gc=False):
    """The fields that are read of a container in a template beside those of ``ContainerSpec``."""

    resources: Limits | None = None
    ports: list[OwnPort] | None = None


class TemplateSpec(Struct, rename="camel", gc=False):
    """The fields that are read of the spec in a template beside those of ``PodSpec``."""

    containers: list[LimitedContainer] | None = None
    init_containers: list[LimitedContainer] | None = None
    resources: Limits | None = None
    host_network: bool | None = None
    priority_class_name: str | None = None
    runtime_class_name: str | None = None


class Template(Struct, gc=False):
    """The template of a Job."""

    spec: TemplateSpec | None = None


def pod_and_template(metadata: Metadata, spec: PodSpec | None, template: Raw) -> tuple[Pod, PodTemplate]:
    """Returns a pod of this template without any defaults, and the template as far as there may be defaults.

    ``spec`` is decoded from ``template``, and is changed. Raises InvalidObject, msgspec.MsgspecError.
    """
    spec, more = spec or PodSpec(), (_decoder.decode(template) or Template()).spec or TemplateSpec()
    for containers, limited in ((spec.containers, more.containers), (spec.init_containers, more.init_containers)):
        _request_limits(containers or (), limited or ())
        if more.host_network:
            _take_host_ports(containers or (), limited or ())
    of_pod = (more.resources.limits if more.resources else None) or {}
    if whole := {name: limit for name, limit in of_pod.items() if name.startswith(RESERVED_WHOLE)}:
        spec.resources = Requirements(whole | ((spec.resources.requests if spec.resources else None) or {}))
    pod = pod_of(PodObject(metadata, spec))  # from now on the spec has no more resources than are judged
    return pod, _template_of(
        asked_for(spec.containers),
        asked_for(spec.init_containers),
        _amounts(spec.overhead),
        _amounts(spec.resources.requests if spec.resources else None),
        _amounts({name: limit for name, limit in of_pod.items() if name in ("cpu", "memory")}),
        more.priority_class_name or "",
        more.runtime_class_name or "",
    )


def _request_limits(containers: Sequence[ContainerSpec], limited: Sequence[LimitedContainer]) -> None:
    """Lets each container request its limit where it names no request, as ``SetDefaults_Pod`` does for pods alone."""
    for container, more in zip(containers, limited, strict=True):
        if more.resources is not None and more.resources.limits:
            requests = container.resources.requests if container.resources else None
            container.resources = Requirements(more.resources.limits | (requests or {}))


def _take_host_ports(containers: Sequence[ContainerSpec], more: Sequence[LimitedContainer]) -> None:
    """Lets each port be one of the host: ``SetDefaults_Pod`` does so where pods use the network of their host."""
    for container, known in zip(containers, more, strict=True):
        for port, own in zip(container.ports or (), known.ports or (), strict=True):
            port.host_port = port.host_port or own.container_port


def _amounts(given: ResourceList | None) -> Amounts:
    return tuple(given.items()) if given else ()


@remembered(4096)
def _template_of(
    containers: Asked,
    init_containers: Asked,
    overhead: Amounts,
    pod_level: Amounts,
    limits: Amounts,
    priority_class: str,
    runtime_class: str,
) -> PodTemplate:
    """Returns one object for all Jobs of alike templates. Raises InvalidObject."""
    spec = PodSpec(
        containers=containers_of(containers),
        init_containers=containers_of(init_containers),
        overhead=dict(overhead),
        resources=Requirements(dict(pod_level)),
    )
    requests, of_pod = requests_of(spec, PodStatus()), milli_of(dict(limits), "spec.resources.limits")
    return PodTemplate(requests, of_pod, priority_class, runtime_class)


_decoder = msgspec.json.Decoder(Template | None)
