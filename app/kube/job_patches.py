"""Starts and suspends a job by an exact patch: nothing else of it changes, and it changes only as it was seen."""

from typing import Any

from policy.objects.batch_job import BatchJob
from policy.objects.job_kind import JOB, JobKind
from policy.objects.pod import StandsFor


def path_of(kind: JobKind, namespace: str, name: str) -> str:
    """Returns the path of a job on the API server."""
    return f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}/{name}"


def start(job: StandsFor) -> list[dict[str, Any]]:
    """Returns a JSON patch that ends the suspension of this job. The server refuses it if the job has changed.

    The counts of pods of other kinds than Job are not compared: what has become larger meanwhile is asked anew.
    """
    suspend = _pointer(job.kind)
    size = [{"op": "test", "path": "/spec/parallelism", "value": job.parallelism}] if job.kind is JOB else []
    return [
        {"op": "test", "path": "/metadata/uid", "value": job.uid},
        {"op": "test", "path": suspend, "value": True},
        *size,
        {"op": "replace", "path": suspend, "value": False},
    ]


def suspension(job: BatchJob) -> list[dict[str, Any]]:
    """Returns a JSON patch that suspends this job. The server refuses it if it is suspended already.

    An object of another kind may lack the field, for which ``null`` stands.
    """
    suspend = _pointer(job.kind)
    return [
        {"op": "test", "path": "/metadata/uid", "value": job.uid},
        {"op": "test", "path": suspend, "value": None if job.suspend_unset else False},
        {"op": "add", "path": suspend, "value": True},
    ]


def _pointer(kind: JobKind) -> str:
    return "/" + "/".join(kind.suspend)
