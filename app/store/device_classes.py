"""DeviceClasses: the extended resource name of each. It is all that is read of them."""

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata


class DeviceClassSpec(Struct, rename="camel", gc=False):
    """The fields that are read of a DeviceClass's spec."""

    extended_resource_name: str | None = None


class DeviceClassObject(Struct, gc=False):
    """A DeviceClass."""

    metadata: Metadata
    spec: DeviceClassSpec | None = None


def extended_name_of(obj: DeviceClassObject) -> str:
    """Returns the extended resource by which pods may ask for devices of the class; empty if there is none."""
    return (obj.spec.extended_resource_name if obj.spec else None) or ""


DEVICE_CLASSES = Kind(
    plural="deviceclasses",
    api_version="resource.k8s.io/v1",
    name="DeviceClass",
    decoder=msgspec.json.Decoder(DeviceClassObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.devices.upsert_class(obj.metadata.name, extended_name_of(obj)),
    delete=lambda cluster, key: cluster.devices.delete_class(str(key)),
    known=lambda cluster: cluster.devices.classes,
    namespaced=False,
    optional=True,
    advisory=True,
)
