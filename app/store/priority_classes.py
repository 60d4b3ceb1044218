"""PriorityClasses: the fields that are read, and the translation to the class of the rules."""

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata
from policy.objects.pod_template import PriorityClass


class PriorityClassObject(Struct, rename="camel", gc=False):
    """A PriorityClass."""

    metadata: Metadata
    value: int = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


def priority_class_of(obj: PriorityClassObject) -> PriorityClass:
    """Returns the PriorityClass as the rules see it."""
    return PriorityClass(obj.value, obj.preemption_policy != "Never", obj.global_default is True)


PRIORITY_CLASSES = Kind(
    plural="priorityclasses",
    api_version="scheduling.k8s.io/v1",
    name="PriorityClass",
    decoder=msgspec.json.Decoder(PriorityClassObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.pod_defaults.upsert_priority_class(
        obj.metadata.name, priority_class_of(obj)
    ),
    delete=lambda cluster, key: cluster.pod_defaults.delete_priority_class(str(key)),
    known=lambda cluster: cluster.pod_defaults.priority_classes,
    namespaced=False,
    optional=True,
    advisory=True,
)
