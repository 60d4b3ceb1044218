"""Gangs on a stock scheduler: a group starts whole or not at all."""

import os
import random

import pytest

from tests.controlplane.objects import pods
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.e2e.waiting import bound, ensure_for, evicted, evicts, wait_for

LONG = bool(os.environ.get("QUOTAWARD_LONG"))
KIND = "podgroups.scheduling.x-k8s.io"
NOT_YET = "Gang minimum cannot be placed yet"


@pytest.fixture
def gang(cluster, quotaward):
    """Makes a pod group that is known then, and its members without creating them yet."""
    install_pod_groups(cluster.api)

    def make(name, namespace, minimum=4, **arguments):
        known = quotaward.metric("quotaward_store_objects", kind=KIND)
        cluster.api.create(pod_group(name, namespace, minimum))
        wait_until(lambda: quotaward.metric("quotaward_store_objects", kind=KIND) > known, "the group is known")
        return members(name, namespace, minimum, **arguments)

    return make


@pytest.mark.parametrize("seed", range(50 if LONG else 3))
def test_two_gangs_with_room_for_one_are_placed_whole_one_after_the_other(cluster, scheduler, watch, gang, seed):
    cluster.nodes(3, cpu=2)
    namespace = cluster.namespace()
    watching = watch(namespace)
    everybody = [*gang("red", namespace), *gang("blue", namespace)]
    random.Random(seed).shuffle(everybody)
    for each in everybody:
        cluster.api.create(each)
    wait_for(watching, bound=4, refused=4, why=NOT_YET)
    first = bound(watching)
    assert len({name.split("-")[0] for name in first}) == 1
    assert watching.most_bound() == 4
    for name in first:
        cluster.api.delete("pods", name, namespace)
    second = {each["metadata"]["name"] for each in everybody} - first
    wait_until(lambda: bound(watching) == second, "the other starts whole")


def test_a_gang_whose_last_member_arrives_late_starts_whole(cluster, scheduler, watch, gang):
    cluster.node(cpu=8)
    namespace = cluster.namespace()
    watching = watch(namespace)
    *early, late = gang("late", namespace)
    cluster.api.create_all(early)
    wait_for(watching, bound=0, refused=3, why=NOT_YET)
    ensure_for(2, lambda: not bound(watching), "nobody starts without the last one")
    cluster.api.create(late)
    wait_for(watching, bound=4, timeout=15)


def test_a_gang_beyond_its_quota_starts_whole_once_the_quota_is_raised(cluster, scheduler, watch, gang):
    cluster.node(cpu=8)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 3})
    watching = watch(namespace)
    cluster.api.create_all(gang("large", namespace))
    wait_for(watching, bound=0, refused=4, why=NOT_YET)
    ensure_for(2, lambda: not bound(watching), "nobody starts")
    cluster.change_quota(namespace, max={"cpu": 4})
    wait_for(watching, bound=4, timeout=15)


def test_a_gang_beyond_its_queue_starts_whole_once_the_queue_is_raised(cluster, scheduler, watch, gang):
    cluster.node(cpu=8)
    namespace = cluster.namespace("team", cluster.queue("small", capability={"cpu": "3"}))
    watching = watch(namespace)
    cluster.api.create_all(gang("large", namespace))
    wait_for(watching, bound=0, refused=4, why=NOT_YET)
    cluster.change_queue("small", capability={"cpu": "4"})
    wait_for(watching, bound=4, timeout=15)


def test_a_gang_takes_back_all_that_it_needs_or_nothing(cluster, scheduler, watch, gang):
    cluster.node(cpu=8)
    lending, owning = cluster.namespace(), cluster.namespace()
    cluster.quota(lending, min={"cpu": 4}, max={"cpu": 8})
    cluster.quota(owning, min={"cpu": 4}, max={"cpu": 8})
    borrowers, owners = watch(lending), watch(owning)
    cluster.api.create_all(pods(8, lending))
    wait_for(borrowers, bound=8)
    cluster.api.create_all(gang("large", owning, minimum=5))
    wait_until(lambda: len(owners.pods) == 5, "all are there")
    ensure_for(5, lambda: not evicted(borrowers), "nobody goes for a part of a gang")
    cluster.api.delete_all("pods", owning)
    cluster.api.create_all(gang("right", owning, minimum=4))
    wait_until(lambda: len(bound(owners)) == 4, "all of it runs", timeout=30)
    evicts(4, borrowers)


def test_a_gang_that_would_itself_borrow_takes_nothing_and_holds_nothing(cluster, quotaward, scheduler, watch, gang):
    cluster.node(cpu=8)
    lending, waiting = cluster.namespace(), cluster.namespace()
    cluster.quota(lending, min={"cpu": 4})
    cluster.quota(waiting, min={"cpu": 4})
    borrowers, others = watch(lending), watch(waiting)
    cluster.api.create_all(gang("lent", lending, minimum=3, cpu=2))
    wait_for(borrowers, bound=3)
    cluster.api.create_all(gang("straddles", waiting, minimum=3, cpu=2))
    wait_for(others, bound=0, refused=3, why=NOT_YET)
    wait_until(
        lambda: [each["reason"] for each in quotaward.get("/api/v1/plan")["waiting"]] == ["gang"] * 3,
        "all three are judged together",
    )
    ensure_for(4, lambda: not quotaward.get("/api/v1/reservations")["items"], "no room is held for it")
    cluster.api.create(pods(1, lending, cpu=2)[0])
    wait_for(borrowers, bound=4)
    assert not evicted(borrowers)


def test_of_a_gang_that_has_borrowed_all_go_or_none(cluster, scheduler, watch, gang):
    cluster.node(cpu=5)
    lending, owning = cluster.namespace(), cluster.namespace()
    cluster.quota(lending, min={"cpu": 1}, max={"cpu": 8})
    cluster.quota(owning, min={"cpu": 4}, max={"cpu": 8})
    borrowers, owners = watch(lending), watch(owning)
    cluster.api.create_all([*gang("team", lending), *pods(1, lending)])
    wait_for(borrowers, bound=5)
    cluster.api.create(pods(1, owning, prefix="first")[0])
    wait_for(owners, bound=1)
    assert evicted(borrowers) == {"pod-0"}
    cluster.api.create(pods(1, owning, prefix="second")[0])
    wait_for(owners, bound=2)
    everybody = {"pod-0", "team-0", "team-1", "team-2", "team-3"}
    wait_until(lambda: evicted(borrowers) == everybody, "the others of the gang go, too", timeout=10)
