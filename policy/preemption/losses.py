"""Which Jobs of Kubernetes fail by evictions that are thought of, and what is said of that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policy.objects.batch_job import FAIL_JOB, IGNORE, BatchJob, BatchJobs
from policy.objects.pod import Pod


@dataclass(slots=True)
class _Loss:
    """Pods that are taken of one Job: ``counted`` in all, of which ``fatal`` ones each make it fail.

    It bears ``margin`` more failures. ``lost``: it fails, or has ended, whoever is taken.
    """

    job: BatchJob | None
    margin: int
    lost: bool
    counted: int = 0
    fatal: int = 0

    @property
    def fails(self) -> bool:
        return not self.lost and (self.fatal > 0 or self.counted > self.margin)

    def add(self, pod: Pod, times: int) -> None:
        """A pod is taken (1) or given back (-1)."""
        if self.job is None or self.job.is_fatal(pod):
            self.fatal += times
        elif self.job.response != IGNORE:
            self.counted += times


@dataclass(slots=True)
class Losses:
    """Which Jobs fail by evictions, beside those that are under way: ``going`` are pods that go, whatever is done.

    A pod that names a Job which is not known counts as one whose Job fails, as nobody can say that it does not.
    ``asked``: UIDs of pods that are what is asked about, though they may be on their way out.
    """

    jobs: BatchJobs
    going: Iterable[Pod] = ()
    asked: frozenset[str] = frozenset()
    number: int = 0
    """How many fail by what is taken now."""
    _losses: dict[tuple[str, str], _Loss] = field(default_factory=dict)
    _going: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pod in self.going if self.jobs else ():
            if pod.job is not None and not pod.terminating:  # those that are stand with their Job
                self._going.setdefault((pod.namespace, pod.job.uid), set()).add(pod.uid)

    def take(self, pod: Pod) -> None:
        """A pod is to be evicted."""
        self._add(pod, 1)

    def give_back(self, pod: Pod) -> None:
        """It is not."""
        self._add(pod, -1)

    def would_fail(self, pods: Iterable[Pod]) -> bool:
        """Whether a Job that does not fail yet would, if these went, too."""
        taken = [pod for pod in pods if pod.job is not None] if self.jobs else ()
        before = self.number
        for pod in taken:
            self.take(pod)
        more = self.number > before
        for pod in taken:
            self.give_back(pod)
        return more

    def would_fail_known(self, pods: Iterable[Pod]) -> bool:
        """Like ``would_fail``, but only Jobs that are known count."""
        return self.would_fail([pod for pod in pods if pod.job is not None and self.jobs.of(pod) is not None])

    def failing(self, victims: Iterable[Pod]) -> dict[str, str]:
        """The Jobs that fail by what is taken, as far as they are known: titles by the UIDs of their victims."""
        found: dict[str, str] = {}
        for victim in victims if self.number else ():
            loss = self._losses.get((victim.namespace, victim.job.uid)) if victim.job is not None else None
            if loss is not None and loss.fails and loss.job is not None:
                found[victim.uid] = loss.job.title
        return found

    def at_stake(self, victims: Iterable[Pod]) -> dict[str, int]:
        """By UID, in which turn victims are to be put back so that Jobs do not fail: those of one Job together.

        Of one that bears some failures it is not those that are last among the victims.
        """
        turns: dict[tuple[str, str], int] = {}
        found: dict[str, int] = {}
        over = {key: loss.counted - loss.margin for key, loss in self._losses.items() if loss.fails}
        for pod in victims:
            key = (pod.namespace, pod.job.uid) if pod.job is not None else None
            if key is None or key not in over:
                continue
            job = self._losses[key].job
            fatal = job is None or job.is_fatal(pod)
            if fatal or (job is not None and job.response != IGNORE and over[key] > 0):
                over[key] -= not fatal
                found[pod.uid] = turns.setdefault(key, len(turns))
        return found

    def _add(self, pod: Pod, times: int) -> None:
        if pod.job is None or not self.jobs:
            return
        key = pod.namespace, pod.job.uid
        loss = self._losses.get(key)
        if loss is None:
            loss = self._losses[key] = self._loss(pod)
        before = loss.fails
        loss.add(pod, times)
        self.number += loss.fails - before

    def _loss(self, pod: Pod) -> _Loss:
        """Returns the loss of a pod's Job before anybody is taken."""
        job = self.jobs.of(pod)
        if job is None:
            return _Loss(None, 0, lost=False)
        gone = len(self.jobs.failing(job).union(self._going.get((pod.namespace, job.uid), ())) - self.asked)
        failing = gone if job.response != IGNORE else len(job.uncounted)
        margin = job.backoff_limit - job.failed - failing
        return _Loss(job, margin, lost=job.ended or margin < 0 or (gone > 0 and job.response == FAIL_JOB))


def failing_jobs(jobs: BatchJobs, victims: Iterable[Pod], going: Iterable[Pod]) -> dict[str, str]:
    """By UID of each victim whose eviction makes its Job fail, alone or with the others, the title of that Job.

    ``going`` are others that go.
    """
    victims = [victim for victim in victims if victim.job is not None]
    losses = Losses(jobs, going, frozenset(victim.uid for victim in victims))
    for victim in victims:
        losses.take(victim)
    return losses.failing(victims)


def failing_jobs_text(failing: Mapping[str, str]) -> str:
    """Returns the Jobs that fail, as words for people; empty if none does."""
    titles = sorted(set(failing.values()))
    if not titles:
        return ""
    jobs = f"Job{'s' * (len(titles) > 1)} {', '.join(titles)}"
    return f"this fails {jobs}: all of {'their' if len(titles) > 1 else 'its'} pods go"
