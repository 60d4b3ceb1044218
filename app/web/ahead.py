"""The next hours of a queue: how many of its pods still wait as they are expected to start, and who starts when."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from operator import itemgetter

from app.pause import Pause
from app.times import rfc3339
from app.web.plots import Line, Plot, area_path
from app.whatif.expected_starts import ExpectedStarts
from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.simulate.expected_start import ExpectedStart

STEP = 15 * 60.0
"""Seconds of a step of the plot."""
STEPS = 48
"""Steps that are shown: twelve hours."""
NAMED = 20
"""Maximum number of pods that are named, the first to start."""


@dataclass(frozen=True, slots=True)
class Coming:
    """A pod or a Job that waits, when it is expected to start (RFC 3339), by what, and after whose end."""

    name: str
    at: str
    basis: str
    after: str


@dataclass(frozen=True, slots=True)
class Ahead:
    """A plot of those that wait, and the first to start. ``later`` start after that time, ``unknown`` nobody knows."""

    plot: Plot
    first: tuple[Coming, ...]
    more: int
    later: int
    unknown: int


async def ahead(cluster: Cluster, starts: ExpectedStarts, is_meant: Callable[[Pod], bool], now: float) -> Ahead | None:
    """Draws the next hours of the waiting pods that are meant; None if none waits, or nothing was computed yet."""
    pause, found, waiting, known = Pause(), list[tuple[float, str, ExpectedStart]](), 0, False
    leaving, soon, later = [0] * STEPS, 0, 0
    for pod in list(cluster.pending.values()):
        await pause.if_due()
        if pod.terminating or pod.uid in cluster.grants or not is_meant(pod):
            continue
        number = pod.counts_for
        waiting += number
        known = known or starts.was_sought([pod])
        start = starts.of([pod])
        if start is None:
            continue
        found.append((start.at, pod.title, start))
        step = max(0, int((start.at - now) / STEP))
        if step < STEPS:
            leaving[step] += number
            soon += number
        else:
            later += number
    if not waiting or not known:
        return None
    soonest = nsmallest(NAMED, found, key=itemgetter(0, 1))
    first = tuple(Coming(name, rfc3339(at), start.basis, ", ".join(start.after)) for at, name, start in soonest)
    return Ahead(_plot(waiting, leaving, soon), first, len(found) - len(first), later, waiting - soon - later)


def _plot(waiting: int, leaving: list[int], soon: int) -> Plot:
    """Draws how many wait at the end of each step."""
    series, left = list[int](), waiting
    for number in leaving:
        left -= number
        series.append(left)
    last = f"{waiting} now, {waiting - soon} in twelve hours"
    line = Line("", "waiting", "".join(area_path(tuple(series), waiting)), last)
    return Plot("Waiting pods", STEPS, str(waiting), (line,), f"Waiting pods: {last}")
