"""A recorded workload that is played on a cluster: how much work that is. What it tells: tests/unit/app/test_replay.py.

Work is counted in lines of Python that are run, as seconds vary.
"""

import pytest

from policy.cluster.cluster import Cluster
from policy.objects.node import Node
from policy.quota.elastic_quota import elastic_quota
from policy.reserve.starving import Terms
from policy.simulate.delays import AT_ONCE, Delays
from policy.simulate.replay import RecordedJob, Replay
from policy.simulate.simulation import Simulation
from policy.stepwise import at_once
from tests.unit.app.lines import lines_once

TEAMS, CORES = 3, 24
MAX = {"cpu": 1000 * CORES // TEAMS}
MORE_THAN_DOUBLE = 2.5


def work(jobs, most):
    """The lines that it takes to play jobs of a few kinds that all come at once."""
    cluster = Cluster(settle_time=0)
    for number in range(CORES // 8):
        cluster.upsert_node(Node(f"n{number}", {"cpu": 8000, "pods": 100}))
    for team in range(TEAMS):
        cluster.upsert_quota(elastic_quota(f"t{team}", "q", 0.0, MAX, most))
    cluster.begin()
    recorded = [
        RecordedJob(
            name=f"j{number:04}",
            team=f"t{number % TEAMS}",
            submitted=0.0,
            run=60.0 + number % 7,
            pods=1 + number % 4,
            request={"cpu": 2000, "pods": 1},
        )
        for number in range(jobs)
    ]
    replay = Replay(Simulation(cluster, Terms(), 1e9), recorded)
    lines = lines_once(at_once, replay.play_steps())
    assert all(each.ended is not None for each in replay.played.values())
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("most", [{}, MAX], ids=["by room", "by max"])
def test_twice_the_jobs_on_a_contended_cluster_take_twice_the_work(most):
    assert work(220, most) <= MORE_THAN_DOUBLE * work(110, most)


def work_beside(waiting):
    """The lines that it takes to play ten small jobs while so many large ones wait that are alike."""
    cluster = Cluster(settle_time=0)
    cluster.upsert_node(Node("n0", {"cpu": 8000, "pods": 100}))
    cluster.begin()
    cpu = {"cpu": 4000, "pods": 1}
    jobs = [RecordedJob("first", "t", submitted=0.0, run=1000.0, pods=1, request=cpu)]
    jobs += [RecordedJob(f"large{n}", "t", submitted=1.0, run=10.0, pods=2, request=cpu) for n in range(waiting)]
    jobs += [RecordedJob(f"s{n}", "t", submitted=10.0 + n, run=2.0, pods=1, request=cpu) for n in range(10)]
    replay = Replay(Simulation(cluster, Terms(), 1e9), jobs)
    at_once(replay.play_steps(9.0))
    lines = lines_once(at_once, replay.play_steps(40.0))
    assert sum(each.ended is not None for each in replay.played.values()) == 10
    return lines


def test_ten_times_the_jobs_that_wait_take_no_more_work_for_each_moment():
    assert work_beside(500) <= 1.1 * work_beside(50)


@pytest.mark.parametrize(("starving_after", "starts"), [(60.0, 1000.0), (1e9, 3052.0)])
def test_a_job_that_waits_as_a_whole_and_starves_has_nodes_reserved(starving_after, starts):
    cluster = Cluster(settle_time=0)
    cluster.upsert_node(Node("n0", {"cpu": 2000, "pods": 100}))
    cluster.begin()
    cpu = {"cpu": 1000, "pods": 1}
    jobs = [RecordedJob("first", "t", submitted=0.0, run=1000.0, pods=1, request=cpu)]
    jobs += [RecordedJob("large", "t", submitted=1.0, run=10.0, pods=2, request=cpu)]
    jobs += [RecordedJob(f"s{n}", "t", submitted=2.0 + 100 * n, run=150.0, pods=1, request=cpu) for n in range(30)]
    terms = Terms(starving_after=starving_after, max_nodes_percent=100)
    replay = Replay(Simulation(cluster, terms, 1e9), jobs)
    at_once(replay.play_steps())
    assert replay.played["large"].first == starts


@pytest.mark.parametrize("gangs", [None, Terms()], ids=["whole", "gangs"])
@pytest.mark.parametrize(
    ("run", "delays", "starts", "evictions"),
    [
        (100.0, AT_ONCE, 10.3, 1),
        (100.0, Delays(0.9), 11.2, 1),  # as floats the difference of both times is less than 0.9
        (11.0, Delays(0.9), 11.0, 0),
        (100.0, Delays(0.9, notice=5), 16.2, 1),
        (13.0, Delays(0.9, notice=5), 13.0, 0),
        (100.0, Delays(notice=5), 15.3, 1),
    ],
)
def test_borrowers_go_once_a_claimant_has_waited_and_their_notice_is_over(gangs, run, delays, starts, evictions):
    cluster = Cluster(settle_time=0)
    cluster.upsert_node(Node("n0", {"cpu": 2000, "pods": 100}))
    for team in ("borrower", "owner"):
        cluster.upsert_quota(elastic_quota(team, "q", 0.0, {"cpu": 1000}, {"cpu": 2000}))
    cluster.begin()
    cpu = {"cpu": 1000, "pods": 1}
    jobs = [RecordedJob(f"b{n}", "borrower", submitted=0.0, run=run, pods=1, request=cpu) for n in range(2)]
    jobs.append(RecordedJob("claimant", "owner", submitted=10.3, run=10.0, pods=1, request=cpu))
    replay = Replay(Simulation(cluster, Terms(), 1e9, delays=delays), jobs, gangs=gangs)
    at_once(replay.play_steps())
    assert replay.played["claimant"].first == pytest.approx(starts, abs=1e-5)
    assert sum(each.evictions for each in replay.played.values()) == evictions
    assert all(each.ended is not None for each in replay.played.values())


@pytest.mark.parametrize(("ends", "starts", "evictions"), [(12.0, 1000.0, 0), (16.0, 15.0, 2)])
def test_who_borrows_no_more_while_the_notice_runs_stays(ends, starts, evictions):
    """Two go at 15, as three are used and one is due. If one ends before, two are left, of which only one may go."""
    cluster = Cluster(settle_time=0)
    for name, cores in (("n0", 2000), ("n1", 1000)):
        cluster.upsert_node(Node(name, {"cpu": cores, "pods": 100}))
    for team, least in (("borrower", 1000), ("owner", 2000)):
        cluster.upsert_quota(elastic_quota(team, "q", 0.0, {"cpu": least}, {"cpu": 3000}))
    cluster.begin()
    runs = [("b0", 1000.0), ("b1", 1000.0), ("b2", ends)]  # the last one is alone on the small node
    jobs = [RecordedJob(name, "borrower", 0.0, run, pods=1, request={"cpu": 1000, "pods": 1}) for name, run in runs]
    jobs.append(RecordedJob("claimant", "owner", 10.0, 5.0, pods=1, request={"cpu": 2000, "pods": 1}))
    replay = Replay(Simulation(cluster, Terms(), 1e9, delays=Delays(notice=5)), jobs, gangs=Terms())
    at_once(replay.play_steps(999.0))
    assert sum(each.evictions for each in replay.played.values()) == evictions
    at_once(replay.play_steps())
    assert replay.played["claimant"].first == pytest.approx(starts, abs=1e-5)
