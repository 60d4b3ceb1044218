"""When pods that wait will start, if all goes on as it is: pods end at their run times, and nobody new comes.

Pods are evicted as in a cluster that goes on: also once their min-run-times no longer protect them.

The scheduler and our controllers take no time, as in a story (policy.simulate.timeline). A pod of which nobody says how
long it runs ends when it is estimated to, or never. One that has outlived what is only said, or that should be gone but
stays, never ends.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush, nsmallest
from math import inf

from policy.cluster.cluster import Cluster
from policy.cluster.unschedulable import PATIENCE
from policy.objects.pod import Pod
from policy.objects.queued_job import uid_of_stand_in
from policy.reserve.starving import Terms
from policy.simulate.earliest_start import earliest_steps
from policy.simulate.simulation import Simulation
from policy.stepwise import Steps

MOST_MOMENTS = 1000
"""Times at which something ends that are looked at: tenants may write any number of different run times."""
NAMED = 5
"""Pods that are named of those that have to end first."""


DECLARED, ESTIMATED = "declared", "estimated"
"""Bases of an expected start: run times that somebody says, or some of them by pods that have ended."""


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """When a pod starts, in seconds since the epoch, and the first of the pods whose end lets it.

    ``basis``: ``ESTIMATED`` if some pod that ends until then does so by an estimate.
    """

    at: float
    after: tuple[str, ...]
    basis: str = DECLARED


Estimate = Callable[[Pod, float], float | None]
"""Returns when a pod ends that runs, or starts at this time; None if that cannot be estimated."""


def never(_pod: Pod, _now: float) -> float | None:
    """Estimates nothing."""
    return None


class Forecast:
    """Plays what comes, on a cluster that nobody else uses. ``found`` has the starts so far, by UID of the pod.

    A Job that waits as a whole has the UID of its stand-in, and starts with its first pod. ``waiting`` are the UIDs of
    those that have not started. ``earliest``: when each could start at the earliest, were its job alone in line (see
    policy.simulate.earliest_start).
    """

    def __init__(self, cluster: Cluster, terms: Terms, now: float, epoch: float, estimate: Estimate = never) -> None:
        self.found: dict[str, ExpectedStart] = {}
        self.earliest: dict[str, float] = {}
        self.waiting = set(cluster.pending)
        self._epoch = epoch
        self._simulation = Simulation(cluster, terms, now, epoch)
        self._ends: list[tuple[float, str]] = []
        self._estimate = estimate
        self._estimated: set[str] = set()
        self._basis = DECLARED

    def play_steps(self) -> Steps[bool]:
        """Goes on until all have started, or nothing more is to come. Returns False if too much comes."""
        simulation, ended = self._simulation, list[str]()
        for pod in list(simulation.cluster.pods.values()):
            self._note_end(pod)
            yield
        said = [each for each in self._ends if each[1] not in self._estimated] if self._estimated else self._ends
        self.earliest = yield from earliest_steps(simulation.cluster, said, simulation.time)
        for _ in range(MOST_MOMENTS):
            before = simulation.steps
            yield from simulation.settle_steps()
            yield from self._observe_steps(ended)
            quiet_at = simulation.time + PATIENCE + 1 if ended or simulation.steps != before else inf
            again_at = simulation.again_at + self._epoch if simulation.again_at > simulation.now else inf
            at = min(self._ends[0][0] if self._ends else inf, quiet_at, again_at)
            if not self.waiting or at == inf:
                return True
            simulation.advance(at - self._epoch)
            ended = yield from self._end_what_is_over_steps(at)
            yield
        return False

    def _note_end(self, pod: Pod) -> None:
        """Notes when a pod on a node ends, if that is known."""
        if not pod.assigned:
            return
        now, cluster = self._simulation.time, self._simulation.cluster
        times = cluster.run_times
        if cluster.leaving.is_late(pod):
            return  # it should be gone by now, and nobody knows whether it will ever be
        end = pod.deletion_time if pod.terminating else times.ends_at(pod, now)
        if end is not None and end <= now and not pod.terminating:
            end = times.ends_at(pod, now, enforced=True)
        elif end is None and not times.unreadable(pod):
            end = self._estimate(pod, now)
            if end is not None:
                self._estimated.add(pod.uid)
        if end is not None:
            heappush(self._ends, (max(end, now + 1), pod.uid))

    def _end_what_is_over_steps(self, at: float) -> Steps[list[str]]:
        """Ends the pods whose time is over; returns their names. All pods of a cluster may end at once."""
        cluster, ended = self._simulation.cluster, list[str]()
        while self._ends and self._ends[0][0] <= at:
            yield
            pod = cluster.pods.get(heappop(self._ends)[1])
            if pod is None or not pod.assigned:
                continue  # it was evicted
            ended.append(pod.title)
            self._basis = ESTIMATED if pod.uid in self._estimated else self._basis
            if pod.terminating:
                cluster.delete_pod(pod.uid)
            else:
                cluster.upsert_pod(replace(pod, finished=True, succeeded=True), self._simulation.now)
        return ended

    def _observe_steps(self, ended: Iterable[str]) -> Steps[None]:
        """Notes who has started."""
        simulation, after = self._simulation, tuple(nsmallest(NAMED, ended))
        for pod in simulation.bound:
            for uid in (pod.uid, uid_of_stand_in(pod.uid.rpartition("/")[0])):
                if uid in self.waiting:
                    self.waiting.discard(uid)
                    self.found[uid] = ExpectedStart(simulation.time, after, self._basis)
            self._note_end(pod)
            yield
        simulation.bound.clear()
        simulation.evictions.clear()
