"""Jobs of the kinds in the table of the settings: what is read of them is made from a row of that table.

Only the fields that the row names are decoded. Templates are decoded only of jobs that wait as a whole.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import msgspec
from msgspec import Raw, Struct

from app.job_kinds import CONDITIONS, EACH, Row, Template
from app.store.heeded import QUEUED
from app.store.jobs import JobCondition, pod_set_of, suspended_since
from app.store.kind import Key, Kind
from app.store.metadata import Metadata, controller_ref, is_custom, seconds
from app.store.placement import NULL
from app.store.quantities import InvalidObject
from policy.cluster.cluster import Cluster
from policy.objects.batch_job import BatchJob
from policy.objects.job_kind import JobKind
from policy.objects.pod import StandsFor
from policy.objects.queued_job import PodSet, QueuedJob, key_of

MOST_TEMPLATES = 16
"""The most different templates of one job: a tenant chooses how many there are, and room is asked for each."""
LARGEST_COUNT = 2**31 - 1
"""The most pods of one template that are counted, as many as a Job of Kubernetes may have."""

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions raised for a template that is none."""

_Tree = dict[str, Any]
"""Fields by name: a type, or the tree of the fields within; the tree of items stands under ``EACH``."""


def kind_of(row: Row) -> Kind:
    """Returns the row of the table of kinds for jobs of this kind."""
    return JobReader(row).kind


