"""Pods that come and go, each with a name and labels that nobody has had yet, under quotas that change."""

import itertools
import random

import httpx

from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import elastic_quota, is_bound, pod

TEAMS = 10
NODES = 20
_STEP = 4
"""Cores that one team's quota gets from another's."""


class Churn:
    """So many pods, of which a part finds no room, and a part is replaced again and again."""

    def __init__(self, cluster: Cluster, pods: int, waiting: int, seed: int) -> None:
        self.made = 0
        self._cluster, self._api = cluster, cluster.api
        self._pods, self._room = pods, pods - waiting
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._alive: list[tuple[str, str]] = []
        self._teams: list[str] = []
        self._least: dict[str, int] = {}

    def prepare(self) -> None:
        """Nodes, teams with their quotas, and all pods."""
        self._cluster.nodes(NODES, cpu=self._room // NODES, pods=500)
        self._teams = [self._cluster.namespace("team") for _ in range(TEAMS)]
        for team in self._teams:
            self._least[team] = self._room // TEAMS
            self._change(team)
        self.count()
        self._fill()

    def replace(self, count: int) -> None:
        """So many pods go, and as many come; two quotas change."""
        for _ in range(min(count, len(self._alive))):
            namespace, name = self._alive.pop(self._random.randrange(len(self._alive)))
            try:
                self._api.delete("pods", name, namespace)
            except httpx.HTTPStatusError as error:  # it was evicted
                if error.response.status_code != httpx.codes.NOT_FOUND:
                    raise
        self._fill()
        giver, taker = self._random.sample(self._teams, 2)
        moved = min(_STEP, self._least[giver])
        self._least[giver] -= moved
        self._least[taker] += moved
        self._change(giver)
        self._change(taker)

    def count(self) -> int:
        """How many pods wait; from now on it is known which there are."""
        items = [item for team in self._teams for item in self._api.items("pods", team)]
        there = [item["metadata"] for item in items if "deletionTimestamp" not in item["metadata"]]
        self._alive = [(meta["namespace"], meta["name"]) for meta in there]
        return sum(not is_bound(item) for item in items)

    def _fill(self) -> None:
        for _ in range(self._pods - len(self._alive)):
            number, team = next(self._numbers), self._random.choice(self._teams)
            item = pod(f"pod-{number}-{self._random.getrandbits(32):x}", team)
            item["metadata"] |= {
                "labels": {"app": f"app-{number}", f"example.com/key-{number}": f"value-{number}"},
                "annotations": {f"example.com/note-{number}": f"text-{number}"},
            }
            self._api.create(item)
            self._alive.append((team, item["metadata"]["name"]))
            self.made += 1

    def _change(self, team: str) -> None:
        """A team may borrow a little, of what others leave."""
        least = self._least[team]
        self._api.apply(elastic_quota(team, min={"cpu": least}, max={"cpu": least + 2 * _STEP}))
