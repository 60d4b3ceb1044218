"""Kubernetes Jobs that their deadline ends although their pods still wait."""

from app.times import rfc3339
from policy.cluster.cluster import Cluster
from policy.explain.next_steps import NextStep
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod

JOB_ENDS = "job-ends"
"""A step that is always mentioned: it comes, whatever happens to the pod before."""


def ending(job: BatchJob) -> str:
    """Says when a Job is ended."""
    at = rfc3339(job.ends_at)
    return f"its Job {job.title} is ended at {at} by activeDeadlineSeconds, whether its pods run or not"


def end_of_job(cluster: Cluster, pod: Pod, epoch: float) -> list[NextStep]:
    """Returns the next step of a waiting pod's Job; none without a deadline. ``epoch`` is now."""
    job = cluster.batch_jobs.of(pod)
    if job is None or not job.ends_at:
        return []
    return [NextStep(JOB_ENDS, ending(job), max(0.0, job.ends_at - epoch))]
