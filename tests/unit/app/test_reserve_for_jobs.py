"""Reserving over time for Jobs that wait as a whole."""

import asyncio
from collections import Counter
from itertools import pairwise
from math import inf

import pytest

from app.controllers import reserve
from app.store.jobs import JOBS
from app.store.namespaces import NAMESPACES
from app.times import rfc3339
from policy.cluster.job_members import JobMembers
from policy.reserve.node_reservation import UNUSED
from policy.reserve.starving import OF_A_LINE
from tests.unit.app.given import look_once, made, pod, see
from tests.unit.app.test_reserve import CREATED, EPOCH, World, outcomes, running

QUEUED = made(NAMESPACES, "a", "", {"labels": {"quotaward.dev/jobs": "queued"}})


def job(name="big", uid="uid-big", pods=2, cpu="3", *, suspend=True, **status):
    """A Job of such pods."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"suspend": suspend, "parallelism": pods, "template": {"spec": {"containers": containers}}}
    labels = {"quotaward.dev/queued": "true"}
    return made(JOBS, name, "a", CREATED | {"uid": uid, "labels": labels}, spec=spec, status=status)


def started(at):
    """The Job once its controller has told that it began so many seconds after its creation."""
    return job(suspend=False, startTime=rfc3339(EPOCH + at))


def its_pod(number, node_name="", cpu="3"):
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "big", "uid": "uid-big", "controller": True}
    return pod(f"big-{number}", requests={"cpu": cpu}, metadata={"ownerReferences": [owner]}, nodeName=node_name)


@pytest.fixture
def found(monkeypatch):
    """The names of the jobs of which the members are found, in turn; those of each turn of the loop end with a dash."""
    names, find = [], JobMembers.find

    def noted(members, namespace, name):
        names.append(name)
        return find(members, namespace, name)

    monkeypatch.setattr(JobMembers, "find", noted)
    return names


def test_others_have_their_turn_between_two_jobs(found):
    world = World(QUEUED, *(job(f"j{number}", f"uid-{number}", pods=3) for number in range(3)))
    world.clock.now += 101

    async def look_and_count_turns():
        looking = asyncio.ensure_future(look_once(world.reserve))
        while not looking.done():
            await asyncio.sleep(0)
            found.append("-")

    asyncio.run(look_and_count_turns())
    assert len({*found}) == 4
    assert not [pair for pair in pairwise(found) if "-" not in pair and len({*pair}) > 1]


def test_the_members_of_a_job_are_not_made_while_it_waits_to_be_asked_about_again(found):
    world = World(QUEUED, job(pods=500))
    world.passes(101)
    assert found
    found.clear()
    world.passes(0.5)
    assert found == []


def test_the_members_of_a_job_without_reserved_nodes_are_made_once():
    find = World(QUEUED, job()).store.cluster.job_members.find
    first, second = (find("a", "pods/job/big").waiting[0] for _ in range(2))
    assert first is second


def test_no_node_is_kept_for_ever_for_pods_that_do_not_come_whoever_leads():
    world = World(QUEUED, job())
    world.passes(101)
    assert world.reserved == {"big-0": "n1", "big-1": "n2"}
    see(world.store, started(101), its_pod(1), its_pod(2))
    world.passes(UNUSED)
    world.take_lead()
    world.passes(0)
    assert world.reserved == {"big-0": "n1", "big-1": "n2"}
    world.passes(1)
    assert world.reserved == {}
    world.passes(1)
    assert world.store.cluster.reservations.given_up == {}


def test_each_pod_that_comes_to_a_node_takes_the_place_of_one_member_there():
    world = World(QUEUED, job(cpu="1", pods=3), running("r1", node_name="n2"))
    world.passes(101)
    assert world.reserved == {f"big-{number}": "n1" for number in range(3)}
    see(world.store, job(cpu="1", pods=3, suspend=False), *(its_pod(number, cpu="1") for number in range(3)))
    for left in (2, 1):
        see(world.store, its_pod(left, "n1", cpu="1"))
        for _ in range(3):
            world.passes(1)
        assert world.store.cluster.reservations.nodes.on("n1").need == {"cpu": 1000 * left, "pods": left}
    see(world.store, its_pod(0, "n1", cpu="1"))
    world.passes(1)
    assert world.reserved == {}


def test_nodes_are_kept_for_a_time_after_the_start_that_its_controller_tells():
    world = World(QUEUED, job())
    world.passes(101)
    see(world.store, job(suspend=False), its_pod(1), its_pod(2))
    world.passes(UNUSED + 1)
    assert world.reserved == {"big-0": "n1", "big-1": "n2"}
    see(world.store, started(101))
    world.passes(1)
    assert world.reserved == {}


def test_jobs_that_can_never_have_nodes_do_not_shut_out_their_line(monkeypatch):
    monkeypatch.setattr(reserve, "AT_MOST", inf)
    crowd = [job(f"a{number}", f"uid-{number}", cpu="9") for number in range(OF_A_LINE)]
    world = World(QUEUED, *crowd, job())
    world.passes(101)
    assert world.reserved == {}
    world.passes(0.5)
    assert world.reserved == {"big-0": "n1", "big-1": "n2"}
    for _ in range(5):
        world.passes(1)
    assert sum(reason == "TooLarge" for _, reason in world.told) == OF_A_LINE, "each is told once"


def test_a_job_that_starts_just_before_its_decision_counts_as_started():
    world, before = World(QUEUED, job(), running("r1", seconds=1000), running("r2", node_name="n2")), outcomes()
    world.passes(101)
    for name in ("r1", "r2"):
        world.store.cluster.delete_pod(f"a/{name}")
    decide = world.reserve._decide

    async def late(key, now):
        world.reserve._decide = decide
        see(world.store, job(suspend=False), its_pod(0, "n1"), its_pod(1, "n2"))
        world.store.tick()
        return await decide(key, now)

    world.reserve._decide = late
    for _ in range(3):
        world.passes(1)
    assert (world.reserved, outcomes() - before) == ({}, Counter(kept=1))
