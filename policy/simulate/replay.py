"""Plays a recorded workload: its jobs come when they came, run for as long as they ran, and wait as our rules say.

Each job waits as a whole (see policy.objects.queued_job): it starts when the rules admit it and nodes have room for all
of its pods. Or it is a gang, for which nodes are reserved once it starves. A job that is taken back comes back, in the
place that its age gives it. The scheduler and our controllers take no time, but for the delays of the simulation.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf

from policy.cluster.unschedulable import PATIENCE
from policy.objects.batch_job import BatchJob
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.pod import Pod
from policy.objects.queued_job import PodSet, QueuedJob
from policy.objects.resources import Resources
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.stepwise import Steps

GROUPS = "PodGroup"
"""The kind of the groups of jobs that come as gangs."""
MOST_EVICTIONS = 100
"""How often a job may be taken back before the replay gives up: two jobs take the room from each other."""


class PingPong(Exception):
    """A job is taken back again and again; the text names it."""


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A job as it was recorded. Times in seconds: ``submitted`` on the clock of the log, ``waited`` None if not known.

    ``team`` is its namespace. It has so many ``pods``, of which each takes ``request`` (amounts) while it runs.
    ``limit`` is how many seconds it runs at most, as its user said; 0 if nobody said. That is enforced.
    """

    name: str
    team: str
    submitted: float
    run: float
    pods: int
    request: Resources
    waited: float | None = None
    priority: int = 0
    queue: str = ""
    limit: int = 0


@dataclass(slots=True)
class PlayedJob:
    """The fate of a job. Times in seconds on the clock of the log.

    ``started`` is when all of its pods ran for the last time, None if they never did; ``first`` when they did so first.
    ``lost``: seconds that it ran in vain, ``left``: seconds that it has still to run.
    """

    job: RecordedJob
    left: float
    started: float | None = None
    first: float | None = None
    ended: float | None = None
    evictions: int = 0
    lost: float = 0.0

    @property
    def wait(self) -> float | None:
        """Seconds from when it was submitted until it ran first; None if it never did."""
        return None if self.first is None else self.first - self.job.submitted


@dataclass(frozen=True, slots=True)
class State:
    """The use from a time on, in amounts by resource, and how many jobs wait."""

    at: float
    used: Resources
    waiting: int


