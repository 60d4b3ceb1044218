"""Which Jobs of Kubernetes are lost by evictions that are thought of: they fail, or are suspended and wait again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policy.objects.batch_job import FAIL_JOB, IGNORE, BatchJob, BatchJobs
from policy.objects.job_kind import JOB
from policy.objects.pod import Pod


@dataclass(slots=True)
class _Loss:
    """Pods that are taken of one Job: ``counted`` in all, of which ``fatal`` ones each make it fail.

    It bears ``margin`` more failures. ``lost``: it fails, has ended, or is being suspended, whoever is taken.
    ``whole``: it is suspended when more are taken than ``margin``, so it never fails. Until then it is lowered.
    """

    job: BatchJob | None
    margin: int
    lost: bool
    whole: bool = False
    counted: int = 0
    fatal: int = 0

    @property
    def is_made(self) -> bool:
        """Whether the Job is lost by what is taken."""
        return not self.lost and (self.fatal > 0 or self.counted > self.margin)

    def add(self, pod: Pod, times: int) -> None:
        """A pod is taken (1) or given back (-1)."""
        if self.job is None or (not self.whole and self.job.is_fatal(pod)):
            self.fatal += times
        elif self.whole or self.job.response != IGNORE:
            self.counted += times


@dataclass(slots=True)
class Losses:
    """Which Jobs are lost by evictions, beside those that are under way: ``going`` are pods that go, whatever is done.

    A pod that names a Job which is not known counts as one whose Job fails, as nobody can say that it does not.
    ``asked``: UIDs of pods that are what is asked about, though they may be on their way out.
    """

    jobs: BatchJobs
    going: Iterable[Pod] = ()
    asked: frozenset[str] = frozenset()
    fail: int = 0
    """How many fail by what is taken now."""
    suspended: int = 0
    """How many are suspended for it."""
    _losses: dict[tuple[str, str], _Loss] = field(default_factory=dict)
    _going: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pod in self.going if self.jobs or self.jobs.others else ():
            key = None if pod.terminating else self._key(pod)  # those that are stand with their Job
            if key is not None:
                self._going.setdefault(key, set()).add(pod.uid)

    def take(self, pod: Pod) -> None:
        """A pod is to be evicted."""
        self._add(pod, 1)

    def give_back(self, pod: Pod) -> None:
        """It is not."""
        self._add(pod, -1)

    def would_lose(self, pods: Iterable[Pod]) -> bool:
        """Whether one more Job would be lost, if these went, too."""
        return any(self._more(pods))

    def would_fail(self, pods: Iterable[Pod]) -> bool:
        """Whether one more Job would fail, if these went, too."""
        return self._more(pods)[0]

    def would_fail_known(self, pods: Iterable[Pod]) -> bool:
        """Like ``would_fail``, but only Jobs that are known count."""
        return self.would_fail([pod for pod in pods if pod.job is not None and self.jobs.of(pod) is not None])

    def _more(self, pods: Iterable[Pod]) -> tuple[bool, bool]:
        """Returns whether more Jobs would fail, and whether more would be suspended, if these went, too."""
        taken = [pod for pod in pods if self._key(pod) is not None]
        before = self.fail, self.suspended
        for pod in taken:
            self.take(pod)
        more = self.fail > before[0], self.suspended > before[1]
        for pod in taken:
            self.give_back(pod)
        return more

    def of(self, victims: Iterable[Pod]) -> "LostJobs":
        """Returns the Jobs that are lost by what is taken, as far as they are known."""
        victims = list(victims)
        return LostJobs(
            self._titles(victims, whole=False) if self.fail else {},
            self._titles(victims, whole=True) if self.suspended else {},
            self._lowered(victims),
        )

    def _lowered(self, victims: Iterable[Pod]) -> dict[str, str]:
        found: dict[str, str] = {}
        for victim in victims:
            loss = self._losses.get(key) if (key := self._key(victim)) is not None else None
            if loss is not None and loss.job is not None and loss.whole and not (loss.lost or loss.is_made):
                found[victim.uid] = loss.job.title
        return found

    def _titles(self, victims: Iterable[Pod], *, whole: bool) -> dict[str, str]:
        found: dict[str, str] = {}
        for victim in victims:
            key = self._key(victim)
            loss = self._losses.get(key) if key is not None else None
            if loss is not None and loss.is_made and loss.job is not None and loss.whole is whole:
                found[victim.uid] = loss.job.title if loss.job.kind is JOB else loss.job.object
        return found

    def at_stake(self, victims: Iterable[Pod]) -> dict[str, int]:
        """By UID, in which turn victims are to be put back so that no Job is lost: those of one Job together.

        Jobs that fail come before those that are suspended. Of a Job that bears some failures it is not those that are
        last among the victims.
        """
        turns: dict[tuple[str, str], int] = {}
        found: dict[str, int] = {}
        over = {key: loss.counted - loss.margin for key, loss in self._losses.items() if loss.is_made}
        for pod in sorted(victims, key=lambda pod: self.jobs.whole(pod) is not None):
            key = self._key(pod)
            if key is None or key not in over:
                continue
            job = self._losses[key].job
            whole = self._losses[key].whole
            fatal = job is None or (not whole and job.is_fatal(pod))
            if fatal or (over[key] > 0 and (whole or (job is not None and job.response != IGNORE))):
                over[key] -= not fatal
                found[pod.uid] = turns.setdefault(key, len(turns))
        return found

    def _add(self, pod: Pod, times: int) -> None:
        key = self._key(pod)
        if key is None:
            return
        loss = self._losses.get(key)
        if loss is None:
            loss = self._losses[key] = self._loss(pod)
        before = loss.is_made
        loss.add(pod, times)
        if loss.whole:
            self.suspended += loss.is_made - before
        else:
            self.fail += loss.is_made - before

    def _key(self, pod: Pod) -> tuple[str, str] | None:
        """Returns namespace and UID of the job that a pod costs; None if it costs none."""
        other = self.jobs.whole(pod) if self.jobs.others else None
        if other is not None and other.kind is not JOB:
            return other.namespace, other.uid
        return (pod.namespace, pod.job.uid) if pod.job is not None and self.jobs else None

    def _loss(self, pod: Pod) -> _Loss:
        """Returns the loss of a pod's Job before anybody is taken."""
        job = self.jobs.whole(pod) or self.jobs.of(pod)
        if job is None:
            return _Loss(None, 0, lost=False)
        whole = self.jobs.whole(pod) is not None
        gone = len(self.jobs.failing(job).union(self._going.get((job.namespace, job.uid), ())) - self.asked)
        failing = gone if job.response != IGNORE else len(job.uncounted)
        margin = job.backoff_limit - job.failed - failing
        if whole:
            going = job.spare < 0 if job.least else gone > 0
            return _Loss(job, max(0, job.spare), lost=job.ended or going, whole=True)
        return _Loss(job, margin, lost=job.ended or margin < 0 or (gone > 0 and job.response == FAIL_JOB))


