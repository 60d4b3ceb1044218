"""Plans over time, and from one leader to the next: nothing that is waited for begins anew with whoever leads."""

import pytest

from policy.preemption import plan_text, reclaim
from policy.stepwise import at_once
from tests.unit.app.given import cancel_at_the_write, node, pod, quota, refused, see
from tests.unit.app.reclaim_world import EPOCH, World, either, overtaken


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("end", ["stale", "lifted"])
def test_nobody_is_evicted_for_a_plan_that_grew_stale_or_was_dropped_meanwhile(world, monkeypatch, end):
    world.api.blocked = True
    world.passes(1)
    world.api.blocked = False

    def is_lifted():
        world.store.cluster.delete_reservation("reclaim-b.owner")
        see(world.store, quota("a", min={"cpu": 4}, max={"cpu": 9}))  # and there will be no other

    happens = world.loses_contact if end == "stale" else is_lifted
    monkeypatch.setattr(reclaim, "still_planned_steps", overtaken(reclaim.still_planned_steps, happens))
    world.passes(5)
    assert (world.api.evicted, world.held) == ([], ["reclaim-b.owner"] if end == "stale" else [])


def test_who_loses_the_lead_while_a_plan_is_written_down_holds_no_room(world):
    world.clock.now += 1
    cancel_at_the_write(world.api, world.reclaim.run)
    assert (world.api.evicted, world.held) == ([], [])


def test_somebody_goes_and_the_room_is_held_until_the_pod_is_bound(world):
    world.passes(1)
    assert (len(world.api.evicted), world.held) == (1, ["reclaim-b.owner"])
    see(world.store, pod("owner", "b", nodeName="n1"))
    world.passes(1)
    assert (world.held, world.remembered) == ([], [])


@either
def test_the_pod_has_as_long_to_be_bound_whoever_leads(world, another_leads):
    world.passes(1)
    world.passes(40)
    assert world.store.cluster.reservations.plans["reclaim-b.owner"].freed_at == EPOCH + 1001
    if another_leads:
        world.take_lead()
    world.passes(19)
    assert world.held
    world.passes(2)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


def test_where_others_have_taken_the_room_it_is_given_up_at_once(world):
    world.passes(1)
    world.refill()
    world.passes(0.5)
    assert world.held  # they may be on their way out
    world.passes(1)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


@either
def test_a_budget_has_as_long_to_yield_whoever_leads(world, another_leads):
    world.api.blocked = True
    world.passes(1)
    world.passes(40)
    if another_leads:
        world.take_lead()
    world.passes(18)
    assert world.held
    world.passes(4)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


def test_when_a_budget_has_yielded_the_time_that_it_took_is_forgotten(world):
    world.api.blocked = True
    world.passes(1)
    assert world.store.cluster.reservations.plans["reclaim-b.owner"].blocked_since
    world.api.blocked, world.api.lingering = False, True
    world.passes(40)
    assert not world.store.cluster.reservations.plans["reclaim-b.owner"].blocked_since
    world.take_lead()
    world.passes(40)
    assert world.held


@either
def test_victims_that_stay_have_as_long_to_go_whoever_leads(world, another_leads):
    world.api.lingering = True
    world.passes(1)
    world.passes(590)
    if another_leads:
        world.take_lead()
    world.passes(9)
    assert world.held
    world.passes(2)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


CORDON = {"spec": {"unschedulable": True}}
TAINT = {"spec": {"taints": [{"key": "broken", "effect": "NoSchedule"}]}}


def two_nodes(world):
    """A second node that is as full of borrowers; the plan is for the first, as the second is too small at first."""
    see(world.store, node("n2", cpu="0", pods="110"))
    see(world.store, *[pod(f"s{number}", nodeName="n2") for number in range(4)])