class Replay:
    """A workload that is played on a cluster of which everything but the jobs is there already.

    ``resumes``: a job that is taken back goes on where it stood; else it runs from the beginning again. ``gangs``: the
    terms of reserving nodes, if jobs come as gangs; else they wait as a whole. ``played`` has the jobs by name.
    ``used`` has what they use, summed over time, by resource (amounts x seconds), ``at`` is the time.
    ``states`` are those after each moment.
    """

    def __init__(
        self,
        simulation: Simulation,
        jobs: Iterable[RecordedJob],
        *,
        resumes: bool = False,
        gangs: Terms | None = None,
    ) -> None:
        self.played: dict[str, PlayedJob] = {}
        self.used: dict[str, float] = {}
        self.at = 0.0
        self.states: list[State] = []
        self._waiting = 0
        self._claims_fall_at = 0.0
        self._simulation = simulation
        self._cluster = simulation.cluster
        self._resumes = resumes
        self._gangs = gangs
        self._not_starving: deque[PlayedJob] = deque()
        self._arrivals = sorted(jobs, key=lambda job: (job.submitted, job.name), reverse=True)
        self._ends: list[tuple[float, str, int]] = []
        self._missing: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._begin = simulation.now - (self._arrivals[-1].submitted if self._arrivals else 0.0)
        for team in {job.team for job in self._arrivals}:
            known = self._cluster.membership.namespaces.get(team, Namespace(team))
            self._cluster.upsert_namespace(replace(known, queues_jobs=gangs is None))

    @property
    def remaining(self) -> int:
        """How many jobs are still to come."""
        return len(self._arrivals)

    def play_steps(self, until: float = inf) -> Steps[None]:
        """Plays until nothing more is to come, or this time on the clock of the log. It pauses in between.

        Raises PingPong.
        """
        while (at := self._next()) <= until and at < inf:
            before, came = self._simulation.steps, self._pass_time(at)
            yield from self._simulation.settle_steps()
            while self._take_note():  # a job that was taken back may fit elsewhere at once
                yield from self._simulation.settle_steps()
            if self._gangs is not None and (came or self._simulation.steps != before):
                self._claims_fall_at = at + PATIENCE + 1
            self.states.append(State(self.at, dict(self._running), self._waiting))
            yield
        self._pass_time(min(until, max(self.at, at)) if until < inf else self.at)

    def _next(self) -> float:
        times = [self._arrivals[-1].submitted] if self._arrivals else []
        times += [self._ends[0][0]] if self._ends else []
        again_at = self._simulation.again_at - self._begin
        times += [each for each in (again_at, self._claims_fall_at) if each > self.at]
        times += self._reserving_at()
        return min(times, default=inf)

    def _reserving_at(self) -> Iterator[float]:
        """Yields when the next job begins to starve, and when reservations of nodes end that may not last longer."""
        if (terms := self._gangs) is None:
            return
        after = terms.starving_after + 1
        while self._not_starving:
            first = self._not_starving[0]
            if first.started is None and first.job.submitted + after > self.at:
                yield first.job.submitted + after
                break
            self._not_starving.popleft()
        if terms.max_duration < inf:
            ends = (each.since + terms.max_duration + 1 - self._begin for each in self._cluster.reservations.reserved)
            yield from (at for at in ends if at > self.at)

    def _pass_time(self, at: float) -> bool:
        """Lets time pass; returns whether jobs have come or ended."""
        before = len(self._ends), len(self._arrivals)
        for resource, amount in self._running.items():
            self.used[resource] = self.used.get(resource, 0.0) + amount * (at - self.at)
        self.at = at
        self._simulation.advance(self._begin + at)
        while self._ends and self._ends[0][0] <= at:
            _, name, evictions = heappop(self._ends)
            self._end(name, evictions)
        while self._arrivals and self._arrivals[-1].submitted <= at:
            job = self._arrivals.pop()
            self.played[job.name] = PlayedJob(job, job.run)
            self._waiting += 1
            if self._gangs is None:
                self._cluster.batch_jobs.upsert(BatchJob(job.team, job.name, job.name, ours=True))
            else:
                self._not_starving.append(self.played[job.name])
            self._wait_in_line(job)
        return before != (len(self._ends), len(self._arrivals))

    def _wait_in_line(self, job: RecordedJob) -> None:
        created = self._begin + job.submitted
        pod = Pod("", job.team, job.name, job.request, priority=job.priority, queue=job.queue, deadline=job.limit)
        if self._gangs is not None:
            self._add_gang(job, replace(pod, created=created))
            return
        sets = (PodSet(pod, job.pods),)
        queued = QueuedJob(job.team, job.name, job.name, sets, job.pods, suspended=True, created=created)
        self._cluster.queued_jobs.upsert(queued, self._simulation.now)

    def _add_gang(self, job: RecordedJob, pod: Pod) -> None:
        """Adds the pods of a job that are all like this one, and their group if there are several."""
        if job.pods > 1:
            group = Group(job.team, f"{GROUPS}/{job.name}", job.pods, job.queue, pod.created)
            self._cluster.upsert_group(group)
            pod = replace(pod, group=group.name)
        for number in range(job.pods):
            member = replace(pod, uid=f"{job.name}/{number}", name=f"{job.name}-{number}")
            self._cluster.upsert_pod(member, self._simulation.now)

    def _take_note(self) -> bool:
        """Takes note of what has happened since the last time; returns whether jobs were put back in line."""
        simulation = self._simulation
        for pod in simulation.bound:
            if (played := self._played(pod)) is not None:
                self._start_pod(played)
        simulation.bound.clear()
        taken_back: dict[str, PlayedJob] = {}
        for eviction in simulation.evictions:
            if (played := self._played(eviction.pod)) is not None:
                taken_back[played.job.name] = played
        simulation.evictions.clear()
        for played in taken_back.values():
            self._come_back(played)
        return bool(taken_back)

    def _played(self, pod: Pod) -> PlayedJob | None:
        return self.played.get(pod.uid.rpartition("/")[0])

    def _start_pod(self, played: PlayedJob) -> None:
        name = played.job.name
        self._missing[name] = self._missing.get(name, played.job.pods) - 1
        self._count(played.job, 1)
        if self._missing[name] == 0:
            played.started = self.at
            self._waiting -= 1
            played.first = self.at if played.first is None else played.first
            heappush(self._ends, (self.at + played.left, name, played.evictions))

    def _come_back(self, played: PlayedJob) -> None:
        """Puts a job of which pods were evicted back in line. All of its pods go: it is suspended."""
        self._count(played.job, self._missing.pop(played.job.name) - played.job.pods)
        if played.started is not None:
            ran, played.started = self.at - played.started, None
            self._waiting += 1
            if self._resumes:
                played.left -= ran
            else:
                played.lost += ran
        played.evictions += 1
        if played.evictions > MOST_EVICTIONS:
            raise PingPong(f"job {played.job.name} of {played.job.team} was taken back {played.evictions} times")
        self._remove(played.job)
        self._wait_in_line(played.job)

    def _end(self, name: str, evictions: int) -> None:
        played = self.played[name]
        if played.evictions != evictions or played.started is None:
            return  # it was taken back meanwhile
        played.ended = self.at
        self._count(played.job, -played.job.pods)
        del self._missing[name]
        self._remove(played.job)
        self._cluster.batch_jobs.delete((played.job.team, name))

    def _remove(self, job: RecordedJob) -> None:
        """Removes a job and its pods from the cluster."""
        if self._gangs is None:
            self._cluster.queued_jobs.gone((job.team, job.name))
            return
        for number in range(job.pods):
            self._cluster.delete_pod(f"{job.name}/{number}")
        self._cluster.delete_group(job.team, f"{GROUPS}/{job.name}")

    def _count(self, job: RecordedJob, pods: int) -> None:
        for resource, amount in job.request.items():
            self._running[resource] = self._running.get(resource, 0) + pods * amount
