"""After a start, what an earlier process admitted may still be on its way."""

import pytest

from policy.cluster.cluster import Cluster
from policy.cluster.pod_admission import Unsettled
from tests.unit.cluster.test_cluster import OTHER_REASON, kinds, text
from tests.unit.given import LARGE, cluster_of, pod, quota


def starting(*objects) -> Cluster:
    return cluster_of(*objects, settle_time=3)


def test_what_depends_on_pods_in_flight_is_not_answered_yet():
    cluster = starting(quota(most={"cpu": 2}), pod("p", request={"cpu": 2}), pod("q"), pod("r", request={"cpu": 3}))
    cluster.in_flight.suspect(now=100)
    with pytest.raises(Unsettled):
        cluster.admit(pod("q"), now=100)
    assert text(cluster, pod("r", request={"cpu": 3}), now=100) == "ElasticQuota max exceeded: cpu"
    assert text(cluster, pod("s", "free"), now=100) is None
    cluster.tick(102.9)
    with pytest.raises(Unsettled):
        cluster.admit(pod("q"), now=102.9)
    cluster.tick(103)
    assert text(cluster, pod("q"), now=103) is None


def test_what_is_asked_for_is_not_in_flight():
    cluster = starting(quota(most={"cpu": 1}), pod("p"), pod("q", "free"))
    cluster.in_flight.suspect(now=0)
    assert text(cluster, pod("p")) is None


def test_an_arrival_shows_that_there_may_be_more():
    cluster = starting(quota(most={"cpu": 3}), pod("p"), pod("q"), pod("r", request={"cpu": 2}))
    cluster.in_flight.suspect(now=0)
    cluster.upsert_pod(pod("p", node="n"), now=2)
    cluster.tick(4)
    with pytest.raises(Unsettled):
        cluster.admit(pod("r", request={"cpu": 2}), now=4)
    cluster.tick(5)
    assert text(cluster, pod("r", request={"cpu": 2}), now=5) is None


def test_a_pod_that_was_refused_meanwhile_is_not_in_flight():
    cluster = starting(quota(most={"cpu": 1}), pod("p"), pod("q"))
    cluster.in_flight.suspect(now=0)
    cluster.upsert_pod(pod("p", priority=1), now=1)
    assert kinds(cluster)["p"] == "in_flight"
    cluster.upsert_pod(pod("p", unschedulable=OTHER_REASON), now=1)
    assert kinds(cluster) == {"q": "in_flight"}
    assert text(cluster, pod("q"), now=1) is None


def test_a_pod_that_could_not_be_answered_waits_for_its_nominated_node_as_before():
    cluster = starting(LARGE, quota(most={"cpu": 1}), pod("p"), pod("q", nominated_node="n"))
    cluster.in_flight.suspect(now=0)
    with pytest.raises(Unsettled):
        cluster.admit(pod("q"), now=0)
    assert kinds(cluster) == {"p": "in_flight", "q": "nominated"}