@pytest.mark.parametrize("lost", [CORDON, TAINT, None], ids=["cordoned", "tainted", "deleted"])
@pytest.mark.parametrize("lingering", [True, False], ids=["while victims go", "once they have gone"])
@either
def test_a_plan_for_a_node_that_is_lost_is_replaced_at_once_and_is_no_failure(world, lost, lingering, another_leads):
    two_nodes(world)
    world.api.lingering = lingering
    world.passes(1)
    assert [each.node for each in world.store.cluster.reservations.plans.values()] == ["n1"]
    see(world.store, node("n2"))
    if lost:
        see(world.store, node("n1") | lost)
    else:
        world.store.cluster.delete_node("n1")
    if another_leads:
        world.take_lead()
    world.passes(1)
    assert [(each.name, each.node) for each in world.store.cluster.reservations.plans.values()] == [
        ("reclaim-b.owner", "n2")
    ]
    assert world.remembered == []
    assert len(world.api.evicted) == 2


def test_nobody_more_goes_for_a_node_that_is_lost_while_one_is_asked_to_go(world):
    see(world.store, refused(pod("owner", "b", {"cpu": "2"}), "0/1 nodes are available: 1 Insufficient cpu."))
    see(world.store, quota("a", min={"cpu": 2}, max={"cpu": 9}), quota("b", min={"cpu": 2}, max={"cpu": 9}))
    evict = world.api.evict

    async def is_asked(victim, grace=None):
        await evict(victim)
        see(world.store, node("n1") | CORDON)

    world.api.evict = is_asked
    world.passes(1)
    assert len(world.api.evicted) == 1
    assert world.held == []


def test_a_plan_for_a_lost_node_does_not_ask_the_scheduler_to_bind_the_pod_there(world):
    world.api.lingering = True
    world.passes(1)
    see(world.store, node("n1") | CORDON)
    said = at_once(plan_text.for_pod_steps(world.store.cluster, world.store.cluster.pod("b", "owner")))
    assert said == "room was being made on node n1, which cannot take it any more; another place is sought"


@either
def test_room_is_made_elsewhere_once_a_victim_has_not_ended_in_its_time(world, another_leads):
    two_nodes(world)
    world.api.lingering, world.api.due = True, EPOCH + 30
    world.passes(1)
    see(world.store, node("n2"))
    [stuck] = world.api.evicted
    world.store.cluster.leaving.pass_time(EPOCH + 89)
    if another_leads:
        world.take_lead()
    world.passes(700)  # as long as it was given time, that is waited for
    assert [each.node for each in world.store.cluster.reservations.plans.values()] == ["n1"]
    world.store.cluster.leaving.pass_time(EPOCH + 90)
    world.passes(1)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])
    owner = world.store.cluster.pod("b", "owner")
    said = at_once(plan_text.for_pod_steps(world.store.cluster, owner))
    assert said.startswith(f"room was being made on node n1, but these do not end: a/{stuck}; to be evicted for it on")
    world.api.due = EPOCH + 1000
    world.passes(11)
    assert world.held == ["reclaim-b.owner-2"]
    assert len(world.api.evicted) == 2


def test_a_plan_waits_for_an_earlier_one_that_it_would_make_take_from_min(world):
    """Namespace a uses 4.5 of min 3: a pod of one core and one of 1.5 may go in this order only."""
    world.store.cluster.delete_pod("a/r3")
    large = {"cpu": "1500m"}
    see(
        world.store, pod("large", requests=large, nodeName="n2"), node("n1", cpu=3, pods=9), node("n2", **large, pods=9)
    )
    world.api.blocked = True
    world.passes(2)
    assert len(world.held) == 1
    see(world.store, refused(pod("second", "b", large), "0/2 nodes are available: 2 Insufficient cpu."))
    see(world.store, quota("b", min={"cpu": 3}, max={"cpu": 9}))
    world.passes(2)
    assert len(world.held) == 1, "the second would leave the first victim within min"
    world.api.blocked = False
    world.passes(2)
    assert len(world.api.evicted) == 2
