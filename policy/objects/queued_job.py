"""Jobs of Kubernetes (``batch/v1``) that wait as a whole: suspended ones, which have no pods yet.

A Job that waits is represented by its stand-in: one pod that requests all that the pods of the Job request together.
The stand-in waits in the lines of the gates and counts in the ledger like any gated pod. No API server knows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from policy.objects.pod import JobMember, Pod, StandsFor
from policy.objects.pod_template import PodTemplate

Key = tuple[str, str]
"""Namespace and name of a Job."""
PREFIX = "job/"
"""How the name and the UID of a stand-in begin: no pod of an API server has such ones."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A Job that is suspended, or was until now.

    ``pod`` is one of its pods, as its template describes them. ``pods`` is how many of them it takes to run: its
    parallelism, or fewer if fewer are missing. ``marked``: it was suspended for us when it was created. ``created``,
    and ``since`` when it has been suspended without a break, in seconds since the epoch. ``template`` is what the
    API server adds something to when it creates the pod; None if it adds nothing.
    """

    namespace: str
    name: str
    uid: str
    pod: Pod
    parallelism: int
    pods: int
    suspended: bool
    marked: bool = False
    created: float = 0.0
    since: float = 0.0
    template: PodTemplate | None = None

    @property
    def key(self) -> Key:
        """Its key, which no other existing Job has."""
        return self.namespace, self.name


def uid_of_stand_in(uid: str) -> str:
    """Returns the UID of the stand-in of a Job with this UID."""
    return f"{PREFIX}{uid}"


def stand_in(job: QueuedJob, pods: int) -> Pod:
    """Returns the pod that waits for so many pods of a Job. It is at its gate if the Job is suspended."""
    return replace(
        job.pod,
        uid=uid_of_stand_in(job.uid),
        namespace=job.namespace,
        name=f"{PREFIX}{job.name}",
        request={resource: pods * amount for resource, amount in job.pod.request.items()},
        created=job.created,
        version=0,
        group="",
        gated=False,
        gate=0 if job.suspended else -1,
        owner="",
        job=None,
        stands_for=StandsFor(job.name, job.uid, job.parallelism, pods),
    )


def pods_of(job: QueuedJob) -> Iterator[Pod]:
    """Yields the pods that a Job makes when it is started, as its template describes them."""
    member = JobMember(job.uid, job.name)
    for number in range(job.pods):
        yield replace(job.pod, uid=f"{job.uid}/{number}", name=f"{job.name}-{number}", owner="Job", job=member)
