"""What somebody waits for is given to nobody else first; and what nobody can use is given away."""

from contextlib import ExitStack

import pytest

from tests.controlplane.objects import condition, is_bound, pod, pods
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, ensure_for, evicted, wait_for

PATIENCE = 2


@pytest.fixture
def started(cluster):
    """Starts a Quotaward of short patience, and then a scheduler that asks it; both end with the test."""
    with ExitStack() as stack:

        def start():
            quotaward = stack.enter_context(Quotaward(cluster.control_plane, "--claims.patience", str(PATIENCE)))
            return quotaward, lambda: stack.enter_context(Scheduler(cluster.control_plane, extender(quotaward.url)))

        yield start


def was_tried(watch, name):
    return any(condition(each, "PodScheduled") for each in watch.pods if each["metadata"]["name"] == name)


def one_leaves_and_the_entitled_one_comes(cluster, owning, borrowing):
    """Two pods wait in vain, the borrower's for longer; one of the owner's ends, and its other one gets the place."""
    cluster.api.create_all([*pods(3, owning.namespace), *pods(1, borrowing.namespace)])
    wait_for(owning, bound=3)
    wait_for(borrowing, bound=1)
    for name, watch in (("later", borrowing), ("next", owning)):
        cluster.api.create(pod(name, watch.namespace))
        wait_until(lambda name=name, watch=watch: was_tried(watch, name), f"{name} was tried")
    ensure_for(3, lambda: not {"later", "next"} & (bound(owning) | bound(borrowing)), "the scheduler backs off no more")
    yield
    cluster.api.delete("pods", min(bound(owning)), owning.namespace)
    wait_until(lambda: "next" in bound(owning), "the entitled one has the place")
    ensure_for(2, lambda: not evicted(borrowing), "nobody had to go for it")
    assert "later" not in borrowing.ever(is_bound)


def test_what_a_pod_of_a_queue_leaves_goes_to_who_is_entitled_to_it_at_once(cluster, watch, started):
    cluster.node(cpu=4)
    names = (cluster.namespace("a", cluster.queue("a", weight=3)), cluster.namespace("b", cluster.queue("b")))
    owning, borrowing = (watch(name) for name in names)
    quotaward, scheduler = started()
    scheduler()
    story = one_leaves_and_the_entitled_one_comes(cluster, owning, borrowing)
    next(story)
    wait_until(lambda: quotaward.get("/api/v1/queues/a")["request"]["cpu"] == "3", "patience with it has ended")
    assert next(story, None) is None


def test_what_an_owner_waits_for_within_its_min_is_lent_to_nobody(cluster, scheduler, watch):
    cluster.node(cpu=4)
    names = cluster.namespace("owner"), cluster.namespace("borrower")
    for name, least in zip(names, (3, 1), strict=True):
        cluster.quota(name, min={"cpu": least})
    owning, borrowing = (watch(name) for name in names)
    assert list(one_leaves_and_the_entitled_one_comes(cluster, owning, borrowing)) == [None]


def test_a_gang_placed_in_part_keeps_no_room_idle_beyond_the_patience(cluster, watch, started):
    install_pod_groups(cluster.api)
    cluster.node("two", cpu=2)
    for name in ("one", "another"):
        cluster.node(name, cpu=1)
    stuck = cluster.namespace("stuck", cluster.queue("stuck", weight=1000))
    able = cluster.namespace("able", cluster.queue("able"))
    waiting = watch(able)
    cluster.api.create(pod_group("gang", stuck, 2))
    cluster.api.create_all([*members("gang", stuck, 2, cpu=2), *pods(4, able)])
    quotaward, scheduler = started()
    wait_until(lambda: quotaward.get("/api/v1/queues/stuck")["request"].get("cpu") == "4", "all that waits is known")
    scheduler()
    wait_for(waiting, bound=4)
    ensure_for(2 * PATIENCE, lambda: len(bound(waiting)) == 4 and not evicted(waiting), "and stay")
