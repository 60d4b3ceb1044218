"""Elastic quotas, as the users of a stock scheduler see them."""

import time

import pytest

from tests.controlplane.objects import is_bound, pods
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import right_to_bind
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import NO_MORE_TO_BORROW, wait_for, wait_for_quiet, was_woken


@pytest.fixture
def crowd(cluster, scheduler):
    """A namespace with max 50 cpu where 200 pods of 1 cpu were created at once; its watch, when all were tried."""
    cluster.nodes(4, cpu=64)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 50})
    with PodWatch(cluster.api, namespace) as watch:
        cluster.api.create_all(pods(200, namespace))
        wait_for(watch, bound=50, refused=150)
        yield watch


def test_of_200_pods_at_once_as_many_bind_as_max_allows_and_the_others_say_why(crowd, quotaward):
    assert crowd.most_bound() == 50
    wait_until(lambda: all(pod["status"]["phase"] == "Running" for pod in crowd.pods if is_bound(pod)), "all run")
    wait_for_quiet(quotaward)
    calls, since = quotaward.requests("filter"), time.monotonic()
    time.sleep(30)  # the time under test
    assert quotaward.requests("filter") - calls <= 150, f"in {time.monotonic() - since:.0f} s"
    assert crowd.most_bound() == 50
    assert crowd.gaps == 0


def test_as_many_waiting_pods_bind_as_are_deleted_and_all_when_max_is_raised(cluster, quotaward, crowd):
    assert not crowd.ever(was_woken), "a pod that is still refused was woken"
    for pod in [pod for pod in crowd.pods if is_bound(pod)][:10]:
        cluster.api.delete("pods", pod["metadata"]["name"], crowd.namespace)
    wait_for(crowd, bound=50, refused=140)
    assert crowd.most_bound() == 50
    wait_for_quiet(quotaward, seconds=5)  # pods that the scheduler tries again by itself need not be woken
    cluster.change_quota(crowd.namespace, max={"cpu": 200})
    wait_for(crowd, bound=190)
    assert crowd.ever(was_woken)
    assert crowd.gaps == 0


@pytest.mark.parametrize("node_cache_capable", [True, False])
def test_a_quota_holds_with_and_without_node_cache(cluster, quotaward, node_cache_capable):
    cluster.nodes(3)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 10})
    asking = extender(quotaward.url, node_cache_capable=node_cache_capable)
    with Scheduler(cluster.control_plane, asking), PodWatch(cluster.api, namespace) as watch:
        cluster.api.create_all(pods(30, namespace))
        wait_for(watch, bound=10, refused=20)
        assert watch.most_bound() == 10


def test_quotaward_binds_the_pods_where_it_is_asked_to(cluster, quotaward):
    cluster.nodes(3)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 10})
    before = quotaward.requests("bind")
    scheduler = Scheduler(cluster.control_plane, extender(quotaward.url, bind=True))
    with right_to_bind(cluster.api), scheduler, PodWatch(cluster.api, namespace) as watch:
        cluster.api.create_all(pods(30, namespace))
        wait_for(watch, bound=10, refused=20)
        assert watch.most_bound() == 10
    assert quotaward.requests("bind") - before == 10


def test_unused_min_is_lent_until_it_is_used_up_and_its_owner_still_binds(cluster, scheduler):
    cluster.node(cpu=64)
    owner, borrower = cluster.namespace("owner"), cluster.namespace("borrower")
    for namespace in (owner, borrower):
        cluster.quota(namespace, min={"cpu": 2}, max={"cpu": 8})
    with PodWatch(cluster.api, borrower) as borrowing, PodWatch(cluster.api, owner) as owning:
        cluster.api.create_all(pods(8, borrower))
        wait_for(borrowing, bound=4, refused=4, why=NO_MORE_TO_BORROW)
        cluster.api.create_all(pods(3, owner))
        wait_for(owning, bound=2, refused=1, why=NO_MORE_TO_BORROW)
        assert borrowing.most_bound() == 4
