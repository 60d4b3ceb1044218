"""A bound beyond which more is used than anybody was let through for is told."""

from dataclasses import replace

import pytest

from policy.explain.terminating import conditions_of_queue, conditions_of_quota
from tests.unit.given import amounts, cluster_of, pod, quota
from tests.unit.given_queues import pods, queue, world


def of_quota(cluster):
    [known] = cluster.quotas["a"].values()
    return [(each.type, each.message.partition(":")[0]) for each in conditions_of_quota(cluster, known, known)]


def of_queue(cluster):
    return [(each.type, each.message.partition(":")[0]) for each in conditions_of_queue(cluster, "q")]


@pytest.mark.parametrize(("cpu", "expected"), [(2, []), (3, [("Exceeded", "more is used than the max of cpu")])])
def test_a_quota_of_which_more_is_used_than_its_max(cpu, expected):
    runs = pod("p", request={"cpu": 1}, node="n1")
    cluster = cluster_of(quota(most={"cpu": 2, "memory": 5}), runs)
    cluster.upsert_pod(replace(runs, request=amounts(cpu=cpu)), now=1)  # it was resized
    assert of_quota(cluster) == expected


@pytest.mark.parametrize(
    ("most", "expected"), [(3, []), (2, [("Exceeded", "more is used than the capability of cpu")])]
)
def test_a_queue_that_uses_more_than_its_capability(most, expected):
    cluster = world(queue("q", most={"cpu": 9}), "a:q", *pods("a", 3, node="n1"))
    cluster.upsert_queue(queue("q", most={"cpu": most}))
    assert of_queue(cluster) == expected


def test_a_quota_that_is_not_in_force_exceeds_nothing():
    young = quota(name="young", most={"cpu": 0}, created=9)
    cluster = cluster_of(quota(name="old", created=1), young, pod("p", node="n1"))
    conditions = conditions_of_quota(cluster, young, cluster.quotas["a"]["old"])
    assert [each.type for each in conditions] == ["Conflict"]
