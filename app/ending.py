"""When a Job of Kubernetes is ended by its deadline, though its pods still wait."""

from datetime import UTC, datetime

from policy.cluster.cluster import Cluster
from policy.explain.next_steps import Prospect
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod

JOB_ENDS = "job-ends"
"""The step that is told of in any case: it comes, whatever becomes of the pod before."""


def ending(job: BatchJob) -> str:
    """When a Job is ended, for people."""
    at = datetime.fromtimestamp(job.ends_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"its Job {job.title} is ended at {at} by activeDeadlineSeconds, whether its pods run or not"


def end_of_job(cluster: Cluster, pod: Pod, epoch: float) -> list[Prospect]:
    """What comes of a waiting pod's Job; nothing where it has no deadline. ``epoch`` is now."""
    job = cluster.batch_jobs.of(pod)
    if job is None or not job.ends_at:
        return []
    return [Prospect(JOB_ENDS, ending(job), max(0.0, job.ends_at - epoch))]
