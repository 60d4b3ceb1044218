"""Queues: the fields that are read, and the translation to the queue of the rules."""

from typing import Any

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata, max_run_time_of, min_run_time_of, run_time_of
from app.store.quantities import limits_of
from policy.objects.queue import LARGEST_WEIGHT, ROOT, Queue


class QueueStatus(Struct, gc=False):
    """The fields that are read of a queue's status."""

    state: str | None = None


class QueueObject(Struct, gc=False):
    """A Queue. Its spec is read field by field: an error names the bad field, and the queue is then closed."""

    metadata: Metadata
    spec: Any = None
    status: QueueStatus | None = None


def queue_of(obj: QueueObject) -> Queue:
    """Returns the queue as the rules see it. Its ``errors`` name the fields that cannot be read."""
    meta, spec = obj.metadata, {} if obj.spec is None else obj.spec
    state = (obj.status.state if obj.status else None) or "Open"
    errors: list[str] = []
    if not isinstance(spec, dict):
        errors.append(f"spec: must be a map, not {str(spec)[:80]!r}")
        spec = {}
    guarantee = spec.get("guarantee")
    if guarantee is not None and not isinstance(guarantee, dict):
        errors.append("spec.guarantee: must be a map with resource")
        guarantee = None
    capability = limits_of(spec.get("capability"), "spec.capability", errors)
    guaranteed = limits_of((guarantee or {}).get("resource"), "spec.guarantee.resource", errors)
    weight = _whole(spec.get("weight"), "spec.weight", errors)
    priority = _whole(spec.get("priority"), "spec.priority", errors)
    parent = spec.get("parent")
    if parent is not None and not isinstance(parent, str):
        errors.append("spec.parent: must be the name of a queue")
    reclaimable = spec.get("reclaimable")
    if reclaimable is not None and not isinstance(reclaimable, bool):
        errors.append("spec.reclaimable: must be true or false")
    shortest, longest, uid = min_run_time_of(meta.annotations), max_run_time_of(meta.annotations), meta.uid or ""
    if errors:
        problems = tuple(errors)
        return Queue(
            meta.name,
            state=state,
            errors=problems,
            readable=False,
            uid=uid,
            min_run_time=shortest,
            max_run_time=longest,
        )
    return Queue(
        meta.name,
        weight=min(max(1, weight), LARGEST_WEIGHT),
        capability=capability,
        guarantee=guaranteed,
        reclaimable=reclaimable is not False,
        priority=priority,
        state=state,
        notes=(("spec.deserved",) if spec.get("deserved") else ())
        + (("spec.weight (below 1, so 1)",) if weight < 1 and spec.get("weight") is not None else ()),
        uid=uid,
        parent=parent or ROOT,
        run_time=run_time_of(meta.annotations),
        min_run_time=shortest,
        max_run_time=longest,
    )


def _whole(given: Any, path: str, errors: list[str]) -> int:
    """Returns a whole number, cut to 32 bits; 0 where there is none. Appends an error if it is something else."""
    if given is None:
        return 0
    if isinstance(given, bool) or not isinstance(given, int):
        errors.append(f"{path}: must be a whole number")
        return 0
    return max(-LARGEST_WEIGHT, min(given, LARGEST_WEIGHT))


QUEUES = Kind(
    plural="queues",
    api_version="scheduling.volcano.sh/v1beta1",
    name="Queue",
    decoder=msgspec.json.Decoder(QueueObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_queue(queue_of(obj)),
    delete=lambda cluster, key: cluster.delete_queue(str(key)),
    known=lambda cluster: cluster.queues,
    namespaced=False,
    optional=True,
    binds=True,
)
