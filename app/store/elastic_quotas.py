"""Elastic quotas, of the current API group and of the former group of scheduler-plugins."""

from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata, max_run_time_of, min_run_time_of, run_time_of, seconds
from app.store.quantities import limits_of
from policy.quota.elastic_quota import ElasticQuota, elastic_quota


class ElasticQuotaObject(Struct, gc=False):
    """An ElasticQuota. Its spec is read field by field: an error names the bad field, and the quota refuses all."""

    metadata: Metadata
    spec: Any = None
    status: Any = None


def elastic_quota_of(obj: ElasticQuotaObject) -> ElasticQuota:
    """Returns the elastic quota as the rules see it. Its ``errors`` name the fields that cannot be read."""
    meta, spec = obj.metadata, {} if obj.spec is None else obj.spec
    namespace, created = meta.namespace or "", seconds(meta.creation_timestamp)
    errors: list[str] = []
    if not isinstance(spec, dict):
        errors.append(f"spec: must be a map with min and max, not {str(spec)[:80]!r}")
        spec = {}
    shortest, longest = min_run_time_of(meta.annotations), max_run_time_of(meta.annotations)
    least = limits_of(spec.get("min"), "spec.min", errors)
    most = limits_of(spec.get("max"), "spec.max", errors)
    if errors:
        found = ElasticQuota(namespace, meta.name, created, errors=tuple(errors), readable=False)
    else:
        found = elastic_quota(namespace, meta.name, created, least, most, run_time_of(meta.annotations))
    return replace(found, min_run_time=shortest, max_run_time=longest)


ELASTIC_QUOTAS = Kind(
    plural="elasticquotas",
    api_version="scheduling.x-k8s.io/v1alpha1",
    name="ElasticQuota",
    decoder=msgspec.json.Decoder(ElasticQuotaObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.upsert_quota(elastic_quota_of(obj)),
    delete=lambda cluster, key: cluster.delete_quota(key[0], key[1]),
    known=lambda cluster: [(namespace, name) for namespace, quotas in cluster.quotas.items() for name in quotas],
    optional=True,
    binds=True,
)


LEGACY_ELASTIC_QUOTAS = replace(
    ELASTIC_QUOTAS,
    api_version="scheduling.sigs.k8s.io/v1alpha1",
    title="elasticquotas.scheduling.sigs.k8s.io",
)
"""Elastic quotas of the former API group of scheduler-plugins. If both groups have one of a name, the newer counts."""
