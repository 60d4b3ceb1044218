"""A cluster that is left to itself: who is placed where, who goes, and what waits."""

import numpy as np
import pytest

from policy.cluster.cluster import Cluster
from policy.nodes.scores import scores
from policy.objects.batch_job import BatchJob
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.queue import Queue
from policy.objects.queued_job import PodSet, QueuedJob
from policy.objects.reservation import Reservation
from policy.preemption.reclaim import name_of
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.stepwise import at_once
from tests.unit.given import pod
from tests.unit.given_jobs import NOW, gang, seen, sized, sized_pod, waiting
from tests.unit.given_nodes import table_of


def left_alone(*objects, terms=Terms()):  # noqa: B008 - it never changes
    """The nodes of the pods by name when all has come to rest, and the names of those that were evicted."""
    cluster = seen(*objects)
    simulation = Simulation(cluster, terms, NOW)
    for _ in simulation.come_to_rest_steps():
        pass
    return {each.name: each.node for each in cluster.pods.values()}, [each.pod.name for each in simulation.evictions]


@pytest.mark.parametrize(
    ("free", "request_", "points"),
    [
        ({"cpu": 4}, {"cpu": 1, "memory": 2**30}, 175),  # (75 + 75) / 2, and as much of both
        ({"cpu": 4}, {"cpu": 2, "memory": 2**30}, 149),  # (50 + 75) / 2, less a half of the difference
        ({"cpu": 4}, {"cpu": 1}, 172),  # counts 200Mi of memory in the first, and none in the second
        ({"cpu": 1}, {"cpu": 1, "memory": 2**30}, 100),
    ],
)
def test_nodes_are_ranked_as_the_scheduler_does_by_free_and_by_even_use(free, request_, points):
    table = table_of(sized("n1", **free))
    assert scores(table, pod("p", request=request_), np.array([0])).tolist() == [points]


def test_pods_spread_over_equal_nodes_and_the_first_by_name_wins_a_tie():
    placed, _ = left_alone(sized("n2"), sized("n1"), *(sized_pod(f"p{number}") for number in range(3)))
    assert placed == {"p0": "n1", "p1": "n2", "p2": "n1"}


def test_of_two_the_more_important_is_tried_first():
    placed, gone = left_alone(sized("n1"), sized_pod("low", 3), sized_pod("high", 3, priority=1))
    assert (placed, gone) == ({"low": "", "high": "n1"}, [])


def test_without_rules_the_scheduler_evicts_by_priority():
    placed, gone = left_alone(sized("n1"), sized_pod("low", 3, node="n1"), waiting("high", 3, priority=1))
    assert (placed, gone) == ({"high": "n1"}, ["low"])


def test_a_gang_starts_whole_or_not_at_all():
    placed, _ = left_alone(sized("n1"), sized("n2"), *gang("m0", "m1"))
    assert sorted(placed.values()) == ["n1", "n2"]
    placed, _ = left_alone(sized("n1"), *gang("m0", "m1"))
    assert set(placed.values()) == {""}


def test_pods_on_their_way_out_leave_room():
    placed, _ = left_alone(sized("n1"), sized_pod("going", 3, node="n1", terminating=True), waiting("p", 3))
    assert placed == {"p": "n1"}


def test_a_node_is_reserved_for_a_job_that_starves_and_others_are_kept_off_it():
    running, big, small = sized_pod("run", node="n1"), waiting("big", 3, age=7200), sized_pod("small", created=NOW)
    placed, _ = left_alone(sized("n1"), running, big, small, terms=Terms(3600, 100))
    assert placed == {"run": "n1", "big": "", "small": "n1"}, "it was there before the job was known to starve"
    starved = left_alone(sized("n1"), running, big, terms=Terms(3600, 100))
    assert starved[0]["big"] == ""


def test_a_plan_that_names_its_own_pod_as_a_victim_is_carried_out_all_the_same():
    cluster = seen(sized("n1"), sized_pod("run", 3, node="n1"), waiting("p", 3))
    own = name_of(cluster.pods["p"])
    cluster.upsert_reservation(Reservation("by-hand", own, "n1", (own, own), since=NOW))
    simulation = Simulation(cluster, Terms(), NOW)
    for _ in simulation.settle_steps():
        pass
    assert cluster.pods.keys() == {"run"}


def test_nobody_goes_for_a_plan_whose_node_is_lost():
    owner, victim = waiting("owner", 3, priority=1), sized_pod("victim", 3, node="n1", preemptible=True)
    cluster = seen(sized("n1", unschedulable=True), owner, victim)
    cluster.upsert_reservation(Reservation("made", name_of(owner), "n1", (name_of(victim),), since=NOW))
    simulation = Simulation(cluster, Terms(), NOW)
    for _ in simulation.come_to_rest_steps():
        pass
    assert simulation.evictions == []
    assert list(cluster.reservations.plans) == []


def test_a_job_that_its_part_as_last_known_refuses_is_asked_before_the_next_start():
    """After the start of the first, it is not known what is left for its namespace. The last is alike, but younger."""
    cluster = Cluster(settle_time=0)
    for node in ("n1", "n2"):
        cluster.upsert_node(Node(node, {"cpu": 4000, "pods": 100}))
    for namespace in "abc":
        cluster.upsert_namespace(Namespace(namespace, "q", queues_jobs=True))
    cluster.upsert_queue(Queue("q"))
    cluster.begin()
    simulation = Simulation(cluster, Terms(), NOW)
    for jobs in ([("c", 2, 1), ("a", 2, 1), ("a", 3, 2)], [("b", 1, 1), ("b", 3, 1), ("b", 1, 1)]):
        for number, (namespace, cpu, pods) in enumerate(jobs):
            name = f"{namespace}{number}"
            sets = (PodSet(pod("", namespace, name=name, request={"cpu": cpu}), pods),)
            job = QueuedJob(namespace, name, name, sets, pods, suspended=True, created=NOW - 100 + number)
            cluster.batch_jobs.upsert(BatchJob(namespace, name, name, ours=True))
            cluster.queued_jobs.upsert(job, NOW)
        at_once(simulation.settle_steps())
    assert [each.name for each in simulation.bound] == ["a1-0", "c0-0", "b0-0", "b1-0"]
