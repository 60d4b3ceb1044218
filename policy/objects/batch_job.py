"""Jobs of Kubernetes (``batch/v1``): whether an eviction makes one fail, and when one ends whatever its pods do.

Kubernetes counts an evicted pod as failed, unless a rule of the Job's podFailurePolicy says otherwise. With one failure
too many the Job fails, and all of its pods are deleted. (kube-controller-manager 1.37, pkg/controller/job.)

Jobs of other kinds are known here, too, but only as owners: which pods are theirs, and whether they can be suspended.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from policy.objects.job_kind import JOB, JobKind
from policy.objects.other_jobs import LONGEST_CHAIN, OtherJobs, OwnedJobs
from policy.objects.owned_pods import OwnedPods
from policy.objects.pod import Pod

DEFAULT_BACKOFF_LIMIT = 6
UNLIMITED = 2**31 - 1
"""The backoffLimit of a Job that has a limit for each index and names no other."""
IGNORE, COUNT, FAIL_INDEX, FAIL_JOB = "Ignore", "Count", "FailIndex", "FailJob"
"""The actions of a podFailurePolicy rule for a pod that has failed, in order of severity."""
_WORSE = {action: number for number, action in enumerate((IGNORE, COUNT, FAIL_INDEX, FAIL_JOB))}
EXIT_CODES = (137, 143)
"""The exit codes of an evicted pod's containers: killed, or ended by SIGTERM. Which of these cannot be known."""
DISRUPTED = ("DisruptionTarget", "True")
"""The condition that an evicted pod has."""

Key = tuple[str, str]
"""Namespace and name of a Job."""


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A rule of a podFailurePolicy, by exit codes (all but these, if ``negated``) or by conditions of the pod."""

    action: str
    codes: tuple[int, ...] | None = None
    negated: bool = False
    conditions: tuple[tuple[str, str], ...] = ()

    def matches(self, code: int) -> bool:
        """Whether it is about an evicted pod whose containers have exited with this code."""
        if self.codes is None:
            return DISRUPTED in self.conditions
        return (code in self.codes) != self.negated


def response(rules: Iterable[FailureRule]) -> str:
    """Returns the action of these rules for an evicted pod: the first match counts, and the worst of all exit codes."""
    rules = list(rules)
    actions = (next((rule.action for rule in rules if rule.matches(code)), COUNT) for code in EXIT_CODES)
    return max((action if action in _WORSE else COUNT for action in actions), key=_WORSE.__getitem__)


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A Job. ``response`` is the action of its podFailurePolicy for an evicted pod.

    ``failed`` pods are counted. Those whose UIDs are ``uncounted`` will be, though they may be gone. ``ended``: it has
    failed or succeeded, or is about to. ``started`` in seconds since the epoch, 0 if it has not; ``deadline`` in
    seconds from then, 0 if there is none. ``run_time`` is how long its annotation says that each of its pods runs (see
    policy.objects.run_time). ``ours``: no other controller decides when it runs. ``controller`` is the
    UID of its controller if that is a custom resource. ``can_be_suspended`` is false for a job of another kind that is
    suspended, or has nowhere to say it. ``suspend_unset``: it says nothing of that yet. ``problem``: what is wrong with
    its annotation about its minimum, for people; empty if nothing is.

    An elastic Job ``runs`` so many pods at most, none if it is suspended, and ``least`` of them are enough; that is 0
    for any other. ``asked`` is the parallelism that its user asks for.
    """

    namespace: str
    name: str
    uid: str
    backoff_limit: int = DEFAULT_BACKOFF_LIMIT
    limit_per_index: int | None = None
    rules: tuple[FailureRule, ...] = ()
    response: str = COUNT
    failed: int = 0
    uncounted: frozenset[str] = frozenset()
    ended: bool = False
    ours: bool = False
    deadline: int = 0
    started: float = 0.0
    controller: str = ""
    kind: JobKind = JOB
    can_be_suspended: bool = True
    suspend_unset: bool = False
    parallelism: int = 1
    runs: int = 0
    least: int = 0
    asked: int = 0
    problem: str = ""
    run_time: int = 0

    @property
    def key(self) -> Key:
        """Its key, which no other existing Job has."""
        return self.namespace, self.name

    @property
    def title(self) -> str:
        """Its name for people."""
        return f"{self.namespace}/{self.name}"

    @property
    def object(self) -> str:
        """Its kind and name for people, ``Job a/train``."""
        return f"{self.kind.name} {self.title}"

    @property
    def spare(self) -> int:
        """How many pods may be taken of it, one by one, until it is taken back as a whole."""
        return self.runs - self.least if self.least else 0

    @property
    def ends_at(self) -> float:
        """The time at which it is ended, whatever its pods do, in seconds since the epoch; 0 if that is not known."""
        return self.started + self.deadline if self.deadline and self.started and not self.ended else 0.0

    @property
    def fails_at_once(self) -> bool:
        """Whether one eviction fails it, though none of its pods has failed."""
        if self.response in (FAIL_INDEX, FAIL_JOB):
            return True
        return self.response == COUNT and 0 in (self.backoff_limit, self.limit_per_index)

    def is_fatal(self, pod: Pod) -> bool:
        """Whether the eviction of this very pod makes it fail, now or later, however many failures it tolerates."""
        if self.response in (FAIL_INDEX, FAIL_JOB):
            return True
        used_up = self.limit_per_index is not None and pod.job is not None and pod.job.failures >= self.limit_per_index
        return used_up and self.response == COUNT

    def after_eviction(self) -> "BatchJob":
        """Returns the Job as it is once one more pod of it has been evicted."""
        failed = self.failed + (self.response != IGNORE)
        ended = self.ended or self.response == FAIL_JOB or failed > self.backoff_limit
        return replace(self, failed=failed, ended=ended)


