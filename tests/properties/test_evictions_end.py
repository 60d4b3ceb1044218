"""Evictions end, and each one helps, in worlds where every evicted pod is created anew at once.

So a Job's or a Deployment's controller does. The simulation plays kube-scheduler and our controllers on small worlds
with elastic quotas, queues, shares of namespaces, gangs, priorities and disruption budgets.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.objects.constraints import Selector
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.queue import ROOT, Queue
from policy.quota.admission import Rules
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from tests.unit.given import quota
from tests.worlds.walk import Pick, by_dice, scaled

NAMESPACES = ("a", "b", "c")
MOST_EVICTIONS = 200
"""In one world. Worlds that come to rest need a tenth of that."""
PARTS = 4
IN_VAIN = {189}
"""Worlds with a tree in which somebody goes in vain, as without one: another pod lacks only the GPU that is freed."""
RARE = (1956, 3661)
"""Worlds in which a part of the rules is needed that hardly any other world needs (see mutants.py)."""


class Recreating(Simulation):
    """A simulation in which every evicted pod is created anew at once.

    ``helped`` says of each eviction whether the pod that it was for ran afterwards.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, Terms(), now=1000.0)
        self.helped: list[bool] = []

    def _bind(self, pod: Pod, node: str) -> None:
        self.helped = [
            helped or each.for_ is None or self._takes_the_place_of(pod, each.for_)
            for each, helped in zip(self.evictions, self.helped, strict=True)
        ]
        super()._bind(pod, node)

    def _takes_the_place_of(self, pod: Pod, other: Pod) -> bool:
        """Whether it is that pod, or a more important one that may go before it: of its team, or where no rule says."""
        free_of_rules = not (self.cluster.is_governed(other) and self.cluster.is_governed(pod))
        may = pod.namespace == other.namespace or free_of_rules
        return pod.uid == other.uid or (may and pod.priority > other.priority)

    def _kept_outside(self, victim: Pod, for_: Pod | None) -> set[tuple[str, str]]:
        """Of the queues that a victim is in and the other pod is not: which use as much as is guaranteed to them."""
        queues = self.cluster.ledger.queues
        name, own = self.cluster.queue_of(victim), self.cluster.queue_of(for_) if for_ is not None else ""
        inside = {own, *queues.tree.above(own)}
        ways = {each: queues.node(each) for each in (name, *queues.tree.above(name)) if each and each not in inside}
        return {
            (each, resource)
            for each, node in ways.items()
            for resource in victim.request
            if node.taken.get(resource, 0) >= node.division.guarantee.get(resource, 0) > 0
        }

    def _evict(self, victim: Pod, for_: Pod | None, reason: str) -> None:
        kept = self._kept_outside(victim, for_) if for_ is not None else set()
        super()._evict(victim, for_, reason)
        if victim.uid not in self.cluster.pods:
            assert not kept or kept <= self._kept_outside(victim, for_), "somebody falls below a guarantee"
        self.helped += [for_ is None] * (len(self.evictions) - len(self.helped))
        if victim.uid not in self.cluster.pods:
            assert len(self.evictions) < MOST_EVICTIONS, "evictions do not end"
            anew = replace(victim, uid=f"{victim.uid}'", node="", started=0.0, unschedulable=None, created=self.time)
            self.cluster.upsert_pod(anew, self.now)


@dataclass
class World:
    """A crowded cluster, and what comes to it one after the other."""

    cluster: Cluster
    arrivals: list[list[Pod]]


def world_of(seed: int) -> World:
    """The world of this number."""
    pick = by_dice(seed)
    governed_by = pick(("quotas", "queues", "both", "shares"))
    cluster = Cluster(Rules(fair_share_preemption=governed_by == "shares" or pick((False, True))), settle_time=0)
    cpu = 0
    for number in range(pick((1, 1, 1, 2, 3))):
        size = pick((4, 6, 8))
        cpu += size
        cluster.upsert_node(Node(f"n{number}", {"cpu": size * 1000, "gpu": pick((0, 0, 4)), "pods": 20}))
    if governed_by in ("quotas", "both"):
        _give_quotas(cluster, pick, cpu)
    if governed_by != "quotas":
        _give_queues(cluster, pick, cpu, shared=governed_by == "shares")
    arrivals = [_unit(cluster, pick, f"u{number}", cpu) for number in range(pick((4, 6, 9)))]
    if pick((False, False, True)):
        anybody = Selector(())
        cluster.upsert_budget(Budget(pick(NAMESPACES), "budget", anybody, pick((0, 1, 3))))
    return World(cluster, arrivals)


