"""How far the waits in a replay are from those on a real control plane, by team: the same Jobs with the same policy.

Both see the same arrivals. Real Jobs start later, as the controllers and the scheduler take time. While each place is
used by one Job after the other, that adds up.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from app.replay.player import Played
from app.replay.summary import recorded, summary
from policy.simulate.replay import RecordedJob
from tests.bench.figures import Figure
from tests.bench.sizes import SCALE
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, install_definitions
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.replaying import Burst, Wanted

SHORTEST = max(2, 10 // SCALE)
"""Seconds that the shortest Job runs; the longest one runs for twice as long."""
SINGLES, GANGS, GANG = max(4, 16 // SCALE), max(1, 3 // SCALE), 4
"""Jobs of each team: so many of one pod, and so many of several."""
NODES, CORES = (3, 8) if SCALE == 1 else (1, 8)
MOST = 10
"""Percent by which waits may differ."""
QUOTAS, STATIC, NONE = "elastic quotas", "static quotas", "no quotas"


def run() -> list[Figure]:
    """Runs the same Jobs in four ways, each on a cluster of its own.

    Pods that are evicted would come back minutes later, for the controller of Jobs backs off: none are.
    """
    figures = list[Figure]()
    for whole, policy in ((True, QUOTAS), (True, NONE), (False, STATIC), (False, NONE)):
        with tempfile.TemporaryDirectory() as name:
            figures += _compare(Path(name), policy, whole=whole)
    return figures


def _compare(directory: Path, policy: str, *, whole: bool) -> list[Figure]:
    with ExitStack() as stack:
        control_plane = stack.enter_context(ControlPlane(directory / "control-plane"))
        install_definitions(control_plane.api)
        cluster = Cluster(control_plane)
        cluster.nodes(NODES, cpu=CORES)
        quotaward = stack.enter_context(Quotaward(control_plane))
        stack.enter_context(Scheduler(control_plane, extender(quotaward.url)))
        burst = stack.enter_context(Burst(cluster, quotaward, whole=whole))
        early, late, owner = teams = [burst.team(name) for name in ("early", "late", "owner")]
        if policy != NONE:
            for team, part in zip(teams, (4, 4, 2), strict=True):
                least = NODES * CORES // part
                cluster.quota(team, min={"cpu": least}, max={"cpu": NODES * CORES if policy == QUOTAS else least})
        jobs = [*_jobs(early, 0.0), *_jobs(late, 0.3 * SHORTEST), *_jobs(owner, 0.7 * SHORTEST)]
        burst.make(sorted(jobs, key=lambda each: each.after))
        wait_until(lambda: burst.ended() == sum(each.pods for each in jobs), "all Jobs have run", 900, every=0.5)
        played, log = burst.play(directory / "replay"), burst.log(directory / "replay")
        evicted = burst.evicted().total()
    how = f"{'whole Jobs' if whole else 'pods, groups'}, {policy}"
    told = f"pods evicted: {evicted}, in the replay {sum(each.evictions * each.job.pods for each in played.jobs)}"
    print(f"{how}: {told}", file=sys.stderr, flush=True)
    figures = [*_figures(how, played, log.jobs)]
    for each in figures:
        print(f"{each.what}: {each.detail}", file=sys.stderr, flush=True)
    return figures


def _jobs(team: str, after: float) -> Iterator[Wanted]:
    for number in range(SINGLES + GANGS):
        run = SHORTEST + 7 * number % (SHORTEST + 1)
        pods = GANG if number % (SINGLES // GANGS) == 3 else 1
        yield Wanted(f"{team}-{number:02}", team, pods, run, after)


def _figures(how: str, played: Played, jobs: list[RecordedJob]) -> Iterator[Figure]:
    """Compares the waits of each team."""
    for team in summary([played]).teams:
        real = recorded([job for job in jobs if job.team == team.team])
        for name, was, is_played in (("mean", real.mean, team.waits.mean), ("p50", real.p50, team.waits.p50)):
            what = f"waits in a replay, {how}: {name} of {team.team.rpartition('-')[0]}"
            assert was is not None and is_played is not None, "all have started"  # noqa: PT018
            detail = f"{was:.1f} s, in the replay {is_played:.1f} s"
            yield Figure(what, 100 * abs(is_played - was) / was, "%", MOST, detail=detail)
