"""Resource quotas: any of them may give its namespace a weight; those of the quota manager are its limits."""

from typing import Any

import msgspec
from msgspec import Struct

from app.store.heeded import MANAGED, WEIGHT
from app.store.kind import Kind
from app.store.metadata import Metadata
from policy.cluster.cluster import Cluster
from policy.cluster.quota_manager import NAME, REQUESTS, Limit
from policy.objects.quantity import InvalidQuantity, amount_of_milli, to_milli
from policy.objects.queue import LARGEST_WEIGHT


class ResourceQuotaSpec(Struct, gc=False):
    """The fields that are read of a resource quota's spec."""

    hard: dict[str, Any] | None = None


class ResourceQuotaObject(Struct, gc=False):
    """A ResourceQuota."""

    metadata: Metadata
    spec: ResourceQuotaSpec | None = None


def weight_of(obj: ResourceQuotaObject) -> int | None:
    """Returns the weight that a resource quota gives its namespace: None without one, 1 if not a positive whole number.

    Seed: namespace fair share (where is the weight).
    """
    given = (obj.spec.hard if obj.spec else None) or {}
    if WEIGHT not in given:
        return None
    value = given[WEIGHT]
    try:
        milli = to_milli(value) if isinstance(value, str | int | float) else 0
    except InvalidQuantity:
        return 1
    return min(milli // 1000, LARGEST_WEIGHT) if milli >= 1000 and milli % 1000 == 0 else 1  # noqa: PLR2004


def limit_of(obj: ResourceQuotaObject) -> Limit:
    """Returns the limit in a resource quota of the quota manager's name. A value that is not a quantity becomes -1."""
    hard = {}
    for key, value in ((obj.spec.hard if obj.spec else None) or {}).items():
        resource = key.removeprefix(REQUESTS)
        try:
            hard[key] = amount_of_milli(resource, to_milli(value)) if isinstance(value, str | int | float) else -1
        except InvalidQuantity:
            hard[key] = -1
    owners = [owner for owner in obj.metadata.owner_references or () if owner.kind == "Queue"]
    ours = MANAGED in (obj.metadata.labels or {}) or bool(owners)
    return Limit(obj.metadata.uid or "", hard, ours, frozenset(owner.uid for owner in owners))


def _upsert_resource_quota(cluster: Cluster, obj: ResourceQuotaObject) -> None:
    namespace, name = obj.metadata.namespace or "", obj.metadata.name
    cluster.upsert_weight(namespace, name, weight_of(obj))
    if name == NAME:
        cluster.upsert_limit(namespace, limit_of(obj))


def _delete_resource_quota(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.delete_weight(namespace, name)
    if name == NAME:
        cluster.delete_limit(namespace)


RESOURCE_QUOTAS = Kind(
    plural="resourcequotas",
    api_version="v1",
    name="ResourceQuota",
    decoder=msgspec.json.Decoder(ResourceQuotaObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: _upsert_resource_quota(cluster, obj),
    delete=lambda cluster, key: _delete_resource_quota(cluster, key[0], key[1]),
    known=lambda cluster: {*cluster.membership.weights, *((namespace, NAME) for namespace in cluster.limits)},
)
