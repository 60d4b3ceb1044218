"""Pods that name a job as their controller, and stay after that was suspended: they are evicted like any other."""

import asyncio

import pytest

from app.controllers.reclaim.reclaim import Reclaim
from app.job_kinds import SHIPPED
from app.store.kinds import kinds_with
from app.store.namespaces import NAMESPACES
from policy.cluster.leaving import STAYS_AFTER
from policy.preemption import reclaim
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.app.given import Clock, made, node, pod, quota, refused, see, store_with
from tests.unit.app.reclaim_world import SETTINGS, ApiServer, going
from tests.unit.app.test_custom_jobs import JOB_SET, job_set, owned_by

BY_HAND = [f"p{number}" for number in range(4)]


class ThatLetsStay(ApiServer):
    """The controller of the job does not know these pods, and deletes none."""

    async def suspend_job(self, job):
        self.suspended.append(job.name)


class World:
    """Pods made by hand name a JobSet as their controller. They fill a node, half of it borrowed from another quota."""

    def __init__(self):
        self.clock = Clock()
        pods = [
            pod(name, metadata={"uid": name} | owned_by(JOB_SET, "set", "uid-set"), nodeName="n1") for name in BY_HAND
        ]
        queued = made(NAMESPACES, "a", metadata={"labels": {"quotaward.dev/jobs": "queued"}})
        bounds = [quota("a", min={"cpu": 2}, max={"cpu": 9}), quota("b", min={"cpu": 2}, max={"cpu": 9})]
        self.store = store_with(
            queued, node("n1"), *bounds, job_set(suspend=False), *pods, clock=self.clock, kinds=kinds_with(SHIPPED)
        )
        self.owner_waits("first")
        self.api = ThatLetsStay(self.store)
        self.reclaim = Reclaim(self.store, self.api, SETTINGS)

    def owner_waits(self, name):
        see(self.store, refused(pod(name, "b"), "0/1 nodes are available: 1 Insufficient cpu."))

    def passes(self, seconds):
        """That much time passes, and what is to be done is done."""
        self.clock.now += seconds
        self.store.cluster.tick(self.clock.now)

        async def look():
            for _ in range(3):
                async with asyncio.TaskGroup() as group:
                    await self.reclaim.look(group)

        asyncio.run(look())


@pytest.fixture
def world():
    world = World()
    world.passes(1)
    assert (world.api.suspended, world.api.evicted) == (["set"], [])
    assert world.store.cluster.leaving.uids == set(BY_HAND)
    return world


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "started again"])
def test_a_pod_that_stays_after_its_job_was_suspended_is_evicted_by_itself(world, suspend):
    see(world.store, job_set(suspend=suspend))
    world.passes(STAYS_AFTER - 1)
    assert world.api.evicted == [], "its controller may be slow"
    world.passes(1)
    world.passes(2)
    assert (world.api.suspended, len(world.api.evicted)) == (["set"], 1)
    world.owner_waits("second")
    world.passes(2)
    assert (world.api.suspended, len(world.api.evicted)) == (["set"], 2), "the others of them are not asked anew"


def test_pods_that_are_being_deleted_in_time_go_with_their_job(world):
    for name in BY_HAND:
        world.store.cluster.upsert_pod(going(world.store, name, 2e9), world.clock.now)
    world.passes(STAYS_AFTER)
    assert (world.api.evicted, world.store.cluster.batch_jobs.stayed) == ([], set())


def test_what_has_stayed_is_known_to_copies_and_forgotten_with_its_pods(world):
    world.passes(STAYS_AFTER)
    cluster = world.store.cluster
    copy = at_once(copy_steps(snapshot(cluster, world.clock.now)))
    there = set(BY_HAND) - set(world.api.evicted)
    assert reclaim.running_pods(cluster, cluster.batch_jobs.others.get("uid-set")) == [], "none goes with its job"
    assert cluster.batch_jobs.stayed == copy.batch_jobs.stayed == there
    for name in there:
        cluster.delete_pod(name)
    assert cluster.batch_jobs.stayed == set()
