"""Jobs that wait as a whole: suspended ones, which have no pods yet. Most are those of Kubernetes (``batch/v1``).

A job that waits is represented by its stand-in: one pod that requests all that the pods of the job request together.
The stand-in waits in the lines of the gates and counts in the ledger like any gated pod. No API server knows it.

An elastic Job may start with fewer pods than its user asks for. While it runs with fewer, its stand-in waits for the
others: then the Job grows.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from policy.objects.job_kind import JOB, JobKind
from policy.objects.pod import JobMember, Pod, StandsFor
from policy.objects.pod_template import PodTemplate
from policy.objects.resources import Resources, add
from policy.objects.run_time import of_all

Key = tuple[str, str]
"""Namespace and name of a Job; for a job of another kind, the lower-case kind and a slash stand before the name."""
PREFIX = "job/"
"""How the name of the stand-in of a Job and the UID of all stand-ins begin: no pod of an API server has such ones."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of a job that are alike: one of them as its template describes it, and how many of them it takes to run.

    ``template`` is what the API server adds something to when it creates the pod; None if it adds nothing. ``together``
    is what these pods take once for all of them: devices that they share.
    """

    pod: Pod
    count: int
    template: PodTemplate | None = None
    together: Resources = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that is suspended, or was until now, or that is elastic.

    ``pod_sets`` are the pods that it takes to run, by template. ``parallelism`` is that of a Job, which may be more
    than it still takes; it is 0 for jobs of other kinds. ``marked``: it was suspended for us when it was created.
    ``awaits_pods``: it is suspended no more, and its controller has not begun to make pods. ``created``, and ``since``
    when it has been suspended without a break, in seconds since the epoch.

    ``least`` is with how few pods an elastic Job may start; 0 for any other. An elastic Job has one pod set, and takes
    as many pods as its user asks for: ``asked`` is that parallelism. ``lacking`` is how many more pods it could use if
    it runs.
    """

    namespace: str
    name: str
    uid: str
    pod_sets: tuple[PodSet, ...]
    parallelism: int
    suspended: bool
    marked: bool = False
    awaits_pods: bool = False
    created: float = 0.0
    since: float = 0.0
    kind: JobKind = JOB
    least: int = 0
    asked: int = 0
    lacking: int = 0

    @property
    def key(self) -> Key:
        """Its key, which no other existing job has."""
        return key_of(self.kind, self.namespace, self.name)

    @property
    def pods(self) -> int:
        """How many pods it takes to run."""
        return sum(each.count for each in self.pod_sets)


def key_of(kind: JobKind, namespace: str, name: str) -> Key:
    """Returns the key of a job of a kind."""
    return namespace, name if kind == JOB else f"{kind.name.lower()}/{name}"


def name_of_stand_in(kind: JobKind, name: str) -> str:
    """Returns the name of the stand-in of a job of a kind, ``job/train``."""
    return f"{kind.name.lower()}/{name}"


def uid_of_stand_in(uid: str) -> str:
    """Returns the UID of the stand-in of a job with this UID."""
    return f"{PREFIX}{uid}"


def uid_of_member(stand_in: str, number: int) -> str:
    """Returns the UID of a member of a Job that waits as a whole: one of the pods that it is to have."""
    return f"{stand_in}/{number}"


def is_member(uid: str) -> bool:
    """Whether a UID is that of a member of a Job that waits as a whole, not of a pod or of a stand-in."""
    return uid.startswith(PREFIX) and uid.count("/") > 1


def stand_in_of(uid: str) -> str:
    """Returns the UID of the stand-in that represents the Job of this member. Empty for the UID of a pod."""
    return uid.rpartition("/")[0]


def number_of_member(uid: str) -> int:
    """Returns the number of such a member."""
    return int(uid.rpartition("/")[2])


