"""Changes of a cluster by manifests: objects that are added, changed or removed.

A manifest of an existing object is merged into it, as ``kubectl patch --type merge`` would (RFC 7386). It need name
only the fields that change, and null removes one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from app.problems import Problem
from app.sources.defaults import with_defaults
from app.store.budgets import BUDGETS
from app.store.device_classes import DEVICE_CLASSES
from app.store.jobs import JOBS
from app.store.kind import Key, Kind
from app.store.kinds import KINDS, QUOTA_KINDS
from app.store.limit_ranges import LIMIT_RANGES
from app.store.namespaces import NAMESPACES
from app.store.nodes import NODES
from app.store.pod_groups import POD_GROUPS, group_of
from app.store.pods import PODS
from app.store.priority_classes import PRIORITY_CLASSES
from app.store.quantities import InvalidObject
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from app.store.resource_quotas import RESOURCE_QUOTAS
from app.store.resource_slices import RESOURCE_SLICES
from app.store.runtime_classes import RUNTIME_CLASSES
from app.whatif import rendering
from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod

Json = dict[str, Any]

_KINDS = {(kind.api_version, kind.name): kind for kind in KINDS}
_LEFT_OUT = (
    *(RESERVATIONS, PRIORITY_CLASSES, LIMIT_RANGES, RUNTIME_CLASSES),
    *(DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS),
)
"""Kinds that nobody may change here: plans are ours, and defaults and devices of pods are not rendered as manifests."""


@dataclass(frozen=True, slots=True)
class Change:
    """An object that should be as the manifest says, or be removed (``manifest`` is None)."""

    kind: Kind
    namespace: str
    name: str
    manifest: Json | None
    field: str
    """Its place in the request."""


def read(apply: Iterable[Any], remove: Iterable[Any]) -> list[Change]:
    """Returns the changes of a request, removals first. Raises Problem (422) that names the field at fault."""
    removed = [change_of(document, f"remove[{number}]") for number, document in enumerate(remove)]
    applied = [change_of(document, f"apply[{number}]") for number, document in enumerate(apply)]
    return [replace(each, manifest=None) for each in removed] + applied


def change_of(document: Any, field: str) -> Change:
    """Returns the change for a manifest at this field of the request. Raises Problem (422)."""
    if not isinstance(document, dict):
        raise Problem(422, "must be an object", field=field)
    kind = _kind_of(document, field)
    metadata = document.get("metadata", {key: document[key] for key in ("name", "namespace") if key in document})
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise Problem(422, "must be a name", field=f"{field}.metadata.name")
    namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
    if not isinstance(namespace, str):
        raise Problem(422, "must be a name", field=f"{field}.metadata.namespace")
    return Change(kind, namespace, metadata["name"], document, field)


def apply(cluster: Cluster, changes: Iterable[Change], now: float, epoch: float) -> None:
    """Changes the cluster, which must be a copy. New pods are created at ``epoch``. Raises Problem (422)."""
    for change in changes:
        if change.manifest is None:
            key = key_of(cluster, change.kind, change.namespace, change.name)
            if key is None or key not in set(change.kind.known(cluster)):
                raise Problem(422, f"there is no {change.kind.name} {_title(change)}", field=change.field)
            change.kind.delete(cluster, key)
        else:
            _upsert(cluster, change, change.manifest, now, epoch)


def key_of(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Key | None:
    """Returns the key of an object by its name; None for a pod that does not exist."""
    if kind is PODS:
        pod = cluster.pod(namespace, name)
        return pod.uid if pod else None
    if kind in POD_GROUPS:
        return namespace, f"{kind.label}/{name}"
    return (namespace, name) if kind.namespaced else name


def merged(present: Any, patch: Any) -> Any:
    """Applies a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(present) if isinstance(present, Mapping) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merged(result.get(field), value)
    return result


