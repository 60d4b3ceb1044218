"""Who uses what."""

from dataclasses import replace

import pytest

from policy.quota.account import Account
from policy.quota.ledger import Ledger
from tests.unit.given import amounts, pod, quota


def ledger_with(*quotas) -> Ledger:
    ledger = Ledger()
    for each in quotas:
        ledger.set_quota(each.namespace, each)
    return ledger


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        ("assigned", {"assigned": {"cpu": 1000, "pods": 1}, "used": {"cpu": 1000, "pods": 1}}),
        ("granted", {"used": {"cpu": 1000, "pods": 1}}),
        ("nominated", {"nominated": {7: {"cpu": 1000, "pods": 1}}}),
        ("in_flight", {"in_flight": {"cpu": 1000, "pods": 1}}),
    ],
)
def test_a_pod_counts_where_it_stands_and_leaves_nothing_behind(kind, counted):
    ledger = Ledger()
    ledger.enter(kind, pod("p", priority=7))
    assert ledger.accounts["a"] == Account(**counted)
    assert ledger.entries["p"].kind == kind
    entry = ledger.remove("p")
    assert not ledger.accounts
    assert "p" not in ledger.entries
    ledger.put_back("p", entry)
    assert ledger.accounts["a"] == Account(**counted)


def test_pods_of_two_sizes_in_turn_are_all_taken_out_together_and_put_back():
    ledger, sizes = ledger_with(quota()), (pod("small").request, pod("large", request={"cpu": 2}).request)
    for number in range(5):
        ledger.enter("assigned", replace(pod(f"p{number}"), request=sizes[number % 2]))
    ledger.enter("assigned", pod("stays"))
    before = dict(ledger.accounts["a"].used)
    aside = ledger.set_aside_all([f"p{number}" for number in range(5)])
    assert ledger.accounts["a"].used == pod("stays").request
    ledger.put_back_all(aside)
    assert ledger.accounts["a"].used == before
    assert before["cpu"] == 8000


def test_removing_what_is_not_there_is_no_error():
    assert Ledger().remove("p") is None


def test_a_granted_pod_that_is_assigned_moves_over():
    ledger = ledger_with(quota(least={"cpu": 1}))
    ledger.enter("granted", pod("p"))
    ledger.enter("assigned", pod("p"))
    account = ledger.accounts["a"]
    assert account.assigned == account.used == ledger.pool.used == {"cpu": 1000, "pods": 1}


def test_entering_twice_counts_once():
    ledger = Ledger()
    ledger.enter("assigned", pod("p"))
    ledger.enter("assigned", pod("p"))
    assert ledger.accounts["a"].used == {"cpu": 1000, "pods": 1}


def test_a_changed_request_changes_the_sums_by_the_difference():
    ledger = ledger_with(quota())
    ledger.enter("assigned", pod("p", request={"cpu": 1, "gpu": 2}))
    ledger.enter("assigned", pod("p", request={"cpu": 3}))
    assert ledger.accounts["a"].used == ledger.pool.used == {"cpu": 3000, "pods": 1}


def test_what_may_not_be_evicted_is_counted_separately():
    ledger = Ledger()
    ledger.enter("assigned", pod("p"))
    ledger.enter("granted", pod("q", preemptible=False, request={"cpu": 2}))
    assert ledger.accounts["a"].pinned == {"cpu": 2000, "pods": 1}
    ledger.enter("granted", pod("q", request={"cpu": 2}))
    assert ledger.accounts["a"].pinned == {}


def test_only_namespaces_with_a_quota_use_the_pool():
    ledger = ledger_with(quota("a", least={"cpu": 1}))
    ledger.enter("assigned", pod("p", "a"))
    ledger.enter("assigned", pod("q", "b"))
    ledger.enter("in_flight", pod("r", "b"))
    assert (ledger.pool.used, ledger.pool.in_flight) == ({"cpu": 1000, "pods": 1}, {})
    ledger.set_quota("b", quota("b"))
    assert (ledger.pool.used, ledger.pool.in_flight) == ({"cpu": 2000, "pods": 2}, {"cpu": 1000, "pods": 1})
    ledger.set_quota("a", None)
    assert ledger.pool.used == {"cpu": 1000, "pods": 1}


def test_the_pool_lends_what_a_min_names_even_where_it_is_zero():
    ledger = ledger_with(quota("a", least={"cpu": 2, "gpu": 0}), quota("b", least={"cpu": 3}))
    assert ledger.pool.min == {"cpu": 5000, "gpu": 0}
    ledger.set_quota("a", quota("a", least={"cpu": 1}))
    assert ledger.pool.min == {"cpu": 4000}
    ledger.set_quota("a", None)
    ledger.set_quota("b", None)
    assert ledger.pool.min == {}


def test_quotas_in_force_come_by_namespace():
    ledger = ledger_with(quota("b"), quota("a"))
    ledger.account("c")
    assert [namespace for namespace, _, _ in ledger.quotas()] == ["a", "b"]


@pytest.mark.parametrize(
    ("least", "used", "over"),
    [
        ({}, {"cpu": 9}, False),
        ({"cpu": 2}, {"cpu": 2}, False),
        ({"cpu": 2}, {"cpu": 2.001}, True),
        ({"cpu": 0}, {"gpu": 1}, False),
        ({"cpu": 2, "gpu": 1}, {"cpu": 1, "gpu": 2}, True),
    ],
)
def test_used_is_over_min_in_a_resource_that_min_names(least, used, over):
    assert Account(quota(least=least), used=amounts(**used)).over_min is over


@pytest.mark.parametrize(("priority", "ahead"), [(0, 3), (1, 3), (2, 2), (3, 0)])
def test_nominated_pods_of_the_same_quota_and_equal_or_higher_priority_go_first(priority, ahead):
    ledger = ledger_with(quota())
    ledger.enter("nominated", pod("p", priority=1))
    ledger.enter("nominated", pod("q", priority=2, request={"cpu": 2}))
    own, pooled = ledger.ahead_of(pod("r", priority=priority), ledger.accounts["a"])
    assert own.get("cpu", 0) == pooled.get("cpu", 0) == ahead * 1000


def test_nominated_pods_of_other_quotas_go_first_while_their_quota_is_within_min():
    ledger = ledger_with(quota("a"), quota("b", least={"cpu": 1}))
    ledger.enter("nominated", pod("p", "b", priority=-1))
    asking = pod("q", "a", priority=100)
    assert ledger.ahead_of(asking, ledger.accounts["a"]) == ({}, {"cpu": 1000, "pods": 1})
    ledger.enter("assigned", pod("r", "b", request={"cpu": 2}))
    assert ledger.ahead_of(asking, ledger.accounts["a"]) == ({}, {})
    ledger.remove("r")
    assert ledger.ahead_of(asking, ledger.accounts["a"]) == ({}, {"cpu": 1000, "pods": 1})


def test_nominated_pods_of_the_own_quota_count_in_the_pool_even_over_min():
    ledger = ledger_with(quota("a", least={"cpu": 1}))
    ledger.enter("assigned", pod("p", request={"cpu": 2}))
    ledger.enter("nominated", pod("q"))
    assert ledger.ahead_of(pod("r"), ledger.accounts["a"])[1] == {"cpu": 1000, "pods": 1}


def test_nominated_pods_without_a_quota_count_for_nobody_else():
    ledger = ledger_with(quota("a"))
    ledger.enter("nominated", pod("p", "b"))
    assert ledger.ahead_of(pod("q", "a"), ledger.accounts["a"]) == ({}, {})
