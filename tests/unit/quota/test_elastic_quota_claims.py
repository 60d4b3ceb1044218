"""What owners wait for within their min is not lent to others."""

import pytest

from policy.cluster.cluster import Cluster
from policy.objects.group import Group
from policy.objects.pod import Unschedulable
from policy.quota.admission import Rules, hints
from policy.quota.elastic_quota import BORROWING, numbers
from tests.unit.given import cluster_of, pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided

NO_PLACE = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient gpu.")
GPU = {"gpu": 1}
QUOTAS = (quota("a", least={"gpu": 3}, most={"gpu": 4, "memory": 8}), quota("b", least={"gpu": 1}))


def gpu(uid, namespace, **rest):
    return pod(uid, namespace, **{"request": GPU} | rest)


def world(*objects, **options) -> Cluster:
    """Of 4 GPUs a, which is sure of 3, uses 2, and b, which is sure of one, uses that: one is free."""
    running = [gpu(f"{name}{number}", name, node="n1") for name, number in (("a", 1), ("a", 2), ("b", 1))]
    cluster = cluster_of(*QUOTAS, *running, *objects, **options)
    cluster.tick(0)
    return cluster


def answer(cluster: Cluster, asking=None) -> str | None:
    refused = cluster.check(asking or gpu("b2", "b"))
    return refused and refused.message


EXHAUSTED = "ElasticQuota borrowing exhausted: gpu"


@pytest.mark.parametrize(
    ("case", "owner", "expected"),
    [
        ("waits", {}, EXHAUSTED),
        ("no place was found for it", {"unschedulable": NO_PLACE}, EXHAUSTED),
        ("waits at its gate", {"gate": 0}, EXHAUSTED),
        ("waits at a gate of somebody else", {"gated": True}, None),
        ("is going", {"terminating": True}, None),
        ("wants more than is left of its min", {"request": {"gpu": 2}}, None),
        ("asks for nothing that is lent", {"request": {"cpu": 9}}, None),
        ("is beyond its max in something else", {"request": {"gpu": 1, "memory": 9}}, None),
        ("is of a gang that lacks members", {"group": "g"}, None),
        ("has a nominated node", {"nominated_node": "n1"}, EXHAUSTED),
    ],
)
def test_a_borrower_gets_nothing_that_an_owner_waits_for(case, owner, expected):
    cluster = world()
    cluster.upsert_group(Group("a", "g", minimum=2))
    cluster.upsert_pod(gpu("a4", "a", **owner), now=0)
    assert answer(cluster) == expected, case
    cluster.delete_pod("a4")
    assert answer(cluster) is None, case


def test_who_has_nothing_guaranteed_waits_without_a_claim():
    cluster = world(quota("c", most={"gpu": 9}), gpu("c1", "c"), gpu("d1", "d"))
    assert answer(cluster) is None
    cluster.upsert_quota(quota("d", least={"gpu": 0}))
    cluster.upsert_quota(quota("c", least={"gpu": 1}))
    assert answer(cluster) is None, "the sum of min is larger by what c waits for"
    assert cluster.ledger.pool.claims == {"gpu": 1}
    cluster.delete_quota("c", "quota")
    assert cluster.ledger.pool.claims == {}
    assert cluster.ledger.account("c").pending == {}


def test_the_claim_of_its_own_quota_holds_nobody_up():
    cluster = world(gpu("a4", "a"))
    assert answer(cluster, gpu("a5", "a", request={"gpu": 1})) is None
    assert cluster.admit(gpu("a4", "a"), now=0) is None
    assert answer(cluster) == EXHAUSTED, "it has it now"


def test_a_claim_is_what_fits_of_what_is_left_and_no_more():
    cluster = world(gpu("a4", "a"), gpu("a5", "a"), gpu("a6", "a", request={"gpu": 2}))
    assert cluster.ledger.pool.claims == {"gpu": 1}
    cluster.delete_pod("a1")
    assert cluster.ledger.pool.claims == {"gpu": 2}
    cluster.delete_pod("a2")
    assert cluster.ledger.pool.claims == {"gpu": 3}


@pytest.mark.parametrize(("gpus", "outside", "expected"), [(4, 0, EXHAUSTED), (5, 0, None), (5, 1, EXHAUSTED)])
def test_where_nodes_have_less_than_all_mins_a_claim_is_kept_of_what_they_have(gpus, outside, expected):
    others = [gpu(f"free{number}", "free", node="n1") for number in range(outside)]
    cluster = world(quota("c", least={"gpu": 4}), gpu("a4", "a"), *others)
    cluster.upsert_node(node("n1", size={"cpu": 64, "gpu": gpus, "pods": 110}))
    assert answer(divided(cluster)) == expected
    cluster.delete_pod("a4")
    assert answer(divided(cluster)) is None, "whether there is room on nodes is the scheduler's question"


def test_who_waits_in_vain_for_too_long_has_no_claim():
    cluster = world(gpu("a4", "a", unschedulable=NO_PLACE))
    cluster.tick(29)
    assert answer(cluster) == EXHAUSTED
    cluster.tick(31)
    assert answer(cluster) is None


def test_the_numbers_and_the_remedy_name_the_claim_and_whose_it_is():
    cluster = world(gpu("a4", "a"))
    cluster.upsert_node(node("n1", size={"gpu": 4}))
    asking = gpu("b2", "b")
    refused = divided(cluster).check(asking)
    row = numbers(cluster.ledger, asking)["gpu"]
    assert (refused.rule, row["claimedByOthers"], row["poolCapacity"]) == (BORROWING.name, 1, 4)
    texts = [hint.text for hint in hints(cluster.ledger, asking, refused, asking.request)]
    assert texts == [
        "raise min of gpu in ElasticQuota b/quota from 1 to at least 2",
        "wait until 1 of gpu is released under any elastic quota (waiting within their min: a)",
    ]


def test_with_strict_borrowing_an_owner_is_held_by_the_sum_of_min_and_not_by_claims():
    cluster = world(gpu("b3", "b"), rules=Rules(strict_borrowing=True))
    cluster.delete_pod("b1")
    assert answer(cluster, gpu("a4", "a")) is None
