"""Who is evicted for a plan, in which order, and what the pods on both sides are told."""

import asyncio

import pytest

from app.actuators.protocol import ActionFailed
from app.controllers.reclaim.victim_evictions import LONGEST_REASON
from policy.cluster.failed_evictions import LONGEST
from policy.explain.next_steps import Times, next_steps
from policy.reserve.starving import Terms
from policy.stepwise import at_once
from tests.unit.app.given import client_of, node, pod, quota, refused, see
from tests.unit.app.reclaim_world import World, lending_gang


@pytest.fixture
def world():
    return World()


def test_both_are_told_who_goes_for_whom_and_by_which_rule(world):
    world.passes(1)
    (victim,) = world.api.evicted
    assert world.api.told == {
        (victim, "Reclaimed"): "evicted to make room for b/owner: ElasticQuota a/quota borrows",
        ("owner", "ReclaimStarted"): f"to make room on node n1 these go: a/{victim} (ElasticQuota a/quota borrows)",
    }


def test_who_goes_for_whom_is_said_before_anybody_goes(world):
    told_before, evict = [], world.api.evict

    async def is_asked(victim, grace=None):
        told_before.append(set(world.api.told))
        await evict(victim)

    world.api.evict = is_asked
    world.passes(1)
    assert told_before == [{("owner", "ReclaimStarted")}]


def test_who_goes_for_whom_is_said_once_however_often_and_by_whom_it_is_tried(world):
    world.api.blocked = True
    world.passes(1)
    assert ("owner", "ReclaimStarted") in world.api.told
    world.api.told.clear()
    world.passes(3)
    world.take_lead()
    world.passes(3)
    assert ("owner", "ReclaimStarted") not in world.api.told


def test_evictions_that_fail_are_told_with_the_reason_of_the_api_server(world):
    async def refuses(_victim, _grace=None):
        raise ActionFailed('the API server answered 500: failed calling webhook "audit.example.com"' + "." * 1000)

    world.api.evict = refuses
    world.passes(1)
    told = world.api.told["owner", "ReclaimBlocked"]
    assert 'failed, and is tried again: the API server answered 500: failed calling webhook "audit' in told
    assert len(told) < LONGEST_REASON + 100
    cluster = world.store.cluster
    [step] = at_once(next_steps(cluster, cluster.pods["b/owner"], Terms(3600, 100), Times(0, 0, 1.0)))
    assert step.step == "evictions-failing"
    assert "evictions fail" in step.text
    assert 'the latest failed: the API server answered 500: failed calling webhook "audit.example.com"' in step.text
    assert len(step.text) < LONGEST + 150


def fails(*words):
    """Evictions, or writes of plans, fail with these words."""

    async def refuses(*_):
        raise ActionFailed(*words)

    return refuses


def shown_of(world):
    return client_of(world.store).get("/api/v1/pods/b/owner").json()


def test_who_is_to_go_but_cannot_is_not_said_to_go_and_nobody_is_told_to_wait(world):
    world.api.reserve = fails("the API server answered 403:\nno rights")
    assert shown_of(world)["next"][0]["step"] == "reclaim-planned"
    world.passes(1)
    shown = shown_of(world)
    step = shown["next"][0]
    assert step["step"] == "evictions-failing"
    assert step["text"].endswith("to be evicted for it, which fails so far: the API server answered 403: no rights")
    assert step["inSeconds"] is None
    assert shown["outlook"].endswith("; the latest eviction failed: the API server answered 403: no rights")
    assert [each["text"] for each in shown["remedies"]] == ["see to it that evictions for it succeed"]
    assert "nothing has to be changed" not in shown["summary"]
    assert shown["summary"].endswith("Expected start: not known, since evictions for it fail.")
    assert (shown["expectedStart"]["at"], shown["expectedStart"]["basis"]) == ("", "none")


@pytest.mark.parametrize("how", ["goes", "blocked", "not needed", "another leads", "pod is gone"])
def test_a_failed_eviction_is_forgotten_once_it_tells_nothing_any_more(world, how):
    evict, failed = world.api.evict, world.store.cluster.failed_evictions
    world.api.evict = fails("refused")
    world.passes(1)
    assert failed.reason("b/owner") == "refused"
    if how == "another leads":

        async def stops():
            running = asyncio.create_task(world.reclaim.run())
            await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait({running})

        asyncio.run(stops())
    elif how == "pod is gone":
        world.store.cluster.delete_pod("b/owner")
    elif how == "not needed":
        see(world.store, node("n2"))
        world.passes(3)
        assert not world.held
    else:
        world.api.evict, world.api.blocked = evict, how == "blocked"
        world.passes(3)
    assert failed.reason("b/owner") == ""


