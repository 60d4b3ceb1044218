"""Jobs of Kubernetes (``batch/v1``): whether an eviction makes one fail, and when one ends whatever its pods do.

Kubernetes counts an evicted pod as one that failed, unless a rule of the Job's podFailurePolicy says otherwise. Once
that is one too many the Job fails, and all of its pods go. (kube-controller-manager 1.37, pkg/controller/job.)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from policy.objects.pod import Pod

DEFAULT_BACKOFF_LIMIT = 6
UNLIMITED = 2**31 - 1
"""The backoffLimit of a Job that has a limit for each index and names no other."""
IGNORE, COUNT, FAIL_INDEX, FAIL_JOB = "Ignore", "Count", "FailIndex", "FailJob"
"""What a rule of a podFailurePolicy does about a pod that has failed; the later the worse."""
_WORSE = {action: number for number, action in enumerate((IGNORE, COUNT, FAIL_INDEX, FAIL_JOB))}
EXIT_CODES = (137, 143)
"""What the containers of an evicted pod exit with: killed, or ended by SIGTERM. Which of these cannot be known."""
DISRUPTED = ("DisruptionTarget", "True")
"""The condition that an evicted pod has."""

Key = tuple[str, str]
"""Namespace and name of a Job."""


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A rule of a podFailurePolicy, by exit codes (all but these, if ``negated``) or by conditions of the pod."""

    action: str
    codes: frozenset[int] | None = None
    negated: bool = False
    conditions: frozenset[tuple[str, str]] = frozenset()

    def matches(self, code: int) -> bool:
        """Whether it is about an evicted pod whose containers have exited with this code."""
        if self.codes is None:
            return DISRUPTED in self.conditions
        return (code in self.codes) != self.negated


def response(rules: Iterable[FailureRule]) -> str:
    """What these rules do about an evicted pod: the first that matches counts, and the worst of what may happen."""
    rules = list(rules)
    actions = (next((rule.action for rule in rules if rule.matches(code)), COUNT) for code in EXIT_CODES)
    return max((action if action in _WORSE else COUNT for action in actions), key=_WORSE.__getitem__)


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A Job. ``response`` is what its podFailurePolicy does about an evicted pod.

    ``failed`` pods are counted; so will be those whose UIDs are ``uncounted``, though they may be gone. ``ended``: it
    has failed or succeeded, or is about to. ``started`` in seconds since the epoch, 0 if it has not; ``deadline`` in
    seconds from then, 0 if there is none.
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
    deadline: int = 0
    started: float = 0.0

    @property
    def key(self) -> Key:
        """What tells it from all others that are there."""
        return self.namespace, self.name

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.namespace}/{self.name}"

    @property
    def ends_at(self) -> float:
        """When it is ended, whatever its pods do, in seconds since the epoch; 0 if that is not known."""
        return self.started + self.deadline if self.deadline and self.started and not self.ended else 0.0

    @property
    def fails_at_once(self) -> bool:
        """Whether one eviction fails it, though none of its pods has failed."""
        if self.response in (FAIL_INDEX, FAIL_JOB):
            return True
        return self.response == COUNT and 0 in (self.backoff_limit, self.limit_per_index)

    def is_fatal(self, pod: Pod) -> bool:
        """Whether it fails, now or in the end, by the eviction of this very pod, however many failures it bears."""
        if self.response in (FAIL_INDEX, FAIL_JOB):
            return True
        used_up = self.limit_per_index is not None and pod.job is not None and pod.job.failures >= self.limit_per_index
        return used_up and self.response == COUNT

    def after_eviction(self) -> "BatchJob":
        """The Job once one more pod of it has been evicted."""
        failed = self.failed + (self.response != IGNORE)
        ended = self.ended or self.response == FAIL_JOB or failed > self.backoff_limit
        return replace(self, failed=failed, ended=ended)


class BatchJobs:
    """The Jobs that are known, and which of their pods have failed, or are on their way out, without being counted yet.

    Without any there is no right to read them, or nobody has one: then no pod is taken for that of a Job.
    """

    def __init__(self) -> None:
        self._jobs: dict[Key, BatchJob] = {}
        self._failing: dict[tuple[str, str], set[str]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[BatchJob]:
        return iter(self._jobs.values())

    def keys(self) -> Iterable[Key]:
        """Namespaces and names."""
        return self._jobs.keys()

    def get(self, key: Key) -> BatchJob | None:
        """The Job of this namespace and name."""
        return self._jobs.get(key)

    def of(self, pod: Pod) -> BatchJob | None:
        """The Job that a pod belongs to; None if it names none, or one that is not known.

        A pod may name what it likes, so the UID has to be that of the Job of this name in its own namespace.
        """
        if pod.job is None:
            return None
        job = self._jobs.get((pod.namespace, pod.job.name))
        return job if job is not None and job.uid == pod.job.uid else None

    def upsert(self, job: BatchJob) -> None:
        """Adds or changes a Job."""
        self._jobs[job.key] = job

    def delete(self, key: Key) -> None:
        """Removes a Job; one that is not known is no error."""
        self._jobs.pop(key, None)

    def heed(self, pod: Pod, before: Pod | None) -> None:
        """Notes what has become of a pod."""
        if before is not None and before.job is not None and before.job != pod.job:
            self.forget(before)
        if pod.job is not None:
            if pod.job.tracked and (pod.terminating or pod.finished) and not pod.succeeded:
                self._failing.setdefault((pod.namespace, pod.job.uid), set()).add(pod.uid)
            else:
                self.forget(pod)

    def forget(self, pod: Pod) -> None:
        """A pod is gone, or counted."""
        if pod.job is not None:
            failing = self._failing.get((pod.namespace, pod.job.uid))
            if failing is not None:
                failing.discard(pod.uid)
                if not failing:
                    del self._failing[pod.namespace, pod.job.uid]

    def failing(self, job: BatchJob) -> frozenset[str]:
        """UIDs of those that have failed, or are on their way out, and that the Job has not counted."""
        return job.uncounted.union(self._failing.get((job.namespace, job.uid), ()))
