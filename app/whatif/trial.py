"""One trial: a copy of the cluster, some changes, and what has become of it when all has come to rest."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from app.whatif import changes as change
from app.whatif.changes import Change
from policy.cluster.cluster import Cluster
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.simulate.snapshot import Snapshot, copy


@dataclass(frozen=True, slots=True)
class Scene:
    """What trials start from. ``epoch`` is what to add to the snapshot's time to have seconds since the epoch."""

    taken: Snapshot
    terms: Terms
    epoch: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What has become of a cluster. ``placed``: UIDs of pods that waited, or are new, and run now."""

    cluster: Cluster
    simulation: Simulation
    placed: frozenset[str]

    def admits(self, namespace: str, name: str) -> bool:
        """Whether a pod of this name runs."""
        pod = self.cluster.pod(namespace, name)
        return pod is not None and pod.assigned


def run(scene: Scene, changes: Iterable[Change]) -> Generator[None, None, Trial]:
    """Tries changes. Raises Problem (422) for one that cannot be made."""
    cluster = yield from copy(scene.taken)
    trial = yield from run_on(cluster, scene, changes)
    return trial


def run_on(cluster: Cluster, scene: Scene, changes: Iterable[Change]) -> Generator[None, None, Trial]:
    """The same on a copy that was made already."""
    now = scene.taken.now
    for each in changes:
        change.apply(cluster, [each], now, now + scene.epoch)
        yield
    waiting = {pod.uid for pod in cluster.pods.values() if pod.pending}
    simulation = Simulation(cluster, scene.terms, now, scene.epoch)
    yield from simulation.come_to_rest()
    placed = frozenset(uid for uid in waiting if uid in cluster.pods and cluster.pods[uid].assigned)
    return Trial(cluster, simulation, placed)
