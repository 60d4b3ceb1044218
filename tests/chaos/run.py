"""A while of chaos, and what the checker says of it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from tests.chaos.checker import Leeway, violations
from tests.chaos.faults import Faults
from tests.chaos.history import KINDS, History, Record, write
from tests.chaos.jobs import Jobs
from tests.chaos.promises import is_backfilled, kept, moved, promises
from tests.chaos.recorder import Recorder
from tests.chaos.reserved import job_of
from tests.chaos.stuck import stuck
from tests.chaos.system import System
from tests.chaos.workload import Size, Workload
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.pod_groups import install_pod_groups
from tests.controlplane.queueing import queueing
from tests.controlplane.quotaward import install_definitions

LEEWAY = Leeway(granted=40, seen=20)
"""Grants last 30 s; watches that were lost are tried again after up to 15 s."""
_QUIET = 3.0
_BOUNDED = 120.0
"""Seconds until every pod that may run runs, once all faults are over."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened, and what was not lawful of it."""

    seconds: float
    steps: int
    faults: Mapping[str, int]
    answers: int
    bindings: int
    evictions: int
    claims: int
    """How many claims had devices."""
    starts: int
    """How often a Job that waited as a whole was started."""
    taken_back: int
    """How often such a Job was suspended for others."""
    promised: int
    """How many reserved nodes had a promised start."""
    kept: int
    """How many of them had their job started by then, or soon after."""
    promised_jobs: int
    """How many Jobs that wait as a whole were promised their start."""
    moved: Mapping[str, int]
    """How often a promise was moved later or withdrawn, by what may do that."""
    backfilled: int
    """How many pods took of what was reserved for a job with a promised start."""
    gaps: int
    recovery: float
    """Seconds after the last fault until nobody waited who may run, and nothing happened any more."""
    violations: list[str]

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        moved = ", ".join(f"{count} moved: {why or 'by us'}" for why, count in sorted(self.moved.items()))
        return (
            f"{self.seconds:.0f} s, {self.steps} changes, {sum(self.faults.values())} faults ({faults}), "
            f"{self.answers} answers of Quotaward, {self.bindings} bindings and {self.evictions} evictions checked, "
            f"{self.claims} claims had devices, "
            f"{self.starts} Jobs started and {self.taken_back} taken back, "
            f"{self.promised} promised starts ({self.kept} kept, {moved}), {self.promised_jobs} of Jobs, "
            f"{self.backfilled} pods backfilled, {self.gaps} gaps, "
            f"at rest {self.recovery:.0f} s after the last fault, {len(self.violations)} violations"
        )


def run(control_plane: ControlPlane, directory: Path, size: Size, seed: int, seconds: float, lasting: float) -> Outcome:
    """So many seconds of workload and faults, then none until all is quiet. A fault lasts about ``lasting`` seconds."""
    cluster = Cluster(control_plane)
    install_definitions(cluster.api)
    install_pod_groups(cluster.api)
    workload = Workload(cluster, size, seed)
    system = System(control_plane, directory, seed)
    began = time.monotonic()
    try:
        with Recorder(cluster.api, (*KINDS, "jobs")) as recorder, queueing(cluster):
            workload.prepare()
            with system:
                faults = Faults(system, recorder, seed, lasting)
                with workload:
                    faults.make(seconds)
                over = time.monotonic()
                faults.clocks_are_right()
                system.mend()
                workload.settle()
                waiting, records = come_to_rest(recorder)
                recovery = time.monotonic() - over
            write(records, directory / "history.jsonl")
            history = History(records)
    finally:
        if not control_plane.api_server.alive:
            control_plane.start_api_server()
        cluster.wipe()
    lives, turns = history.lives.values(), Jobs.of(history).turns
    return Outcome(
        seconds=time.monotonic() - began,
        steps=workload.steps,
        faults=faults.count,
        answers=system.way_to_quotaward.passed,
        bindings=sum(life.by_scheduler for life in lives),
        evictions=sum(life.evicted < inf for life in lives),
        claims=len({claim for life in lives for claim in history.claims_of(life)}),
        starts=sum(turn.starts for turn in turns),
        taken_back=sum(not (turn.starts or turn.by_user) for turn in turns),
        promised=len({promise.uid for promise in promises(history)}),
        kept=kept(history),
        promised_jobs=len({job_of(promise.spec) for promise in promises(history)} - {""}),
        moved=moved(history, LEEWAY.granted, LEEWAY.seen),
        backfilled=sum(is_backfilled(history, life, LEEWAY.granted) for life in lives),
        gaps=recorder.gaps,
        recovery=recovery,
        violations=violations(history, LEEWAY) + waiting,
    )


def come_to_rest(recorder: Recorder) -> tuple[list[str], list[Record]]:
    """Waits until nothing happens any more and nobody waits who may run; else, who does. Returns also all until then.

    What happens later is nobody's fault: Quotaward is being stopped, and pods still end.
    """
    until = time.monotonic() + _BOUNDED
    while True:
        records = list(recorder.records)
        quiet = time.monotonic() - records[-1].at > _QUIET
        waiting = stuck(recorder.objects())
        if (quiet and not waiting) or time.monotonic() > until:
            return waiting, records
        time.sleep(0.5)
