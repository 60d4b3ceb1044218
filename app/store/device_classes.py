"""DeviceClasses: the extended resource name of each, and which devices are of it, if that is simple to say."""

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata
from policy.objects import device_selector
from policy.objects.device import DeviceClass


class CelSelector(Struct, gc=False):
    """An expression that selects devices."""

    expression: str = ""


class DeviceSelector(Struct, gc=False):
    """A selector of devices. Kubernetes 1.37 has only expressions."""

    cel: CelSelector | None = None


class DeviceClassSpec(Struct, rename="camel", gc=False):
    """The fields that are read of a DeviceClass's spec."""

    extended_resource_name: str | None = None
    selectors: list[DeviceSelector] | None = None


class DeviceClassObject(Struct, gc=False):
    """A DeviceClass."""

    metadata: Metadata
    spec: DeviceClassSpec | None = None


def device_class_of(obj: DeviceClassObject) -> DeviceClass:
    """Returns a device class as the rules see it."""
    spec = obj.spec or DeviceClassSpec()
    given = [each.cel.expression if each.cel is not None else "" for each in spec.selectors or ()]
    return DeviceClass(spec.extended_resource_name or "", device_selector.parse(given))


DEVICE_CLASSES = Kind(
    plural="deviceclasses",
    api_version="resource.k8s.io/v1",
    name="DeviceClass",
    decoder=msgspec.json.Decoder(DeviceClassObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.devices.upsert_class(obj.metadata.name, device_class_of(obj)),
    delete=lambda cluster, key: cluster.devices.delete_class(str(key)),
    known=lambda cluster: cluster.device_names.classes,
    namespaced=False,
    optional=True,
    advisory=True,
)
