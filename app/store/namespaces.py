"""Namespaces: the fields that are read, and the translation to the namespace of the rules."""

import msgspec
from msgspec import Struct

from app.store.heeded import GATED, JOBS_WAIT
from app.store.kind import Kind
from app.store.metadata import Metadata, as_text
from policy.objects.membership import Namespace


class NamespaceObject(Struct, gc=False):
    """A Namespace."""

    metadata: Metadata


def namespace_of(obj: NamespaceObject) -> Namespace:
    """Returns the queues that a namespace names, and whether its pods and its Jobs wait."""
    labels = obj.metadata.labels or {}
    gated, queues_jobs = labels.get(GATED) == "true", labels.get(JOBS_WAIT) == "queued"
    annotations = obj.metadata.annotations
    if annotations is None:
        return Namespace(obj.metadata.name, gated=gated, queues_jobs=queues_jobs)
    allowed = as_text(annotations.allowed_queues).split(",")
    return Namespace(
        obj.metadata.name,
        as_text(annotations.queue),
        frozenset(name.strip() for name in allowed if name.strip()),
        gated,
        queues_jobs,
    )


NAMESPACES = Kind(
    plural="namespaces",
    api_version="v1",
    name="Namespace",
    decoder=msgspec.json.Decoder(NamespaceObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_namespace(namespace_of(obj)),
    delete=lambda cluster, key: cluster.delete_namespace(str(key)),
    known=lambda cluster: cluster.membership.namespaces,
    namespaced=False,
)
