"""The kinds of jobs that may wait as a whole: that of Kubernetes, and those of the setting ``jobs.kinds``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs, as far as it takes to name one and to write to it.

    ``suspend`` is the path of the field that says whether a job is suspended. ``pod_label`` is the label in which pods
    have the name of their job, empty if they have none.
    """

    name: str
    api_version: str
    plural: str
    suspend: tuple[str, ...]
    pod_label: str = ""


JOB = JobKind("Job", "batch/v1", "jobs", ("spec", "suspend"))
