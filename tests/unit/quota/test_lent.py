"""Lent: what others hold beyond their own is found out once, and again after each change."""

import pytest

from policy.objects.membership import Namespace
from policy.quota.entitlement import entitlement
from policy.quota.lent import Lent
from tests.unit.given import pod, quota
from tests.unit.given_queues import divided, pods, queue, world

BOUNDS = {
    "quota": ("a:", "b:", quota("a", least={"cpu": 8}), quota("b", least={"cpu": 2}, most={"cpu": 99})),
    "queue": ("a:qa", "b:qb", queue("qa"), queue("qb")),
    "share": ("a:q", "b:q", queue("q")),
}
HALF = {"quota": 2, "queue": 8, "share": 8}


def of(bound):
    """Namespaces of which a waits for more than its own, and b has all that is its own."""
    objects = BOUNDS[bound]
    quotas = objects[2:] if bound == "quota" else ()
    rest = objects[:2] if quotas else objects
    cluster = world(*rest, *pods("a", 16), *pods("b", HALF[bound], node="n1"))
    for each in quotas:
        cluster.upsert_quota(each)
    return cluster


def is_held(cluster, namespace="a"):
    """Whether others hold what a pod of one core may take back."""
    asking = pod("asking", namespace)
    return divided(cluster).lent.is_held_by_others(entitlement(cluster.ledger, asking, by_share=True))


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_others_come_to_hold_or_hold_no_longer_is_known_at_once(bound):
    cluster = of(bound)
    cluster.upsert_pod(pod("more", "b"), now=0)
    assert not is_held(cluster)
    cluster.upsert_pod(pod("more", "b", node="n1"), now=0)
    assert is_held(cluster)
    cluster.delete_pod("more")
    assert not is_held(cluster)
    cluster.upsert_pod(pod("other", "a", node="n1"), now=0)
    assert not is_held(cluster)


def test_what_a_quota_lets_be_taken_back_is_known_once_its_min_is_lowered():
    cluster = of("quota")
    assert not is_held(cluster)
    cluster.upsert_quota(quota("b", least={"cpu": 1}, most={"cpu": 99}))
    assert is_held(cluster)


def test_what_its_own_namespace_holds_in_another_queue_is_not_held_by_others():
    cluster = world(*BOUNDS["queue"], *pods("a", 16))
    cluster.upsert_namespace(Namespace("a", "qa", allowed=frozenset({"qb"})))
    for each in pods("a", 9, 16, queue="qb", node="n1"):
        cluster.upsert_pod(each, now=0)
    assert divided(cluster).ledger.queues.over_deserved == {"qb"}
    assert not is_held(cluster)
    cluster.upsert_pod(pod("other", "b", node="n1"), now=0)
    assert is_held(cluster)


def test_for_many_who_ask_the_quotas_are_looked_at_once(monkeypatch):
    looks, by_quota = [], Lent._by_quota
    monkeypatch.setattr(Lent, "_by_quota", lambda *args: looks.append(args) or by_quota(*args))
    cluster = of("quota")
    assert [is_held(cluster) for _ in range(3)] == [False] * 3
    assert len(looks) == 1
