"""In which order a simulation tries what waits: as gates are opened, and else as the scheduler's queue is."""

import random

import pytest

from policy.cluster.cluster import Cluster
from policy.cluster.gates import LOOKAHEAD
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod, turn
from policy.objects.queue import Queue
from policy.objects.queued_job import PodSet, QueuedJob
from policy.queueing.ungating import UngatingRound
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.simulate.trial_order import TrialOrder
from policy.stepwise import at_once
from tests.unit.given import pod

NOW = 1000.0
CORES = 400


def world(jobs, queues=(), namespaces=()):
    """Jobs that wait as a whole: (namespace, name, pods, cpu of each, priority, created).

    ``queues``: (name, weight, priority); ``namespaces``: (name, queue, weight).
    """
    cluster = Cluster(settle_time=0)
    cluster.upsert_node(Node("n1", {"cpu": CORES, "pods": 1000}))
    for name, weight, priority in queues:
        cluster.upsert_queue(Queue(name, weight, {}, {}, priority=priority))
    for name in {each[0] for each in jobs}:
        cluster.upsert_namespace(Namespace(name, queues_jobs=True))
    for name, queue, weight in namespaces:
        cluster.upsert_namespace(Namespace(name, queue, queues_jobs=True))
        cluster.upsert_weight(name, "weight", weight)
    cluster.begin()
    for namespace, name, number, cpu, priority, created in jobs:
        sets = (PodSet(Pod("", namespace, name, {"cpu": cpu, "pods": 1}, priority=priority), number),)
        known = QueuedJob(namespace, name, name, sets, number, suspended=True, created=created)
        cluster.queued_jobs.upsert(known, NOW)
    at_once(cluster.divide_steps())
    return cluster


def started(cluster):
    """The Jobs that start at once in a simulation, in that order."""
    simulation = Simulation(cluster, Terms(), NOW)
    at_once(simulation._place_steps())
    return list(dict.fromkeys(each.uid.partition("/")[0] for each in simulation.bound))


def let_go(cluster):
    """The Jobs that the gate controller starts in one round, in that order."""
    return [pods[0].stands_for.name for pods in UngatingRound(cluster, LOOKAHEAD).run(NOW) if pods]


def test_teams_take_turns_however_early_one_has_made_its_jobs():
    jobs = [("a", f"a{n}", 1, 1, 0, 1.0) for n in range(4)] + [("b", f"b{n}", 1, 1, 0, 9.0) for n in range(3)]
    assert "".join(name[0] for name in started(world(jobs))) == "abababa"


def test_a_team_that_weighs_more_starts_more():
    jobs = [(team, f"{team}{n}", 1, 1, 0, 1.0) for team in "ab" for n in range(9)]
    first = started(world(jobs, namespaces=[("a", "", 1), ("b", "", 2)]))[:9]
    assert sorted(name[0] for name in first) == ["a"] * 3 + ["b"] * 6


@pytest.mark.parametrize("seed", range(30))
def test_jobs_start_in_the_order_in_which_the_gate_controller_starts_them(seed):
    dice = random.Random(seed)
    queues = [(name, dice.randint(1, 4), dice.randint(0, 1)) for name in ("q", "r")]
    namespaces = [(name, dice.choice(("", "q", "r")), dice.randint(1, 3)) for name in "abcde"]
    jobs = [
        (
            team,
            f"{team}{n:02}",
            dice.choice((1, 1, 4)),
            dice.choice((1, 2)),
            dice.randint(0, 1),
            float(dice.randint(1, 9)),
        )
        for team in "abcde"
        for n in range(12)
    ]
    expected = let_go(world(jobs, queues, namespaces))
    assert started(world(jobs, queues, namespaces)) == expected
    assert len(expected) == len(jobs)


def test_pods_before_the_scheduler_come_first_by_priority_and_age():
    cluster = world([("a", "old", 1, 1, 0, 1.0), ("a", "new", 1, 1, 0, 5.0)])
    [line] = cluster.gates.lines.values()
    free = [pod("young", "b", created=9.0), pod("high", "b", created=9.0, priority=1), pod("middle", "b", created=3.0)]
    order = TrialOrder(cluster, [(turn(each), each) for each in (*[job.first() for job in line], *free)])
    found = []
    while order:
        found.append(order.pop()[1].name)
    assert found == ["high", "middle", "young", "job/old", "job/new"]