def _kind_of(document: Json, field: str) -> Kind:
    """Returns the kind of a document; without an apiVersion, the first of that name."""
    name, version = document.get("kind"), document.get("apiVersion")
    found = [kind for kind in KINDS if kind.name == name and version in (kind.api_version, None)]
    if not found or found[0] in _LEFT_OUT:
        names = ", ".join(sorted({kind.name for kind in KINDS} - {kind.name for kind in _LEFT_OUT}))
        raise Problem(422, f"must be one of {names}, in the version that is read", field=f"{field}.kind")
    return found[0]


def _upsert(cluster: Cluster, change: Change, manifest: Json, now: float, epoch: float) -> None:
    kind, key = change.kind, key_of(cluster, change.kind, change.namespace, change.name)
    present = _present(cluster, kind, change.namespace, change.name)
    try:
        document = with_defaults(kind, merged(present, manifest)) if present else with_defaults(kind, manifest)
        if present and kind is PODS:
            document["metadata"]["uid"] = key
        obj = kind.decoder.decode(msgspec.json.encode(document))
        kind.upsert(cluster, obj, now)
    except InvalidObject as error:
        raise Problem(422, error.problem, field=f"{change.field}.{error.field}") from error
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise Problem(422, str(error), field=change.field) from error
    if not present:
        _date(cluster, kind, obj, now, epoch)
    _ensure_readable(cluster, change)


def _date(cluster: Cluster, kind: Kind, obj: Any, now: float, epoch: float) -> None:
    """Sets the creation time of a new object that names none."""
    if obj.metadata.creation_timestamp is not None:
        return
    if kind is PODS:
        pod = cluster.pods[obj.metadata.uid]
        cluster.upsert_pod(replace(pod, created=epoch), now)
    elif kind in POD_GROUPS:
        cluster.upsert_group(replace(group_of(obj, kind.label), created=epoch))


def _ensure_readable(cluster: Cluster, change: Change) -> None:
    found: Any = None
    if change.kind in QUOTA_KINDS:
        found = cluster.quotas.get(change.namespace, {}).get(change.name)
    elif change.kind is QUEUES:
        found = cluster.queues.get(change.name)
    if found is not None and found.errors:
        field, _, problem = found.errors[0].partition(": ")
        raise Problem(422, problem, field=f"{change.field}.{field}")


def _present(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Json | None:  # noqa: PLR0911 - one for each
    """Returns the manifest of an existing object, as far as the rules know it."""
    if kind is PODS:
        pod: Pod | None = cluster.pod(namespace, name)
        return rendering.pod_manifest(pod) if pod else None
    if kind is NODES:
        node = cluster.table.node(name)
        return rendering.node_manifest(node) if node else None
    if kind in QUOTA_KINDS:
        quota = cluster.quotas.get(namespace, {}).get(name)
        return rendering.quota_manifest(quota) if quota else None
    if kind is QUEUES:
        queue = cluster.queues.get(name)
        return rendering.queue_manifest(queue) if queue else None
    if kind in POD_GROUPS:
        group = cluster.membership.groups.get((namespace, f"{kind.label}/{name}"))
        return rendering.group_manifest(group) if group else None
    if kind is NAMESPACES:
        known = cluster.membership.namespaces.get(name)
        return rendering.namespace_manifest(known) if known else None
    if kind is RESOURCE_QUOTAS:
        weight = cluster.membership.weights.get((namespace, name))
        return rendering.weight_manifest(namespace, name, weight) if weight else None
    if kind is JOBS:
        job = cluster.batch_jobs.get((namespace, name))
        return rendering.job_manifest(job, cluster.queued_jobs.get((namespace, name))) if job else None
    if kind is BUDGETS:
        budget = cluster.budgets.get((namespace, name))
        return rendering.budget_manifest(budget) if budget else None
    return None


def _title(change: Change) -> str:
    return f"{change.namespace}/{change.name}" if change.namespace else change.name
