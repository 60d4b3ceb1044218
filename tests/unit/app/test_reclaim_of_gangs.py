"""Plans for gangs stand or fall together."""

from functools import partial

from app.actuators.protocol import ActionFailed
from policy.preemption import joint_plans
from tests.unit.app.given import pod, pod_group, quota, refused, see
from tests.unit.app.reclaim_world import World, overtaken

GANG_MINIMUM = "0/1 nodes are available: 1 Gang minimum cannot be placed yet."


class GangWorld(World):
    """The same, but b is to have more of it, and a gang waits instead of one pod."""

    def __init__(self, guaranteed, minimum=2, count=2):
        super().__init__()
        self.store.cluster.delete_pod("b/owner")
        see(self.store, quota("a", min={"cpu": 1}, max={"cpu": 9}), quota("b", min={"cpu": guaranteed}, max={"cpu": 9}))
        see(self.store, pod_group("g", "b", minimum))
        self.member_names = [f"m{number}" for number in range(count)]
        for name in self.member_names:
            self.is_refused(name)

    def member(self, name):
        return pod(name, "b", metadata={"labels": {"scheduling.x-k8s.io/pod-group": "g"}})

    def is_refused(self, name):
        see(self.store, refused(self.member(name), GANG_MINIMUM))


def test_for_a_gang_as_many_go_as_all_of_it_needs_and_room_is_held_for_each():
    world = GangWorld(guaranteed=2)
    world.passes(1)
    assert len(world.api.evicted) == 2
    assert sorted(world.held) == ["reclaim-b.m0", "reclaim-b.m1"]
    cluster = world.store.cluster
    assert [cluster.admit(cluster.pods[f"b/{name}"], world.clock.now, ("n1",)) for name in world.member_names] == [
        None
    ] * 2


def test_nobody_is_evicted_for_plans_that_are_outdated_when_the_last_is_found(monkeypatch):
    world = GangWorld(guaranteed=2)
    nothing_is_lent = partial(see, world.store, quota("a", min={"cpu": 4}, max={"cpu": 9}))
    monkeypatch.setattr(joint_plans, "plans_for_all_steps", overtaken(joint_plans.plans_for_all_steps, nothing_is_lent))
    world.passes(1)
    assert world.api.reserved
    assert (world.api.evicted, world.held) == ([], [])


def test_nobody_goes_for_a_gang_that_could_not_start_even_so():
    world = GangWorld(guaranteed=1)
    world.passes(1)
    world.passes(30)
    assert (world.api.evicted, world.held) == ([], [])


def test_nobody_goes_for_a_gang_whose_members_have_not_all_been_tried():
    world = GangWorld(guaranteed=2, minimum=2, count=1)
    world.passes(1)
    assert (world.api.evicted, world.held) == ([], [])
    world.is_refused("m1")
    world.passes(5)
    world.passes(5)
    assert len(world.api.evicted) == 2


def test_nobody_goes_for_members_beyond_the_minimum():
    world = GangWorld(guaranteed=3, minimum=2, count=3)
    world.passes(1)
    world.passes(30)
    assert len(world.api.evicted) == 2
    for name in ("m0", "m1"):
        see(world.store, world.member(name) | {"spec": {"nodeName": "n1", "containers": []}})
    world.passes(30)
    assert len(world.api.evicted) == 2


def test_nothing_is_held_for_a_gang_that_would_itself_borrow():
    world = GangWorld(guaranteed=2, minimum=3, count=3)
    world.passes(1)
    world.passes(30)
    assert (world.api.reserved, world.held, world.api.evicted) == ([], [], [])


def test_nobody_goes_for_a_gang_of_which_one_plan_cannot_be_written_down():
    world = GangWorld(guaranteed=2)

    async def reserve(reservation, first=world.api.reserve):
        if reservation.name == "reclaim-b.m1":
            raise ActionFailed("the API server answered 500")
        await first(reservation)

    world.api.reserve = reserve
    world.passes(1)
    assert (world.api.evicted, world.held) == ([], [])


def test_room_is_held_for_the_rest_of_a_gang_no_longer_once_one_gets_none():
    world = GangWorld(guaranteed=2)
    world.api.blocked = True
    world.passes(1)
    assert len(world.held) == 2
    see(world.store, quota("b", min={"cpu": 1}, max={"cpu": 9}))
    world.passes(3)
    world.passes(3)
    assert (world.held, world.api.evicted) == ([], [])


def test_when_a_plan_for_one_of_a_gang_is_given_up_the_others_are():
    world = GangWorld(guaranteed=2)
    world.api.blocked = True
    world.passes(1)
    world.passes(61)
    assert (world.held, world.api.evicted) == ([], [])


def test_nobody_goes_for_a_gang_while_a_budget_protects_some_of_all_who_would():
    world = GangWorld(guaranteed=2)
    see(world.store, budget("a", allowed=1))
    world.passes(1)
    world.passes(3)
    assert (len(world.held), world.api.evicted) == (2, [])
    assert "waits for its disruption budget" in world.api.told["m0", "ReclaimBlocked"]
    see(world.store, budget("a", allowed=2))
    world.passes(3)
    assert len(world.api.evicted) == 2


def budget(namespace, allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "pdb", "namespace": namespace},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_room_that_is_there_is_kept_for_a_gang_until_there_is_room_for_all_of_it():
    world = GangWorld(guaranteed=2)
    world.store.cluster.delete_pod("a/r0")
    world.api.lingering = True
    world.passes(1)
    assert len(world.api.evicted) == 1
    assert world.held == ["reclaim-b.m0", "reclaim-b.m1"]
    assert not world.store.cluster.reservations.plans["reclaim-b.m0"].victims
    world.passes(100)
    assert len(world.held) == 2  # the victim of the other still takes its time
    world.store.cluster.delete_pod(f"a/{world.api.evicted[0]}")
    world.passes(1)
    world.passes(61)
    assert world.held == []
