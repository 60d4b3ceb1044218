"""Sums up what became of a recorded workload: in all, by team, and as it was recorded."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.replay.player import Played
from policy.simulate.replay import PlayedJob, RecordedJob

LEAST_RUN = 10.0
"""Seconds that a run counts for at least in a slowdown, as usual: else jobs of a second decide the mean."""
OUTCOMES = ("kept", "moved", "lost")
"""Outcomes of a promised start: the job starts by then, the start is moved later, or there is none any more."""
BIG = 0.9
"""Jobs of at least the size of this part of all jobs are called big."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of jobs that started, in seconds, None if there are none; ``slowdown``: the mean of (wait + run) / run."""

    mean: float | None
    p50: float | None
    p95: float | None
    max: float | None
    slowdown: float | None


@dataclass(frozen=True, slots=True)
class Team:
    """A team. ``used`` and ``lost`` in hours of the main resource, ``deserved`` its min of that, None without one."""

    team: str
    jobs: int
    never_started: int
    waits: Waits
    used: float
    lost: float
    deserved: float | None
    evictions: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The fate of a workload under a policy.

    ``utilisation``: the part of the main resource that was used in the window. ``again``: the part of the use that was
    in vain. ``spread``: the least and the greatest mean wait of all runs. ``promises``: promised starts by what became
    of them.
    """

    policy: str
    resource: str
    utilisation: float
    again: float
    jobs: int
    never_started: int
    evictions: int
    waits: Waits
    big: Waits
    spread: tuple[float, float] | None
    teams: tuple[Team, ...]
    stopped_at: float | None
    to_come: int
    promises: Mapping[str, int]


def main_resource(jobs: Iterable[RecordedJob], capacity: Mapping[str, int]) -> str:
    """Returns the resource of which the jobs use the largest part of what there is."""
    asked: dict[str, float] = {}
    for job in jobs:
        for resource, amount in job.request.items():
            if resource != "pods" and capacity.get(resource):
                part = amount * job.pods * job.run / capacity[resource]
                asked[resource] = asked.get(resource, 0.0) + part
    return max(sorted(asked), key=lambda resource: asked[resource], default="cpu")


def summary(runs: Sequence[Played]) -> Summary:
    """Sums up the runs of a policy: all figures are those of the first; the others tell the spread."""
    first = runs[0]
    resource = main_resource((each.job for each in first.jobs), first.capacity)
    means = [wait for run in runs if (wait := _waits(run.jobs).mean) is not None]
    capacity = first.capacity.get(resource, 0) * first.length
    used = first.used.get(resource, 0.0)
    lost = sum(_hours(each, resource, each.lost) for each in first.jobs)
    worked = sum(_hours(each, resource, _ran(each)) for each in first.jobs)
    return Summary(
        policy=first.policy,
        resource=resource,
        utilisation=used / capacity if capacity else 0.0,
        again=lost / (lost + worked) if lost + worked else 0.0,
        jobs=len(first.jobs),
        never_started=sum(each.first is None for each in first.jobs),
        evictions=sum(each.evictions for each in first.jobs),
        waits=_waits(first.jobs),
        big=_waits(_big(first.jobs, resource)),
        spread=(min(means), max(means)) if len(runs) > 1 and means else None,
        teams=tuple(_teams(first, resource)),
        stopped_at=first.stopped_at,
        to_come=first.to_come,
        promises={outcome: first.promises.get(outcome, 0) for outcome in OUTCOMES},
    )


def recorded(jobs: Sequence[RecordedJob]) -> Waits:
    """Returns the waits as they were recorded, of the jobs of which the log tells."""
    return _waits_of([(job.waited, job.run) for job in jobs if job.waited is not None])


def _teams(played: Played, resource: str) -> Iterable[Team]:
    by_team: dict[str, list[PlayedJob]] = {}
    for each in played.jobs:
        by_team.setdefault(each.job.team, []).append(each)
    for team, jobs in sorted(by_team.items()):
        deserved = played.entitled.get(team, {}).get(resource)
        yield Team(
            team=team,
            jobs=len(jobs),
            never_started=sum(each.first is None for each in jobs),
            waits=_waits(jobs),
            used=sum(_hours(each, resource, _ran(each) + each.lost) for each in jobs),
            lost=sum(_hours(each, resource, each.lost) for each in jobs),
            deserved=None if deserved is None else _whole(resource, deserved),
            evictions=sum(each.evictions for each in jobs),
        )


def _ran(played: PlayedJob) -> float:
    """Returns for how many seconds a job ran that were not in vain."""
    return played.job.run if played.ended is not None else played.job.run - played.left


def _hours(played: PlayedJob, resource: str, seconds: float) -> float:
    amount = played.job.request.get(resource, 0) * played.job.pods
    return _whole(resource, amount) * seconds / 3600


def _whole(resource: str, amount: float) -> float:
    """Returns an amount in whole units: cores, bytes, devices."""
    return amount / 1000 if resource == "cpu" else float(amount)


def _big(jobs: Sequence[PlayedJob], resource: str) -> list[PlayedJob]:
    sizes = sorted(each.job.request.get(resource, 0) * each.job.pods for each in jobs)
    least = sizes[min(len(sizes) - 1, int(BIG * len(sizes)))] if sizes else 0
    return [each for each in jobs if each.job.request.get(resource, 0) * each.job.pods >= least]


def _waits(jobs: Iterable[PlayedJob]) -> Waits:
    return _waits_of([(each.wait, each.job.run) for each in jobs if each.wait is not None])


def _waits_of(waits: Sequence[tuple[float | None, float]]) -> Waits:
    known = sorted((wait, run) for wait, run in waits if wait is not None)
    if not known:
        return Waits(None, None, None, None, None)
    slowdown = sum(max(1.0, (wait + run) / max(LEAST_RUN, run)) for wait, run in known) / len(known)
    mean = sum(wait for wait, _ in known) / len(known)
    return Waits(mean, _percentile(known, 0.5), _percentile(known, 0.95), known[-1][0], slowdown)


def _percentile(known: Sequence[tuple[float, float]], part: float) -> float:
    """Returns the smallest wait that so large a part of all does not exceed."""
    return known[max(0, math.ceil(part * len(known)) - 1)][0]
