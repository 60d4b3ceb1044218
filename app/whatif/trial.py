"""A trial: a copy of the cluster, some changes, and the state when the simulation has come to rest."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.whatif import changes as change
from app.whatif.changes import Change
from policy.cluster.cluster import Cluster
from policy.reserve.starving import Terms
from policy.simulate import snapshot
from policy.simulate.simulation import Simulation
from policy.simulate.snapshot import Snapshot
from policy.stepwise import Steps


@dataclass(frozen=True, slots=True)
class Scene:
    """The start of trials. ``epoch``: seconds to add to the snapshot's time for seconds since the epoch.

    ``copies`` are those that were made. ``discard_steps`` takes them apart once nobody needs them any more.
    """

    taken: Snapshot
    terms: Terms
    epoch: float
    copies: list[Cluster] = field(default_factory=list)

    def copy_steps(self) -> Steps[Cluster]:
        """Returns a new copy of the cluster."""
        cluster = yield from snapshot.copy_steps(self.taken, self.copies)
        return cluster

    def discard_steps(self) -> Steps[None]:
        """Takes all copies apart."""
        while self.copies:
            yield from snapshot.discard_steps(self.copies.pop())


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial. ``placed``: UIDs of waiting or new pods that run now."""

    cluster: Cluster
    simulation: Simulation
    placed: frozenset[str]

    def admits(self, namespace: str, name: str) -> bool:
        """Whether a pod of this name runs."""
        pod = self.cluster.pod(namespace, name)
        return pod is not None and pod.assigned


def run_steps(scene: Scene, changes: Iterable[Change]) -> Steps[Trial]:
    """Tries changes on a new copy. Raises Problem (422) for a change that cannot be made."""
    cluster = yield from scene.copy_steps()
    trial = yield from run_on_steps(cluster, scene, changes)
    return trial


def run_on_steps(cluster: Cluster, scene: Scene, changes: Iterable[Change]) -> Steps[Trial]:
    """Tries changes on the given copy. Raises Problem (422) for a change that cannot be made."""
    now = scene.taken.now
    for each in changes:
        change.apply(cluster, [each], now, now + scene.epoch)
        yield
    there = {uid for uid, pod in cluster.pods.items() if pod.assigned}
    simulation = Simulation(cluster, scene.terms, now, scene.epoch)
    yield from simulation.come_to_rest_steps()
    placed = frozenset(uid for uid, pod in cluster.pods.items() if pod.assigned and uid not in there)
    return Trial(cluster, simulation, placed)
