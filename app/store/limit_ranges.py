"""LimitRanges: what a container requests by default. Their bounds are enforced by the API server alone."""

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata
from app.store.quantities import ResourceList, milli_of

CONTAINER = "Container"
"""The type of limits that have defaults for containers."""


class LimitRangeItem(Struct, rename="camel", gc=False):
    """The fields that are read of the limits of one type.

    The API server itself fills in ``defaultRequest`` from the other fields (``SetDefaults_LimitRangeItem``).
    """

    type: str = ""
    default_request: ResourceList | None = None


class LimitRangeSpec(Struct, gc=False):
    """The fields that are read of a LimitRange's spec."""

    limits: list[LimitRangeItem] | None = None


class LimitRangeObject(Struct, gc=False):
    """A LimitRange."""

    metadata: Metadata
    spec: LimitRangeSpec | None = None


def requests_by_default(obj: LimitRangeObject) -> dict[str, int]:
    """Returns the requests of a container that names none, in thousandths. Raises InvalidObject."""
    requests: dict[str, int] = {}
    for number, each in enumerate((obj.spec.limits if obj.spec else None) or ()):
        if each.type == CONTAINER:
            requests |= milli_of(each.default_request, f"spec.limits[{number}].defaultRequest")
    return requests


LIMIT_RANGES = Kind(
    plural="limitranges",
    api_version="v1",
    name="LimitRange",
    decoder=msgspec.json.Decoder(LimitRangeObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.pod_defaults.upsert_limit_range(
        obj.metadata.namespace or "", obj.metadata.name, requests_by_default(obj)
    ),
    delete=lambda cluster, key: cluster.pod_defaults.delete_limit_range(key[0], key[1]),
    known=lambda cluster: cluster.pod_defaults.keys_of_limit_ranges(),
    optional=True,
    advisory=True,
)