class BatchJobs:
    """All known Jobs, and which of their pods have failed or are terminating without being counted yet.

    ``queued_in`` are the namespaces whose Jobs wait, and are taken back, as a whole. ``stayed`` are UIDs of pods that
    have stayed after their jobs were suspended: they are not taken back with these. ``pods`` are those of each owner.
    Without any Job there is no right to read them, or nobody has one: then no pod counts as a Job's.
    """

    def __init__(self) -> None:
        self._jobs: dict[Key, BatchJob] = {}
        self.others = OtherJobs()
        self.pods = OwnedPods()
        self._owned = OwnedJobs()
        self._failing: dict[tuple[str, str], set[str]] = {}
        self.queued_in: set[str] = set()
        self.stayed: set[str] = set()

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[BatchJob]:
        return iter(self._jobs.values())

    def keys(self) -> Iterable[Key]:
        """Returns namespaces and names."""
        return self._jobs.keys()

    def get(self, key: Key) -> BatchJob | None:
        """Returns the Job of this namespace and name."""
        return self._jobs.get(key)

    def of(self, pod: Pod) -> BatchJob | None:
        """Returns the Job that a pod belongs to; None if it names none, or one that is not known.

        A pod may name any Job, so the UID has to be that of the Job of this name in its own namespace.
        """
        if pod.job is None:
            return None
        job = self._jobs.get((pod.namespace, pod.job.name))
        return job if job is not None and job.uid == pod.job.uid else None

    def owner_of(self, pod: Pod, *, by_label: bool = False) -> BatchJob | None:
        """Returns the job of another kind that a pod belongs to, through its controllers; None if there is none.

        Of several that own one another it is the last, which decides. ``by_label``: where the controller of the pod is
        not known, a label counts that whoever makes the pod may set.
        """
        job = self.of(pod)
        uid = job.controller if job is not None else pod.controller if pod.job is None else ""
        found = self.others.get(uid) or (self.others.labelled(pod) if by_label else None)
        found = self.others.deciding(found) if found is not None else None
        return found if found is not None and found.namespace == pod.namespace else None

    def of_stand_in(self, pod: Pod) -> BatchJob | None:
        """Returns the Job of ``batch/v1`` that a stand-in represents; None if it represents none, or is a pod."""
        job = pod.stands_for
        return self.get((pod.namespace, job.name)) if job is not None and job.kind is JOB else None

    def whole(self, pod: Pod) -> BatchJob | None:
        """Returns the Job of a pod if it is taken back as a whole: by suspending it, which is no failure.

        A job of another kind that is suspended already loses its pods: what is left of them is not of its making.
        """
        if pod.namespace not in self.queued_in or pod.uid in self.stayed:
            return None
        job = (self.owner_of(pod) if self.others else None) or self.of(pod)
        return job if job is not None and job.ours and not job.ended and job.can_be_suspended else None

    def is_of(self, pod: Pod, job: BatchJob) -> bool:
        """Whether a pod belongs to a job of any kind."""
        if job.kind is JOB:
            return pod.job is not None and pod.job.uid == job.uid
        owner = self.owner_of(pod)
        return owner is not None and owner.uid == job.uid

    def owned_by(self, owner: BatchJob) -> list[BatchJob]:
        """Returns the jobs of any kind that a job of another kind owns itself, and that have not ended."""
        return [job for job in self._owned_by(owner) if not job.ended]

    def may_own(self, job: BatchJob) -> Iterator[str]:
        """Yields UIDs of pods, among them all that belong to a job of any kind by their controllers."""
        known, jobs = {job.uid}, [job]
        for _ in range(LONGEST_CHAIN + 2):
            for each in jobs:
                yield from self.pods.of(job.namespace, each.uid)
            below = {each.uid: each for owner in jobs for each in self._owned_by(owner)}
            jobs = [each for uid, each in below.items() if uid not in known]  # they may own each other
            known |= below.keys()

    def _owned_by(self, owner: BatchJob) -> Iterator[BatchJob]:
        of_any = chain(self._owned.get(owner.uid), self.others.owned.get(owner.uid))
        return (job for job in of_any if job.namespace == owner.namespace)

    def upsert(self, job: BatchJob) -> None:
        """Adds or changes a Job."""
        if (before := self._jobs.get(job.key)) is not None:
            self._owned.remove(before)
        self._jobs[job.key] = job
        self._owned.add(job)

    def delete(self, key: Key) -> None:
        """Removes a Job. Does nothing for one that is not known."""
        job = self._jobs.pop(key, None)
        if job is not None:
            self._owned.remove(job)

    def see(self, pod: Pod, before: Pod | None) -> None:
        """Notes a change of a pod."""
        self.pods.see(pod, before)
        if before is not None and before.job is not None and before.job != pod.job:
            self.forget(before)
        if pod.job is not None:
            if pod.job.tracked and (pod.terminating or pod.finished) and not pod.succeeded:
                self._failing.setdefault((pod.namespace, pod.job.uid), set()).add(pod.uid)
            else:
                self.forget(pod)

    def gone(self, pod: Pod) -> None:
        """Notes that a pod is gone."""
        self.stayed.discard(pod.uid)
        self.pods.forget(pod)
        self.forget(pod)

    def forget(self, pod: Pod) -> None:
        """Notes that a pod is gone, or counted."""
        if pod.job is not None:
            failing = self._failing.get((pod.namespace, pod.job.uid))
            if failing is not None:
                failing.discard(pod.uid)
                if not failing:
                    del self._failing[pod.namespace, pod.job.uid]

    def failing(self, job: BatchJob) -> frozenset[str]:
        """Returns UIDs of the pods that have failed or are terminating, and that the Job has not counted."""
        return job.uncounted.union(self._failing.get((job.namespace, job.uid), ()))