@dataclass(frozen=True, slots=True)
class LostJobs:
    """Jobs that some victims cost, by UID of these: those that fail by it, and those that are suspended.

    ``lowering``: elastic Jobs that lose as many pods as are victims, whichever these are, and go on.
    """

    failing: Mapping[str, str] = field(default_factory=dict)
    suspending: Mapping[str, str] = field(default_factory=dict)
    lowering: Mapping[str, str] = field(default_factory=dict)

    @property
    def fail(self) -> int:
        """The number of Jobs that fail."""
        return len(set(self.failing.values()))

    @property
    def text(self) -> str:
        """The Jobs, as words for people; empty if none is lost."""
        fails = _text("this fails", self.failing, "all of its pods go", "all of their pods go")
        waits = "all of its pods go, and it waits again", "all of their pods go, and they wait again"
        goes_on = "its controller chooses which pods go", "their controller chooses which pods go"
        suspends = _text("this suspends", self.suspending, *waits)
        lowers = _text("this lowers the parallelism of", self.lowering, *goes_on)
        return "; ".join(filter(None, (fails, suspends, lowers)))


NONE_LOST = LostJobs()


def lost_jobs(jobs: BatchJobs, victims: Iterable[Pod], going: Iterable[Pod]) -> LostJobs:
    """Returns the Jobs that some victims cost, alone or together. ``going`` are others that go."""
    victims = list(victims)
    losses = Losses(jobs, going, frozenset(victim.uid for victim in victims))
    for victim in victims:
        losses.take(victim)
    return losses.of(victims)


def _text(what: str, jobs: Mapping[str, str], one: str, several: str) -> str:
    titles = sorted(set(jobs.values()))
    if not titles:
        return ""
    of_jobs = not any(" " in title for title in titles)  # a job of another kind is named with its kind
    names = f"Job{'s' * (len(titles) > 1)} {', '.join(titles)}" if of_jobs else ", ".join(titles)
    return f"{what} {names}: {several if len(titles) > 1 else one}"
