"""A plan that has ended holds nothing, and what it has cost in vain is counted."""

from dataclasses import replace

import pytest

from app.observability import metrics
from policy.explain.next_steps import Times, next_steps
from policy.objects.reservation import PodName, Reservation
from policy.reserve.starving import Terms
from policy.stepwise import at_once
from tests.unit.app.given import pod, quota, refused, see
from tests.unit.app.reclaim_world import EPOCH, World, with_a_failure


@pytest.fixture
def world():
    return World()


@pytest.fixture
def failed(world):
    return with_a_failure(world)


def test_what_is_given_up_is_held_no_longer(failed):
    assert failed.store.cluster.reservations.nodes_held_from(failed.store.cluster.pod("a", "r1")) == set()
    assert not failed.store.cluster.reservations.is_held_for("b/owner")
    assert failed.store.cluster.ledger.account("b").held == {}


def test_what_cannot_be_written_down_is_not_given_up_yet(world):
    world.passes(1)
    world.api.failing = True
    world.passes(61)
    assert (world.held, world.remembered) == (["reclaim-b.owner"], [])
    world.api.failing = False
    world.passes(1)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


def test_an_older_picture_of_one_that_was_given_up_is_not_believed(failed):
    owner = PodName("b", "owner", "b/owner")
    failed.store.cluster.upsert_reservation(Reservation("reclaim-b.owner", owner, "n1", (), 0.0))
    assert (failed.held, failed.remembered) == ([], ["reclaim-b.owner"])


class Attack(World):
    """Somebody who may use three cores waits until pods of others have gone for his, deletes them, and begins again.

    The others' controller makes their pods anew. ``passes`` of half a second.
    """

    def __init__(self):
        super().__init__()
        self.store.cluster.delete_pod("b/owner")
        see(self.store, quota("a", min={"cpu": 1}, max={"cpu": 9}), quota("b", min={"cpu": 3}, max={"cpu": 9}))
        self.rounds, self.asking = 0, []

    def asks(self, **requests):
        self.asking = [pod(f"p{self.rounds}-{number}", "b", requests or {"cpu": "1"}) for number in range(3)]
        see(self.store, *[refused(each, "0/1 nodes are available: 1 Insufficient cpu.") for each in self.asking])
        self.rounds += 1

    def gets_nothing(self):
        for each in self.asking:
            self.store.cluster.delete_pod(each["metadata"]["uid"])
        there = len(self.store.cluster.table.pods_on("n1"))
        see(self.store, *[pod(f"r{self.clock.now}-{number}", nodeName="n1") for number in range(4 - there)])
        self.asking = []

    def goes_on(self, seconds, request=lambda _: "1"):
        """How many of the others' pods go meanwhile."""
        before = len(self.api.evicted)
        for _ in range(2 * seconds):
            asked = len(self.api.evicted)
            if not self.asking:
                self.asks(cpu=request(self.rounds))
            self.passes(0.5)
            self.passes(0.5)
            if len(self.api.evicted) > asked:
                self.gets_nothing()
        return len(self.api.evicted) - before


def in_vain(namespace="b"):
    return metrics.IN_VAIN.labels(namespace)._value.get()


@pytest.mark.parametrize(
    ("request_", "most"),
    [(lambda _: "1", 21), (lambda at: f"{900 + at}m", 27)],
    ids=["of one size", "of another size each time"],
)
def test_whoever_lets_others_go_in_vain_again_and_again_gets_few_to_go(request_, most):
    world, before = Attack(), in_vain()
    gone = world.goes_on(300, request_)
    assert 9 <= gone <= most
    assert in_vain() - before == gone
    assert sum(each.startswith("r") for each in world.api.evicted) == gone


def test_others_are_not_held_up_by_those_for_whom_pods_went_in_vain():
    world = Attack()
    world.goes_on(60)
    world.gets_nothing()
    see(world.store, quota("c", min={"cpu": 1}, max={"cpu": 9}))
    see(world.store, refused(pod("other", "c"), "0/1 nodes are available: 1 Insufficient cpu."))
    before = len(world.api.evicted)
    world.passes(1)
    assert len(world.api.evicted) == before + 1


def test_whose_pod_was_deleted_once_at_the_wrong_moment_waits_for_ten_seconds(world):
    world.passes(1)
    world.store.cluster.delete_pod("b/owner")
    world.passes(1)
    world.refill()
    see(world.store, refused(pod("again", "b"), "0/1 nodes are available: 1 Insufficient cpu."))
    world.passes(8)
    assert (world.held, len(world.api.evicted)) == ([], 1)
    world.passes(2)
    assert (world.held, len(world.api.evicted)) == (["reclaim-b.again"], 2)


@pytest.mark.parametrize(("runs", "waited"), [(True, 10), (False, 20)])
def test_a_pod_that_runs_makes_up_for_one_that_went_away(world, runs, waited):
    def asks_and_goes(name, *, bound=False):
        item = pod(name, "b")
        see(world.store, refused(item, "0/1 nodes are available: 1 Insufficient cpu."))
        world.passes(11)
        if bound:
            see(world.store, item | {"spec": item["spec"] | {"nodeName": "n1"}})
            world.passes(1)
        world.store.cluster.delete_pod(f"b/{name}")
        world.passes(0)
        world.refill()

    asked = world.store.cluster.pod("b", "owner")
    asks_and_goes("owner")
    if runs:
        asks_and_goes("again", bound=True)
    asks_and_goes("last")
    assert len(world.api.evicted) == 2 + runs
    assert world.store.cluster.in_vain.waits_until(asked) == world.clock.now + waited


def test_a_pod_that_nobody_went_for_may_go_away_at_no_cost(world):
    world.api.blocked = True
    world.passes(1)
    assert world.held
    world.store.cluster.delete_pod("b/owner")
    before = in_vain()
    world.passes(1)
    assert (world.held, in_vain()) == ([], before)
    world.api.blocked = False
    world.owner_waits()
    world.passes(1)
    assert len(world.api.evicted) == 1


def test_who_gives_up_as_others_do_not_go_waits_with_nobody_else(world):
    world.api.lingering = True
    world.passes(1)
    world.passes(601)
    assert world.remembered == ["reclaim-b.owner"]
    other = replace(world.store.cluster.pod("b", "owner"), uid="b/other", name="other")
    assert world.store.cluster.in_vain.waits_until(other) < world.clock.now


def test_the_explanation_says_that_others_went_in_vain():
    world = Attack()
    world.goes_on(5)
    world.asks()
    cluster = world.store.cluster
    times = Times(world.clock.now, EPOCH, 0)
    found = at_once(next_steps(cluster, cluster.pod("b", f"p{world.rounds - 1}-0"), Terms(), times))
    told = {each.step: each for each in found}
    assert "others went in vain for pods of its namespace" in told["reclaim-planned"].text
    assert 0 < told["reclaim-planned"].after <= 10