def _give_quotas(cluster: Cluster, pick: Pick, cpu: int) -> None:
    left = cpu
    for namespace in NAMESPACES[: pick((2, 3))]:
        least = pick([each for each in (0, 2, 3, 4, cpu // 2, cpu // 2, cpu // 3) if each <= left])
        left -= least
        most = {} if pick((True, True, False)) else {"cpu": max(least, pick((2, 4, 6)))}
        cluster.upsert_quota(quota(namespace, least={"cpu": least} | pick(({}, {}, {"gpu": 2})), most=most))


def _give_queues(cluster: Cluster, pick: Pick, cpu: int, *, shared: bool) -> None:
    names = ("q1",) if shared and pick((True, False)) else ("q1", "q2")
    for name in names:
        guarantee = {"cpu": pick((0, 1, 2)) * 1000} if pick((False, False, True)) else {}
        cluster.upsert_queue(
            Queue(
                name,
                weight=pick((1, 1, 2, 3)),
                guarantee=guarantee,
                capability=pick(({}, {}, {}, {"cpu": max(1, cpu // 2) * 1000})),
                reclaimable=pick((True,) * 9 + (False,)),
                priority=pick((0, 0, 0, 1)),
            )
        )
    for namespace in NAMESPACES:
        cluster.upsert_namespace(Namespace(namespace, pick(names)))
        if pick((False, False, True)):
            cluster.upsert_weight(namespace, "weight", pick((2, 3)))


def tree_of(seed: int) -> World:
    """The world of this number whose queues stand in a tree."""
    pick = by_dice(seed)
    cluster, cpu = Cluster(Rules(fair_share_preemption=pick((False, True))), settle_time=0), 0
    for number in range(pick((1, 1, 2, 3))):
        size = pick((4, 6, 8))
        cpu += size
        cluster.upsert_node(Node(f"n{number}", {"cpu": size * 1000, "gpu": pick((0, 0, 4)), "pods": 20}))
    if pick((False, False, True)):
        _give_quotas(cluster, pick, cpu)
    parents, leaves = {"q1": pick((ROOT, "A")), "q2": "A", "q3": pick((ROOT, "B")), "q4": pick(("A", "AA", "B"))}, []
    parents |= {"A": ROOT, "B": ROOT, "AA": "A"}
    for name, parent in parents.items():
        cluster.upsert_queue(
            Queue(
                name,
                weight=pick((1, 1, 2, 3)),
                guarantee={"cpu": pick((0, 1, 2)) * 1000} if pick((False, False, True)) else {},
                capability=pick(({}, {}, {}, {"cpu": max(1, cpu // 2) * 1000})),
                reclaimable=pick((True,) * 9 + (False,)),
                priority=pick((0, 0, 0, 1)),
                parent=parent,
            )
        )
        leaves += [name] if name not in parents.values() else []
    for namespace in NAMESPACES:
        cluster.upsert_namespace(Namespace(namespace, pick(leaves)))
    arrivals = [_unit(cluster, pick, f"u{number}", cpu) for number in range(pick((4, 6, 9)))]
    if pick((False, False, True)):
        cluster.upsert_budget(Budget(pick(NAMESPACES), "budget", Selector(()), pick((0, 1, 3))))
    return World(cluster, arrivals)


def _unit(cluster: Cluster, pick: Pick, name: str, cpu: int) -> list[Pod]:
    """A pod, a few that are alike, or a gang."""
    namespace, size = pick(NAMESPACES), pick((1, 2, 2, 3))
    number, priority = pick((1, 2, 2, 3, 3, 4)), pick((0, 0, 0, 5, 10))
    request = {"cpu": size * 1000, "pods": 1} | ({"gpu": 1} if pick((False, False, False, True)) else {})
    group = ""
    if number > 1 and pick((True, True, False)):
        minimum, group = pick((number, number, number - 1)), f"x/{name}"
        cluster.upsert_group(Group(namespace, group, minimum=minimum, created=float(len(name))))
    preemptible = pick((True,) * 9 + (False,))
    return [
        Pod(
            f"{name}-{each}",
            namespace,
            f"{name}-{each}",
            request,
            priority=priority,
            group=group,
            preemptible=preemptible,
            created=float(pick(range(3))),
            labels={"app": name},
        )
        for each in range(number)
    ]


def play(seed: int, world: Callable[[int], World] = world_of) -> None:
    """Lets everything come to the world of this number, and the world come to rest after each."""
    try:
        _play(world(seed))
    except BaseException as failure:
        failure.add_note(f"world {seed}")
        raise


def _play(world: World) -> None:
    simulation = Recreating(world.cluster)
    for pods in world.arrivals:
        for pod in pods:
            world.cluster.upsert_pod(pod, simulation.now)
        _settle(simulation)
        simulation.advance(simulation.now + 40)
        _settle(simulation)
    assert all(simulation.helped), "somebody went in vain"


def _settle(simulation: Recreating) -> None:
    for _ in simulation.settle_steps():
        pass


@pytest.mark.parametrize("part", range(PARTS))
def test_evictions_end_and_each_one_helps_where_evicted_pods_come_back_at_once(part):
    for seed in range(scaled(100)):
        play(PARTS * seed + part)


@pytest.mark.parametrize("part", range(PARTS))
def test_so_they_do_where_queues_stand_in_a_tree_and_guarantees_are_kept(part):
    for seed in range(scaled(60)):
        if PARTS * seed + part not in IN_VAIN:
            play(PARTS * seed + part, tree_of)


@pytest.mark.parametrize("seed", RARE)
def test_so_it_is_in_rare_worlds(seed):
    play(seed)
