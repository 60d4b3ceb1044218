"""When a search for a plan is due, and what becomes of its result."""

from dataclasses import replace

import pytest

from app.controllers.reclaim.plan_search import AGAIN, SearchBackoff
from policy.preemption import victims
from policy.stepwise import at_once
from tests.unit.app.given import pod, quota, see
from tests.unit.app.reclaim_world import EPOCH, World, overtaken


@pytest.fixture
def world():
    return World()


def test_nothing_is_begun_for_a_pod_that_was_bound_while_a_plan_was_looked_for(world, monkeypatch):
    search = victims.search_steps

    def is_overtaken(cluster, waiting):
        found = at_once(search(cluster, waiting))
        see(world.store, pod("owner", "b", nodeName="n1"))
        yield
        return found

    monkeypatch.setattr(victims, "search_steps", is_overtaken)
    world.passes(1)
    assert (world.api.evicted, world.held, world.remembered) == ([], [], [])
    assert world.api.reserved == []


def test_nothing_is_begun_on_a_picture_that_grew_stale_while_a_plan_was_looked_for(world, monkeypatch):
    monkeypatch.setattr(victims, "search_steps", overtaken(victims.search_steps, world.loses_contact))
    world.passes(1)
    assert (world.api.evicted, world.held, world.api.reserved) == ([], [], [])


def test_pods_that_start_all_the_time_do_not_make_a_search_more_frequent():
    backoff, asked = SearchBackoff(), []
    for now in (tenths / 10 for tenths in range(600)):
        if now >= backoff.again_at:
            asked.append(now)
            backoff.again_at = now + AGAIN[1]
            backoff.search_early(now + AGAIN[0])
    assert len(asked) <= 2 * 60 / AGAIN[1] + 2


def test_room_is_made_at_the_moment_at_which_a_min_run_time_is_over(world):
    lending = quota("a", min={"cpu": 3}, max={"cpu": 9})
    lending["metadata"]["annotations"] = {"quotaward.dev/min-run-time": "12s"}
    cluster = world.store.cluster
    see(world.store, lending)
    began = EPOCH + world.clock.now
    for running in [each for each in cluster.pods.values() if each.node]:
        cluster.upsert_pod(replace(running, started=began), 0)
    cluster.epoch = EPOCH
    for seconds in (1, 0.5, 1, 2, 4, 3.25, 0.25):
        assert not world.api.evicted
        world.clock.now += seconds
        cluster.protection.pass_time(EPOCH + world.clock.now)
        world.passes(0)
    assert len(world.api.evicted) == 1