class JobReader:
    """Reads jobs of one kind. ``structure`` is that of what is decoded."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self.structure = _structure(row)
        self.job_kind = JobKind(
            row.kind, f"{row.group}/{row.version}", row.plural, tuple(row.suspend.split(".")), row.pod_label
        )
        self.kind = Kind(
            plural=row.plural,
            api_version=self.job_kind.api_version,
            name=row.kind,
            decoder=msgspec.json.Decoder(self.structure),
            key=lambda meta: (meta.namespace or "", meta.name),
            upsert=self._upsert,
            delete=self._delete,
            known=lambda cluster: cluster.batch_jobs.others.keys_of(self.job_kind),
            optional=True,
            advisory=True,
            owns_pods=True,
            title=f"{row.plural}.{row.group}",
        )

    def _upsert(self, cluster: Cluster, obj: Any, now: float) -> None:
        job = self._job(obj)
        cluster.upsert_other_job(job)
        cluster.queued_jobs.owner_seen(job, now)
        suspended = _at(obj, self._row.suspend) is True
        key = key_of(self.job_kind, job.namespace, job.name)
        if not (suspended or key in cluster.queued_jobs):
            return
        if not self._may_be_started(obj, job):
            cluster.queued_jobs.delete(key)
            return
        try:
            queued = self._queued(obj, suspended=suspended)
        except InvalidObject:
            cluster.queued_jobs.delete(key)  # else it would be started for what it was before
            raise
        cluster.queued_jobs.upsert(queued, now)

    def suspended(self, obj: Any) -> StandsFor | None:
        """Returns a job that is suspended, if nobody else starts it."""
        job = self._job(obj)
        if _at(obj, self._row.suspend) is not True or not self._may_be_started(obj, job):
            return None
        return StandsFor(job.name, job.uid, 0, 0, self.job_kind)

    def _may_be_started(self, obj: Any, job: BatchJob) -> bool:
        return job.ours and not job.ended and obj.metadata.deletion_timestamp is None

    def _delete(self, cluster: Cluster, key: Key) -> None:
        cluster.delete_other_job(self.job_kind, (key[0], key[1]))
        cluster.queued_jobs.gone(key_of(self.job_kind, key[0], key[1]))

    def _job(self, obj: Any) -> BatchJob:
        """Returns a job as the owner of pods."""
        meta: Metadata = obj.metadata
        manager, owner = self._row.managed_by, controller_ref(meta)
        managed_by = _at(obj, manager.field) if manager is not None else None
        bears_suspension = not self._row.only_if or _at(obj, self._row.only_if) is True
        bears_suspension &= not self._row.unless_set or _at(obj, self._row.unless_set) in (None, NULL)
        suspend, parent = _at(obj, self._row.suspend), self._row.suspend.rpartition(".")[0]
        return BatchJob(
            meta.namespace or "",
            meta.name,
            meta.uid or "",
            ended=self._has_ended(obj),
            ours=owner is None and bears_suspension and managed_by in (None, "", manager.own if manager else None),
            controller=owner.uid if owner is not None and is_custom(owner) else "",
            kind=self.job_kind,
            can_be_suspended=(
                suspend is not True and (not parent or _at(obj, parent) is not None) and self._makes_pods(obj)
            ),
            suspend_unset=suspend is None,
        )

    def _makes_pods(self, obj: Any) -> bool:
        """Whether a job has templates of its own: a RayJob may use the pods of a RayCluster that is not its own."""
        return any(True for template in self._row.templates for _ in _templates(obj, template))

    def _has_ended(self, obj: Any) -> bool:
        end = self._row.end
        if end.field and _at(obj, end.field) in end.values:
            return True
        return any(each.type in end.conditions and each.status == "True" for each in _at(obj, CONDITIONS) or ())

    def _queued(self, obj: Any, *, suspended: bool) -> QueuedJob:
        """Returns a job as one that waits as a whole. Raises InvalidObject."""
        meta: Metadata = obj.metadata
        created = seconds(meta.creation_timestamp)
        return QueuedJob(
            namespace=meta.namespace or "",
            name=meta.name,
            uid=meta.uid or "",
            pod_sets=tuple(self._pod_sets(obj)),
            parallelism=0,
            suspended=suspended,
            marked=(meta.labels or {}).get(QUEUED) == "true",
            created=created,
            since=suspended_since(_at(obj, CONDITIONS)) or created,
            kind=self.job_kind,
        )

    def _pod_sets(self, obj: Any) -> Iterator[PodSet]:
        """Yields pods by template; those of equal ones together. Raises InvalidObject.

        Of these kinds, no API server need have checked that a template is one.
        """
        counts: dict[bytes, int] = {}
        for template in self._row.templates:
            for raw, count in _templates(obj, template):
                counts[raw] = min(counts.get(raw, 0) + count, LARGEST_COUNT)
                if len(counts) > MOST_TEMPLATES:
                    raise InvalidObject(template.path, f"there are more than {MOST_TEMPLATES} different templates")
        for raw, count in counts.items():
            try:
                yield pod_set_of(obj.metadata, Raw(raw), count)
            except UNDECODABLE as error:
                raise InvalidObject(self._row.templates[0].path, f"is no template of pods: {error}") from error


def _templates(obj: Any, template: Template) -> Iterator[tuple[bytes, int]]:
    """Yields each template that an object has at a path, with its count."""
    path, each, of_item = template.path.partition(f"{EACH}.")
    if not each:
        yield from _one(obj, path, [_at(obj, count) for count in template.counts])
        return
    items = _at(obj, path) or ()
    for item in items.values() if isinstance(items, dict) else items:
        prefix = f"{path}{each}"
        counts = [
            _at(item, count.removeprefix(prefix)) if count.startswith(prefix) else _at(obj, count)
            for count in template.counts
        ]
        yield from _one(item, of_item, counts)


def _one(item: Any, path: str, counts: list[int | None]) -> Iterator[tuple[bytes, int]]:
    raw = _at(item, path)
    if raw is not None and raw != NULL:
        count = prod(1 if count is None else min(max(0, count), LARGEST_COUNT) for count in counts)
        yield bytes(raw), min(count, LARGEST_COUNT)


def _at(obj: Any, path: str) -> Any:
    """Returns the value at a path without items; None if there is none."""
    for name in path.split("."):
        if obj is None:
            return None
        obj = getattr(obj, f"f_{name}", None)
    return obj


def _structure(row: Row) -> type[Struct]:
    """Returns a structure that has the metadata, the conditions and the fields that a row names."""
    tree: _Tree = {}
    if row.end.conditions:
        _put(tree, CONDITIONS, list[JobCondition] | None)
    _put(tree, row.suspend, bool | None)
    for template in row.templates:
        _put(tree, template.path, Raw)
        for count in template.counts:
            _put(tree, count, int | None)
    if row.end.field:
        _put(tree, row.end.field, str | None)
    if row.only_if:
        _put(tree, row.only_if, bool | None)
    if row.unless_set:
        _put(tree, row.unless_set, Raw)
    if row.managed_by is not None:
        _put(tree, row.managed_by.field, str | None)
    return _struct(row.kind, tree, [("metadata", Metadata)])


def _put(tree: _Tree, path: str, type_: Any) -> None:
    *parents, last = path.replace(EACH, f".{EACH}").split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
    tree[last] = type_


def _struct(name: str, tree: _Tree, more: list[Any] | None = None) -> type[Struct]:
    fields: list[Any] = []
    for field, within in tree.items():
        type_, default = within, None
        if within is Raw:
            default = NULL
        elif isinstance(within, dict):
            type_ = _struct(f"{name}_{field}", within) if EACH not in within else None
            type_ = type_ | None if type_ is not None else _items(f"{name}_{field}", within[EACH])
        fields.append((f"f_{field}", type_, default))
    names = {f"f_{field}": field for field in tree}
    return msgspec.defstruct(name, [*(more or ()), *fields], rename=names, gc=False)


def _items(name: str, within: _Tree) -> Any:
    item = _struct(name, within)
    return list[item] | dict[str, item] | None  # type: ignore[valid-type]