def waiting(job: QueuedJob) -> list[int]:
    """Returns for how many pods of each pod set a job waits: all of them, or those by which an elastic Job may grow."""
    return [each.count for each in job.pod_sets] if job.suspended or not job.least else [job.lacking]


def stand_in(job: QueuedJob, counts: Sequence[int], *, at_gate: bool, begins: bool) -> Pod:
    """Returns the pod that waits for so many pods of each pod set, at its gate until these are granted.

    It has the highest priority of these pods, as members of a group are ordered by the highest one. The first pod of a
    set that comes takes over what the set shares. An elastic Job ``begins`` to run before that.
    """
    request: dict[str, int] = {}
    for each, count in zip(job.pod_sets, counts, strict=True):
        if count:
            add(request, {resource: count * amount for resource, amount in each.pod.request.items()})
        if count and begins if job.least else count == each.count:
            add(request, each.together)
    pods = [each.pod for each in job.pod_sets]
    first = max(pods, key=lambda pod: pod.priority)
    return replace(
        first,
        uid=uid_of_stand_in(job.uid),
        namespace=job.namespace,
        name=name_of_stand_in(job.kind, job.name),
        request=request,
        needs=None,
        created=job.created,
        version=0,
        group="",
        gated=False,
        gate=0 if at_gate else -1,
        owner="",
        job=None,
        preemptible=all(pod.preemptible for pod in pods),
        may_preempt=all(pod.may_preempt for pod in pods),
        stands_for=_stands_for(job, sum(counts)),
        deadline=of_all(pod.deadline for pod in pods),
        run_time=of_all(pod.run_time for pod in pods),
    )


def _stands_for(job: QueuedJob, pods: int) -> StandsFor:
    if not job.least:
        return StandsFor(job.name, job.uid, job.parallelism, pods, job.kind)
    grows = not job.suspended
    least = min(pods, 1 if grows else job.least)
    granted = job.asked if [pods] >= waiting(job) else pods + grows * job.parallelism
    return StandsFor(job.name, job.uid, job.parallelism, pods, job.kind, least, job.asked, granted, grows)


def started(job: QueuedJob, by: StandsFor) -> QueuedJob:
    """Returns a job as it is once it was started, or has grown, by these pods."""
    if not job.least:
        return replace(job, suspended=False)
    return replace(job, suspended=False, parallelism=by.granted, lacking=sum(waiting(job)) - by.pods)


def shapes_of(job: QueuedJob, pods: int) -> Hashable:
    """Returns a value that is equal for jobs whose pods fit the same nodes in the same numbers.

    ``pods``: of which an elastic Job may have fewer, if it waits for so many.
    """
    shapes = tuple((frozenset(each.pod.request.items()), each.pod.constraints, each.count) for each in job.pod_sets)
    return shapes if not job.least else (shapes, _stands_for(job, pods).least, pods, job.suspended)


def set_of(job: QueuedJob, pod: Pod, missing: Sequence[int]) -> int:
    """Returns the index of the pod set to which a pod belongs that has come, by what it requests.

    It is the first that still misses pods, if none of those that do requests the same: a webhook may have changed it.
    """
    short = [at for at, number in enumerate(missing) if number > 0]
    alike = (at for at in short if job.pod_sets[at].pod.request == pod.request)
    return next(alike, short[0] if short else 0)


def pods_of(job: QueuedJob, counts: Sequence[int], first: int) -> Iterator[Pod]:
    """Yields so many pods of each pod set, as the templates of a job describe them, numbered from ``first``."""
    member = JobMember(job.uid, job.name) if job.kind == JOB else None
    controller = "" if job.kind == JOB else job.uid
    pods = (each.pod for each, count in zip(job.pod_sets, counts, strict=True) for _ in range(count))
    for number, pod in enumerate(pods, start=first):
        name = f"{job.name}-{number}"
        uid = f"{job.uid}/{number}"
        yield replace(pod, uid=uid, name=name, owner=job.kind.name, job=member, controller=controller)
