"""Decides how a Job is changed when it is written: the policies of ``manifests/jobs/queued`` as functions.

Nobody asks about changes that are Quotaward's: the webhook's configuration leaves them out.
"""

from app.kube.job_patches import ASKED, Patch
from app.store.heeded import QUEUED
from app.store.jobs import JobObject, JobSpec, has_ended, is_marked, is_ours

_LABELS = "/metadata/labels"
_LABEL = f"{_LABELS}/{QUEUED.replace('/', '~1')}"


def patch_of(job: JobObject, old: JobObject | None) -> Patch:
    """Returns the patch of a Job that is created (``old`` is None) or changed.

    The Job as it was decides: a change may make up the Job's owner or its status. Nor has a new Job ended, whatever it
    says.
    """
    if job.spec is None:
        return []  # the API server refuses it
    if old is None:
        return _suspend(job) if is_ours(job) else []
    if not is_ours(old) or has_ended(old):
        return []
    patch = _keep_granted(job, old)
    if _is_suspended(old) and not _is_suspended(job):
        patch += _suspend(job)
    return patch


def _suspend(job: JobObject) -> Patch:
    """Returns a patch that suspends a Job, and says by a label that this is for Quotaward."""
    patch: Patch = []
    if not _is_suspended(job):
        patch.append({"op": "add", "path": "/spec/suspend", "value": True})
    if job.metadata.labels is None:
        patch.append({"op": "add", "path": _LABELS, "value": {QUEUED: "true"}})
    elif not is_marked(job):
        patch.append({"op": "add", "path": _LABEL, "value": "true"})
    return patch


def _keep_granted(job: JobObject, old: JobObject) -> Patch:
    """Returns a patch by which an elastic Job that runs keeps its parallelism if that is raised.

    An annotation says what its user asks for. The completions of an Indexed Job change only with its parallelism.
    """
    spec, before = job.spec or JobSpec(), old.spec or JobSpec()
    granted, asked = _parallelism(before), _parallelism(spec)
    is_elastic = job.metadata.annotations is not None and job.metadata.annotations.min_parallelism is not None
    has_grant = old.metadata.annotations is not None and old.metadata.annotations.parallelism is not None
    if granted == asked or spec.completions != before.completions or not (is_elastic and has_grant):
        return []
    patch: Patch = [{"op": "add", "path": ASKED, "value": str(asked)}]
    if asked > granted and not (_is_suspended(old) or _is_suspended(job)):
        patch.append({"op": "add", "path": "/spec/parallelism", "value": granted})
    return patch


def _is_suspended(job: JobObject) -> bool:
    return job.spec is not None and job.spec.suspend is True


def _parallelism(spec: JobSpec) -> int:
    return 1 if spec.parallelism is None else spec.parallelism
