"""Whatever else there is: a pod that is critical to the system is refused by nothing, and nobody takes it."""

from dataclasses import replace

import pytest
from hypothesis import given

from policy.cluster.cluster import Cluster
from policy.explain.verdicts import verdict_on
from policy.objects.group import Group
from policy.objects.membership import DEFAULT, Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.queue import Queue
from policy.objects.reservation import RECLAIM, STARVING, Reservation
from policy.preemption import reclaim, victims
from policy.preemption.plans import Plan
from policy.quota.admission import Rules
from policy.quota.elastic_quota import elastic_quota
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.stepwise import at_once
from tests.properties.world import seeds
from tests.unit.given import unreadable, wait_for_room
from tests.worlds.walk import Pick, by_dice, scaled

SYSTEM = "kube-system"
NAMESPACES = ("a", "b", "free", SYSTEM)
NODES = ("n1", "n2", "n3")
PRIORITIES = (0, 0, 1, 1_999_999_999, 2_000_000_000, 2_000_001_000, 2**31 - 1)
NO_ROOM = Unschedulable("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")


class World:
    """A crowded cluster, and what makes a pod exempt in it, said once more."""

    def __init__(self, pick: Pick, settle_times: tuple[float, ...] = (0, 0, 3)) -> None:
        rules = Rules(fair_share_preemption=pick((False, True)), evict_for_reserved=pick((False, True)))
        self.settles = pick(settle_times)
        self.cluster = cluster = Cluster(rules, settle_time=self.settles)
        self.of_namespace = {name: pick(("", "", "q", "gone")) for name in NAMESPACES}
        self.quotas = {name for name in NAMESPACES if pick((True, False))}
        self.queues = {name for name in ("q", DEFAULT) if pick((True, False))}
        self.of_group = {name: pick(("", "", "q", DEFAULT)) for name in NAMESPACES}
        for name in NODES:
            cluster.upsert_node(Node(name, {"cpu": pick((2, 4)), "pods": pick((9, 9, 3))}))
        for name in self.queues:
            kept, most = pick(({}, {}, {"cpu": 2})), pick(({}, {"cpu": 0}, {"cpu": 3}))
            cluster.upsert_queue(Queue(name, pick((1, 9)), most, kept, state=pick(("Open", "Open", "Closed"))))
        for name in NAMESPACES:
            cluster.upsert_namespace(Namespace(name, self.of_namespace[name], gated=pick((False, True))))
            cluster.upsert_group(Group(name, "g", pick((1, 2, 3)), queue=self.of_group[name]))
            if name in self.quotas:
                readable = elastic_quota(name, "quota", 0.0, {"cpu": pick((0, 1, 4))}, pick(({}, {"cpu": 0})))
                cluster.upsert_quota(pick((readable, readable, unreadable(name))))
        for number in range(14):
            cluster.upsert_pod(self._pod(pick, f"p{number}"), now=0)
        cluster.tick(0)
        at_once(cluster.divide_steps())
        self._promise(pick)

    def _pod(self, pick: Pick, uid: str) -> Pod:
        standing = pick(({"node": pick(NODES)}, {"unschedulable": NO_ROOM}, {"unschedulable": NO_ROOM}, {}))
        return Pod(
            uid,
            pick(NAMESPACES),
            uid,
            {"cpu": pick((1, 1, 2, 0)), "pods": 1},
            priority=pick(PRIORITIES),
            preemptible=pick((True, True, True, False)),
            created=float(pick(range(3))),
            queue=pick(("", "", "", "q", DEFAULT)),
            group=pick(("", "", "g", "none")),
            owner=pick(("", "", "", "DaemonSet")),
            **standing,
        )

    def _promise(self, pick: Pick) -> None:
        """Room is held, nodes are reserved, and some pods have come through; others may have before."""
        cluster = self.cluster
        if self.settles:
            cluster.in_flight.suspect(now=0)
        for pod in list(cluster.pending.values()):
            match pick(range(6)):
                case 0 | 1:
                    reason = pick((RECLAIM, STARVING))
                    kept = Reservation(f"r-{pod.uid}", reclaim.name_of(pod), pick(NODES), (), 0.0, reason)
                    cluster.upsert_reservation(replace(kept, job=f"pods/{pod.name}" if reason == STARVING else ""))
                case 2 if not cluster.unsettled:
                    cluster.admit(pod, now=0)

    def is_exempt(self, pod: Pod) -> bool:
        named = pod.queue, self.of_group[pod.namespace] if pod.group == "g" else "", self.of_namespace[pod.namespace]
        bound = pod.namespace in self.quotas or (self.queues and any(named))
        return pod.priority >= 2_000_000_000 and (pod.namespace == SYSTEM or not bound)

    def waiting(self) -> list[Pod]:
        return list(self.cluster.pending.values())


@given(seeds)
def test_no_rule_refuses_an_exempt_pod_and_no_node_is_kept_from_it(seed):
    world = World(by_dice(seed))
    cluster = world.cluster
    for pod in world.waiting():
        exempt = world.is_exempt(pod)
        assert cluster.is_exempt(pod) == exempt
        if exempt:
            assert verdict_on(cluster, pod.namespace, pod.name).outcome == "admissible"
            assert cluster.reservations.nodes_held_from(pod) | cluster.reservations.nodes_reserved_from(pod) == set()
            assert cluster.check(pod) is None
            used = cluster.ledger.account(pod.namespace).used.get("pods", 0)
            counted = pod.uid in cluster.grants
            assert cluster.admit(pod, now=0, offered=[]) is None
            assert cluster.ledger.account(pod.namespace).used["pods"] == used + (not counted)


@given(seeds)
def test_nobody_takes_a_critical_pod_and_nothing_is_planned_for_an_exempt_one(seed):
    world = World(by_dice(seed))
    cluster = world.cluster
    assert not any(world.is_exempt(pod) for pod in wait_for_room(cluster, now=100.0, delay=1.0))
    for pod in world.waiting():
        plans = victims.victims_on(cluster, pod, NODES)
        found = victims.plan(cluster, pod)
        for each in (*plans, *([found] if isinstance(found, Plan) else ())):
            assert all(victim.priority < 2_000_000_000 for victim in each.victims)


@pytest.mark.parametrize("part", range(4))
def test_none_goes_whatever_becomes_of_the_cluster(part):
    for seed in range(100 * part, 100 * part + scaled(25)):
        world = World(by_dice(seed), settle_times=(0,))
        simulation = Simulation(world.cluster, Terms(starving_after=10.0), now=100.0)
        at_once(simulation.come_to_rest_steps())
        assert all(each.pod.priority < 2_000_000_000 for each in simulation.evictions), seed
