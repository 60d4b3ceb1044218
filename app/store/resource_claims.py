"""ResourceClaims and ResourceClaimTemplates: how many devices of each class they ask for, or have."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct

from app.store.kind import Kind
from app.store.metadata import Metadata
from app.store.placement import NULL
from app.store.remembered import remembered
from policy.objects.device import DeviceClaim, DeviceRequests
from policy.objects.quantity import LARGEST
from policy.objects.resources import Resources, largest

NOTHING = (b"null", b"[]", b"{}")
"""A field that says nothing, as JSON."""
ALL = "All"
"""The allocation mode of a request for all devices of a node."""

Decoded = tuple[str, str, int, bool]
"""Of a request, or of an alternative in it: its name, the device class, how many, and whether it asks for all."""


class ExactDeviceRequest(Struct, rename="camel", gc=False):
    """The fields that are read of a request for devices, or of one of its alternatives."""

    name: str = ""
    device_class_name: str = ""
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    selectors: Raw = NULL
    capacity: Raw = NULL


class DeviceRequest(Struct, rename="camel", gc=False):
    """The fields that are read of a request of a claim: a request for devices, or the alternatives that it names."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[ExactDeviceRequest] | None = None


class DeviceClaimSpec(Struct, gc=False):
    """The devices that a claim asks for."""

    requests: list[DeviceRequest] | None = None
    constraints: Raw = NULL


class ResourceClaimSpec(Struct, gc=False):
    """The spec of a claim."""

    devices: DeviceClaimSpec | None = None


class AllocationResult(Struct, rename="camel", gc=False):
    """A device that a claim has, by the request that it serves."""

    request: str = ""
    admin_access: bool | None = None


class DeviceAllocation(Struct, gc=False):
    """The devices that a claim has."""

    results: list[AllocationResult] | None = None


class Allocation(Struct, gc=False):
    """The allocation of a claim."""

    devices: DeviceAllocation | None = None


class ResourceClaimStatus(Struct, gc=False):
    """The fields that are read of a claim's status."""

    allocation: Allocation | None = None


class ResourceClaimObject(Struct, gc=False):
    """A ResourceClaim."""

    metadata: Metadata
    spec: ResourceClaimSpec | None = None
    status: ResourceClaimStatus | None = None


class TemplateSpec(Struct, gc=False):
    """The spec of a template of claims."""

    spec: ResourceClaimSpec | None = None


class ResourceClaimTemplateObject(Struct, gc=False):
    """A ResourceClaimTemplate."""

    metadata: Metadata
    spec: TemplateSpec | None = None


def claim_of(obj: ResourceClaimObject) -> DeviceClaim:
    """Returns a claim as the rules see it."""
    allocation = obj.status.allocation if obj.status else None
    return DeviceClaim(
        obj.metadata.namespace or "",
        obj.metadata.name,
        _requests_of(obj.spec),
        None if allocation is None else _allocated(obj.spec, allocation),
    )


def _requests_of(spec: ResourceClaimSpec | None) -> DeviceRequests:
    plain = spec is None or spec.devices is None or bytes(spec.devices.constraints) in NOTHING
    return _shared_requests(tuple(map(_decoded, _of(spec))), plain and all(map(_is_plain, _of(spec))))


def _is_plain(request: DeviceRequest) -> bool:
    """Whether any devices of a class will do for a request, so many as it says."""
    each = request.exactly
    if each is None or each.admin_access or each.allocation_mode == ALL:
        return False
    return bytes(each.selectors) in NOTHING and bytes(each.capacity) in NOTHING


def _of(spec: ResourceClaimSpec | None) -> list[DeviceRequest]:
    return (spec.devices.requests if spec and spec.devices else None) or []


def _decoded(request: DeviceRequest) -> tuple[Decoded, ...]:
    """Returns the alternatives of a request: mostly it is the only one. One for administrators asks for none."""
    given = [request.exactly] if request.exactly is not None else request.first_available or ()
    return tuple(
        (
            each.name,
            each.device_class_name,
            0 if each.admin_access else min(1 if each.count is None else each.count, LARGEST),
            each.allocation_mode == ALL and not each.admin_access,
        )
        for each in given
    )


@remembered(4096)
def _shared_requests(requests: tuple[tuple[Decoded, ...], ...], plain: bool) -> DeviceRequests:  # noqa: FBT001 - to be remembered
    """Returns one object for all claims that ask for the same.

    Of alternatives the largest number of each class counts, as in ResourceQuotas (``claimEvaluator`` of Kubernetes).
    """
    counts: dict[str, int] = {}
    for alternatives in requests:
        most = largest(*({name: count} for _, name, count, whole in alternatives if not whole))
        for name, count in most.items():
            counts[name] = min(counts.get(name, 0) + count, LARGEST)
    whole = frozenset(name for alternatives in requests for _, name, _, whole in alternatives if whole)
    return DeviceRequests(counts, whole, plain)


def _allocated(spec: ResourceClaimSpec | None, allocation: Allocation) -> Resources:
    """Returns how many devices of each class are allocated. A result names its request, or the alternative in it."""
    classes = dict(_classes(_of(spec)))
    results = (allocation.devices.results if allocation.devices else None) or ()
    return _shared_counts(tuple(classes.get(each.request, "") for each in results if not each.admin_access))


def _classes(requests: Iterable[DeviceRequest]) -> Iterator[tuple[str, str]]:
    """Yields the name of each request or alternative, as results have it, with its class."""
    for request in requests:
        if request.exactly is not None:
            yield request.name, request.exactly.device_class_name
        for alternative in request.first_available or ():
            yield f"{request.name}/{alternative.name}", alternative.device_class_name


@remembered(4096)
def _shared_counts(classes: tuple[str, ...]) -> Resources:
    """Returns one map for all claims with as many devices of the same classes."""
    return {name: classes.count(name) for name in dict.fromkeys(classes) if name}


RESOURCE_CLAIMS = Kind(
    plural="resourceclaims",
    api_version="resource.k8s.io/v1",
    name="ResourceClaim",
    decoder=msgspec.json.Decoder(ResourceClaimObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.devices.upsert_claim(claim_of(obj)),
    delete=lambda cluster, key: cluster.devices.delete_claim(key[0], key[1]),
    known=lambda cluster: cluster.devices.claims,
    optional=True,
    advisory=True,
)
RESOURCE_CLAIM_TEMPLATES = Kind(
    plural="resourceclaimtemplates",
    api_version="resource.k8s.io/v1",
    name="ResourceClaimTemplate",
    decoder=msgspec.json.Decoder(ResourceClaimTemplateObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.devices.upsert_template(
        obj.metadata.namespace or "", obj.metadata.name, _requests_of(obj.spec.spec if obj.spec else None)
    ),
    delete=lambda cluster, key: cluster.devices.delete_template(key[0], key[1]),
    known=lambda cluster: cluster.devices.templates,
    optional=True,
    advisory=True,
)
