"""After plans that failed the next one has to wait, whoever leads."""

import pytest

from tests.unit.app.given import node, pod, quota, see
from tests.unit.app.reclaim_world import World, either, with_a_failure


@pytest.fixture
def world():
    return World()


@pytest.fixture
def failed(world):
    return with_a_failure(world)


@either
def test_after_a_failure_the_next_plan_is_made_when_its_time_has_come_whoever_leads(failed, another_leads):
    if another_leads:
        failed.take_lead()
    failed.passes(9)
    assert (failed.held, len(failed.api.evicted)) == ([], 1)
    failed.passes(2)
    assert (failed.held, len(failed.api.evicted)) == (["reclaim-b.owner-2"], 2)
    assert failed.store.cluster.reservations.plans["reclaim-b.owner-2"].failures == 1


@either
def test_after_two_failures_it_takes_a_change_whoever_leads(failed, another_leads):
    failed.passes(11)
    failed.passes(61)
    assert failed.remembered == ["reclaim-b.owner-2"]  # which says it all
    failed.refill()
    if another_leads:
        failed.take_lead()
    failed.passes(1000)
    assert (failed.held, len(failed.api.evicted)) == ([], 2)
    see(failed.store, quota("c", min={"cpu": 1}), node("n2", cpu="0"))
    failed.passes(1)
    assert (failed.held, len(failed.api.evicted)) == ([], 2), "that could not help it"
    see(failed.store, quota("b", min={"cpu": 9}))
    failed.passes(1)
    assert (failed.held, len(failed.api.evicted)) == (["reclaim-b.owner-3"], 3)


@pytest.mark.parametrize("end", ["bound", "gone"])
def test_failures_are_remembered_until_the_pod_is_bound_or_gone(failed, end):
    if end == "bound":
        see(failed.store, pod("owner", "b", nodeName="n1"))
    else:
        failed.store.cluster.delete_pod("b/owner")
    failed.passes(1)
    assert (failed.held, failed.remembered) == ([], [])
