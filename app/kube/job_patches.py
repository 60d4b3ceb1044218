"""Starts, enlarges and suspends a job by an exact patch: nothing else changes, and it changes only as it was seen.

The patches of elastic Jobs write the parallelism, which belongs to the user. ``disowning`` makes good for that: with a
field that another manager has changed, each server-side apply of the user's manifest would end in a conflict.
"""

from collections.abc import Sequence
from typing import Any

from app.store.heeded import PARALLELISM
from policy.objects.batch_job import BatchJob
from policy.objects.job_kind import JOB, JobKind
from policy.objects.pod import StandsFor

MANAGER = "quotaward"
"""The field manager of these patches."""
ASKED = f"/metadata/annotations/{PARALLELISM.replace('/', '~1')}"

Patch = list[dict[str, Any]]


def path_of(kind: JobKind, namespace: str, name: str) -> str:
    """Returns the path of a job on the API server."""
    return f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}/{name}"


def start(job: StandsFor) -> Patch:
    """Returns a JSON patch that ends the suspension of this job, or lets it grow. The server refuses it if it changed.

    Of an elastic Job it sets the parallelism that was granted, and notes the one that its user asks for. The counts of
    pods of other kinds than Job are not compared: what has become larger meanwhile is asked anew.
    """
    patch = _as_seen(job, suspended=not job.grows)
    if job.kind is JOB:
        patch.append(_same_parallelism(job))
    if not job.grows:
        patch.append({"op": "replace", "path": _pointer(job.kind), "value": False})
    if job.least:
        patch += _parallelism(job.granted, job.asked)
    return patch


def suspension(job: BatchJob) -> Patch:
    """Returns a JSON patch that suspends this job. The server refuses it if it is suspended already.

    An object of another kind may lack the field, for which ``null`` stands. An elastic Job then has the parallelism
    again that its user asks for.
    """
    patch = _as_seen(job, suspended=None if job.suspend_unset else False)
    patch.append({"op": "add", "path": _pointer(job.kind), "value": True})
    if job.least:
        patch += [_same_parallelism(job), *_parallelism(job.asked, job.asked)]
    return patch


def lowering(job: BatchJob, to: int) -> Patch:
    """Returns a JSON patch that lowers the parallelism of a Job. The server refuses it if the Job has changed."""
    return [*_as_seen(job, suspended=False), _same_parallelism(job), *_parallelism(to, job.asked)]


def is_started(job: StandsFor) -> Patch:
    """Returns tests that a job is as ``start`` leaves it. They change nothing."""
    return _is_so(job, suspended=False, parallelism=job.granted if job.least else None)


def is_suspended(job: BatchJob) -> Patch:
    """Returns tests that a job is as ``suspension`` leaves it."""
    return _is_so(job, suspended=True, parallelism=job.asked if job.least else None)


def is_lowered(job: BatchJob, to: int) -> Patch:
    """Returns tests that a Job is as ``lowering`` leaves it."""
    return _is_so(job, suspended=False, parallelism=to)


def disowning(managed_fields: Sequence[dict[str, Any]]) -> Patch:
    """Returns a JSON patch by which no field of an object is ours any more; empty if none is."""
    at = [number for number, entry in enumerate(managed_fields) if entry.get("manager") == MANAGER]
    tests = [{"op": "test", "path": f"/metadata/managedFields/{number}/manager", "value": MANAGER} for number in at]
    return tests + [{"op": "remove", "path": f"/metadata/managedFields/{number}"} for number in reversed(at)]


def _as_seen(job: StandsFor | BatchJob, *, suspended: bool | None) -> Patch:
    """Returns tests that this is the same job, and whether it is suspended as it was seen; None: it says nothing."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": job.uid},
        {"op": "test", "path": _pointer(job.kind), "value": suspended},
    ]


def _is_so(job: StandsFor | BatchJob, *, suspended: bool, parallelism: int | None) -> Patch:
    return _as_seen(job, suspended=suspended) + ([] if parallelism is None else [_parallelism_is(parallelism)])


def _same_parallelism(job: StandsFor | BatchJob) -> dict[str, Any]:
    return _parallelism_is(job.parallelism)


def _parallelism_is(number: int) -> dict[str, Any]:
    return {"op": "test", "path": "/spec/parallelism", "value": number}


def _pointer(kind: JobKind) -> str:
    return "/" + "/".join(kind.suspend)


def _parallelism(granted: int, asked: int) -> Patch:
    return [
        {"op": "replace", "path": "/spec/parallelism", "value": granted},
        {"op": "add", "path": ASKED, "value": str(asked)},
    ]
