"""RuntimeClasses: the overhead of their pods. It is all that is read of them."""

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata
from app.store.quantities import ResourceList, milli_of


class Overhead(Struct, rename="camel", gc=False):
    """The resources that each pod of a RuntimeClass takes beside its containers."""

    pod_fixed: ResourceList | None = None


class RuntimeClassObject(Struct, gc=False):
    """A RuntimeClass."""

    metadata: Metadata
    overhead: Overhead | None = None


def overhead_of(obj: RuntimeClassObject) -> dict[str, int]:
    """Returns the overhead of each pod, in thousandths. Raises InvalidObject."""
    return milli_of(obj.overhead.pod_fixed if obj.overhead else None, "overhead.podFixed")


RUNTIME_CLASSES = Kind(
    plural="runtimeclasses",
    api_version="node.k8s.io/v1",
    name="RuntimeClass",
    decoder=msgspec.json.Decoder(RuntimeClassObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.pod_defaults.upsert_runtime_class(obj.metadata.name, overhead_of(obj)),
    delete=lambda cluster, key: cluster.pod_defaults.delete_runtime_class(str(key)),
    known=lambda cluster: cluster.pod_defaults.runtime_classes,
    namespaced=False,
    optional=True,
    advisory=True,
)
