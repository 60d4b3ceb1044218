"""Who is admitted, and that to ask changes nothing."""

from policy.quota.admission import Rules
from tests.unit.cluster.test_cluster import ONE_CORE, kinds, text, used
from tests.unit.given import LARGE, cluster_of, pod, quota


def test_a_pod_may_be_admitted_before_it_is_seen():
    cluster = cluster_of(quota(most={"cpu": 1}))
    assert text(cluster, pod("p")) is None
    cluster.upsert_pod(pod("p"), now=0)
    assert kinds(cluster) == {"p": "granted"}
    assert text(cluster, pod("q")) == "ElasticQuota max exceeded: cpu"


def test_a_pod_that_is_already_on_a_node_is_not_refused():
    cluster = cluster_of(quota(most={"cpu": 1}), pod("p", node="n", request={"cpu": 5}))
    assert text(cluster, pod("p", request={"cpu": 5})) is None
    assert cluster.check(pod("p", request={"cpu": 5})) is None
    assert kinds(cluster) == {"p": "assigned"}


def test_its_own_grant_does_not_count_against_a_pod():
    cluster = cluster_of(quota(most={"cpu": 1}), pod("p"))
    assert [text(cluster, pod("p"), now) for now in (0, 0, 0.5, 20)] == [None] * 4
    assert used(cluster) == ONE_CORE


def test_checking_grants_nothing_and_changes_nothing():
    cluster = cluster_of(LARGE, quota(most={"cpu": 1}), pod("p", nominated_node="n"))
    assert cluster.check(pod("p", nominated_node="n")) is None
    assert cluster.check(pod("q")).message == "ElasticQuota max exceeded: cpu"
    assert (kinds(cluster), len(cluster.grants)) == ({"p": "nominated"}, 0)


def test_strict_borrowing_makes_an_owner_wait():
    objects = (quota("a", least={"cpu": 1}), quota("b", least={"cpu": 1}), pod("p", "b", node="n", request={"cpu": 2}))
    assert text(cluster_of(*objects), pod("q")) is None
    strict = cluster_of(*objects, rules=Rules(strict_borrowing=True))
    assert text(strict, pod("q")) == "ElasticQuota borrowing exhausted: cpu"
