"""ResourceSlices: the devices that drivers publish for nodes, by their attributes."""

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct, field

from app.store.kind import Kind
from app.store.metadata import Metadata
from app.store.placement import NULL
from app.store.remembered import remembered
from policy.objects.device import Attributes, DeviceSlice
from policy.objects.device_selector import DRIVER, Value, as_value

NONE = (b"null", b"[]")
"""A list that has nothing, as JSON."""


class Attribute(Struct, gc=False):
    """The value of an attribute, if it is one that selectors are judged by."""

    text: str | None = field(name="string", default=None)
    number: int | None = field(name="int", default=None)
    flag: bool | None = field(name="bool", default=None)


class Device(Struct, rename="camel", gc=False):
    """The fields that are read of a device."""

    attributes: dict[str, Attribute] | None = None
    taints: Raw = NULL
    consumes_counters: Raw = NULL
    allow_multiple_allocations: bool | None = None


class ResourcePool(Struct, rename="camel", gc=False):
    """The pool that a slice is a part of."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct, rename="camel", gc=False):
    """The fields that are read of a slice's spec."""

    driver: str = ""
    node_name: str | None = None
    pool: ResourcePool | None = None
    devices: list[Device] | None = None


class ResourceSliceObject(Struct, gc=False):
    """A ResourceSlice."""

    metadata: Metadata
    spec: ResourceSliceSpec | None = None


def slice_of(obj: ResourceSliceObject) -> DeviceSlice:
    """Returns a slice as the rules see it."""
    spec = obj.spec or ResourceSliceSpec()
    pool = spec.pool or ResourcePool()
    devices = [each for each in spec.devices or () if bytes(each.taints) in NONE]
    return DeviceSlice(
        obj.metadata.name,
        spec.node_name or "",
        (spec.driver, pool.name),
        pool.generation,
        pool.resource_slice_count,
        tuple(
            _shared_attributes((_attribute(DRIVER, as_value(spec.driver)), *_attributes(spec.driver, each)))
            for each in devices
        ),
        any(each.allow_multiple_allocations or bytes(each.consumes_counters) not in NONE for each in devices),
    )


def _attributes(driver: str, device: Device) -> Iterator[tuple[str, Value]]:
    """Yields the attributes of a device. One without a domain is in that of the driver."""
    for name, given in (device.attributes or {}).items():
        value = next((each for each in (given.text, given.flag, given.number) if each is not None), None)
        if value is not None:
            yield _attribute(name if "/" in name else f"{driver}/{name}", as_value(value))


@remembered(8192)
def _attribute(name: str, value: Value) -> tuple[str, Value]:
    """Returns one object for all devices with the same value of an attribute."""
    return name, value


@remembered(8192)
def _shared_attributes(attributes: Attributes) -> Attributes:
    """Returns one object for all devices with the same attributes."""
    return attributes


RESOURCE_SLICES = Kind(
    plural="resourceslices",
    api_version="resource.k8s.io/v1",
    name="ResourceSlice",
    decoder=msgspec.json.Decoder(ResourceSliceObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.devices.upsert_slice(slice_of(obj)),
    delete=lambda cluster, key: cluster.devices.delete_slice(str(key)),
    known=lambda cluster: cluster.devices.pools.slices,
    namespaced=False,
    optional=True,
    advisory=True,
)