@pytest.mark.parametrize("how", ["nobody may go any more", "it waits for other reasons", "is bound"])
def test_a_failure_is_forgotten_if_no_plan_is_made_again(world, how):
    failed = world.store.cluster.failed_evictions
    world.api.reserve = fails("refused")
    world.passes(1)
    assert failed.reason("b/owner") == "refused"
    assert not world.held
    if how == "nobody may go any more":
        see(world.store, quota("a", min={"cpu": 4}, max={"cpu": 9}))
    elif how == "is bound":
        see(world.store, node("n2"), pod("owner", "b", nodeName="n2"))
    else:
        see(world.store, quota("b", min={"cpu": 1}, max={"cpu": 0}))
        see(world.store, refused(pod("owner", "b"), "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu."))
    world.passes(20)
    assert failed.reason("b/owner") == ""


def test_a_failure_is_remembered_while_a_plan_that_was_given_up_is_not_due_again(world):
    world.api.evict = fails("refused")
    world.passes(1)
    world.passes(61)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])
    world.passes(1)
    assert world.store.cluster.failed_evictions.reason("b/owner") == "refused"


def test_while_a_notice_runs_no_failure_of_the_time_before_is_told():
    world = World(notice=60)
    reserve = world.api.reserve
    world.api.reserve = fails("refused")
    world.passes(1)
    assert world.store.cluster.failed_evictions.reason("b/owner") == "refused"
    world.api.reserve = reserve
    world.passes(20)
    assert world.held
    assert world.store.cluster.failed_evictions.reason("b/owner") == ""


def test_another_replica_knows_of_failures_by_the_reservation(world):
    world.api.evict = fails("refused")
    world.passes(1)
    world.store.cluster.failed_evictions.clear()
    shown = shown_of(world)
    assert "(Event ReclaimBlocked of the pod says why): a/r" in shown["next"][0]["text"]
    assert shown["summary"].endswith("Expected start: not known, since evictions for it fail.")


def test_an_event_of_an_eviction_that_fails_is_a_warning_and_of_a_budget_it_is_not(world):
    found, report = [], world.api.report

    def notes(event):
        found.append((event.reason, event.warning))
        report(event)

    world.api.report = notes
    world.api.blocked = True
    world.passes(1)
    assert ("ReclaimBlocked", False) in found
    other = World()
    other.api.report = notes
    other.api.evict = fails("refused")
    other.passes(1)
    assert ("ReclaimBlocked", True) in found


@pytest.mark.parametrize(("asked", "given"), [(3600, 20), (20, None), (5, None), (None, 20)])
def test_a_victim_gets_no_more_grace_than_is_given(asked, given):
    world, graces = World(max_grace=20), []
    period = {} if asked is None else {"terminationGracePeriodSeconds": asked}
    see(world.store, *[pod(f"r{number}", nodeName="n1", **period) for number in range(4)])

    async def evict(_victim, grace=None):
        graces.append(grace)

    world.api.evict = evict
    world.passes(1)
    assert set(graces) == {given}


def test_all_of_a_gang_go_even_if_the_pod_is_bound_once_the_first_of_them_is_gone():
    world = lending_gang()

    async def evict(victim, grace=None, first=world.api.evict):
        await first(victim)
        see(world.store, pod("owner", "b", nodeName="n1"))

    world.api.evict = evict
    world.passes(1)
    assert sorted(world.api.evicted) == ["r0", "r1", "r2"]


def test_those_of_others_stay_once_the_pod_is_bound():
    world = World()
    see(world.store, quota("a", min={"cpu": 0}, max={"cpu": 9}), quota("b", min={"cpu": 4}, max={"cpu": 9}))
    see(world.store, refused(pod("owner", "b", requests={"cpu": 2}), "0/1 nodes are available: 1 Insufficient cpu."))

    async def evict(victim, grace=None, first=world.api.evict):
        await first(victim)
        see(world.store, pod("owner", "b", nodeName="n1"))

    world.api.evict = evict
    world.passes(1)
    assert len(world.api.evicted) == 1


def test_nobody_else_is_evicted_once_a_slow_eviction_has_made_the_picture_old():
    world = lending_gang()

    async def evict(victim, grace=None, first=world.api.evict):
        await first(victim)
        world.loses_contact()

    world.api.blocked = True
    world.passes(1)
    [reservation] = world.store.cluster.reservations.plans.values()
    assert reservation.blocked_since
    world.api.blocked, world.api.evict = False, evict
    world.passes(5)
    assert len(world.api.evicted) == 1
    [reservation] = world.store.cluster.reservations.plans.values()
    assert reservation.blocked_since  # that they may go now is not known
