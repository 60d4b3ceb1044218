"""Reserving over time for Jobs that wait as a whole."""

import asyncio
from itertools import pairwise

import pytest

from app.store.jobs import JOBS
from app.store.namespaces import NAMESPACES
from policy.cluster.job_members import JobMembers
from tests.unit.app.given import look_once, made
from tests.unit.app.test_reserve import CREATED, World

QUEUED = made(NAMESPACES, "a", "", {"labels": {"quotaward.dev/jobs": "queued"}})


def job(name="big", uid="uid-big", pods=2, cpu="3", **metadata):
    """A suspended Job of such pods."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"suspend": True, "parallelism": pods, "template": {"spec": {"containers": containers}}}
    labels = {"quotaward.dev/queued": "true"}
    return made(JOBS, name, "a", CREATED | {"uid": uid, "labels": labels} | metadata, spec=spec)


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
