"""A long while of churn: what the process has and does by the minute, and whether either grows."""

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.bench.figures import Figure
from tests.churn.churn import Churn
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.processes import processor_seconds, resident_memory
from tests.controlplane.quotaward import Quotaward, install_definitions
from tests.controlplane.scheduler import Scheduler, extender

PODS, WAITING, PACE = 1500, 700, 20
SETTLED_AFTER = 12_000
"""Pods, those of ten minutes, after which memory and processor time are to be the same; of a short run the first third.

By then as much is remembered as may be, of which labels are most: those of 8,192 kinds of pods, some 10 MB.
"""
MEMORY_MAY_GROW, WORK_MAY_GROW = 1.03, 1.15
"""How many times as much as in the first third after that there may be in the last third, in the middle of each."""


@dataclass(frozen=True, slots=True)
class Minute:
    """What there was of a minute: MB at its end, milliseconds of processor time for each pod that was made."""

    memory: float
    work: float
    made: int
    waiting: int


def run(control_plane: ControlPlane, minutes: int, seed: int, tell: Callable[[Minute], None]) -> list[Minute]:
    """So many minutes of churn, in a cluster that is empty; each is told as it ends."""
    cluster, passed = Cluster(control_plane), []
    install_definitions(cluster.api)
    churn = Churn(cluster, PODS, WAITING, seed)
    with (
        Quotaward(control_plane) as quotaward,
        ControllerManager(control_plane, "disruption-controller"),
        Scheduler(control_plane, extender(quotaward.url)),
    ):
        churn.prepare()
        pid = quotaward.process.pid
        for _ in range(minutes):
            made, worked = churn.made, processor_seconds(pid)
            _pass(churn, 60)
            waiting, made = churn.count(), churn.made - made
            passed.append(Minute(resident_memory(pid), 1000 * (processor_seconds(pid) - worked) / made, made, waiting))
            tell(passed[-1])
    return passed


def _pass(churn: Churn, seconds: int) -> None:
    """So many seconds; where the machine is too slow for the pace, fewer pods come and go."""
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < seconds:
        churn.replace(PACE)
        time.sleep(max(0.0, 1 - (time.monotonic() - began - elapsed)))


def figures(minutes: list[Minute]) -> list[Figure]:
    """Whether memory and processor time for a pod are the same at the end as after a while."""
    made = itertools.accumulate(minute.made for minute in minutes)
    settled = minutes[min(sum(count < SETTLED_AFTER for count in made), len(minutes) // 3) :]
    third = max(1, len(settled) // 3)
    early, late = settled[:third], settled[-third:]
    return [
        _growth("memory", "MB", [m.memory for m in early], [m.memory for m in late], MEMORY_MAY_GROW),
        _growth("processor time for a pod", "ms", [m.work for m in early], [m.work for m in late], WORK_MAY_GROW),
        Figure("pods that waited", statistics.median(m.waiting for m in minutes), "", detail=f"of {PODS}"),
    ]


def _growth(what: str, unit: str, early: list[float], late: list[float], bar: float) -> Figure:
    first, last = statistics.median(early), statistics.median(late)
    detail = f"{first:.1f} {unit} -> {last:.1f} {unit}"
    return Figure(f"{what}, at the end against after a while", last / first, "x", bar, 1.0, detail=detail)
