"""The rest of a gang below its minimum is evicted, too."""

from tests.unit.app.given import pod, see
from tests.unit.app.reclaim_world import ApiServer, lending_gang


def broken_gang(**settings):
    """A gang of which a budget let one pod go for the owner of its room, which has come by now."""
    world = lending_gang(broken_gang_grace=30, **settings)
    world.blocks_all_but(1)
    world.passes(1)
    assert len(world.left()) == 2
    see(world.store, pod("owner", "b", nodeName="n1"))
    return world


def test_what_is_left_of_a_gang_that_a_budget_protects_in_part_goes_after_a_while():
    world = broken_gang()
    world.passes(29)
    assert len(world.left()) == 2
    world.passes(2)
    assert len(world.left()) == 2  # the budget still does not allow it
    world.api.evict = ApiServer.evict.__get__(world.api)
    world.passes(6)
    assert world.left() == []


def test_a_gang_that_is_whole_again_in_time_stays():
    world = broken_gang()
    see(world.store, world.running("again"))
    world.passes(40)
    assert len(world.left()) == 2


def test_of_what_is_left_of_a_gang_the_system_keeps_its_pods():
    world = broken_gang()
    critical, _ = world.left()
    item = world.running(critical.removeprefix("a/"))
    see(world.store, item | {"spec": item["spec"] | {"priority": 2_000_000_000}})
    world.api.evict = ApiServer.evict.__get__(world.api)
    world.passes(40)
    assert world.left() == [critical]


def test_of_what_is_left_of_a_gang_pods_stay_whose_eviction_would_fail_their_job():
    world = broken_gang()
    fragile, _ = world.left()
    name = fragile.removeprefix("a/")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": True}
    job = {"metadata": {"name": name, "namespace": "a", "uid": name}, "spec": {"backoffLimit": 0}}
    see(world.store, {"apiVersion": "batch/v1", "kind": "Job"} | job, world.running(name, ownerReferences=[owner]))
    world.api.evict = ApiServer.evict.__get__(world.api)
    world.passes(40)
    assert world.left() == [fragile]


def test_what_is_left_of_a_gang_stays_where_that_is_wanted():
    world = broken_gang(clean_up_broken_gangs=False)
    world.passes(100)
    assert len(world.left()) == 2
