"""Worlds in which somebody borrows and somebody takes back, all of them Jobs, whose evicted pods come again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object, job
from tests.controlplane.pod_groups import install_pod_groups, pod_group


@dataclass(frozen=True)
class Load:
    """So many Jobs of so many pods of so many cores; ``together``: each starts only as a whole."""

    jobs: int
    pods: int = 1
    cpu: int = 1
    together: bool = False

    @property
    def _names(self) -> list[str]:
        return [f"job-{number}" for number in range(self.jobs)]

    def groups(self, namespace: str) -> list[Object]:
        return [pod_group(name, namespace, self.pods) for name in self._names] if self.together else []

    def objects(self, namespace: str) -> list[Object]:
        return [
            job(name, namespace, self.pods, self.cpu, name if self.together else "", backoffLimit=100)
            for name in self._names
        ]


@dataclass(frozen=True)
class Team:
    """What a team runs, and what it has a right to: a quota, or a queue (by name) that may be others', too."""

    load: Load
    quota: Mapping[str, int] = field(default_factory=dict)
    queue: str = ""


@dataclass(frozen=True)
class World:
    """A node of so many cores: ``first`` fills it, and then ``then`` comes.

    In the end so many pods of the first and of the other run, and so many were evicted.
    """

    cpu: int
    first: Team
    then: Team
    end: tuple[int, int]
    evicted: int
    flags: tuple[str, ...] = ()

    def set_up(self, cluster: Cluster) -> list[str]:
        """The node, and the namespaces of both teams with what they have a right to."""
        cluster.node(cpu=self.cpu)
        teams = (self.first, self.then)
        for name in {team.queue for team in teams if team.queue}:
            cluster.queue(name)
        if any(team.load.together for team in teams):
            install_pod_groups(cluster.api)
        namespaces = []
        for name, team in zip(("first", "then"), teams, strict=True):
            namespaces.append(cluster.namespace(name, team.queue or None))
            if team.quota:
                bounds = {bound: {"cpu": amount} for bound, amount in team.quota.items()}
                cluster.quota(namespaces[-1], **bounds)
        return namespaces
