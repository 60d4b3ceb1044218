"""Pods move from one state to another, however many of them do so at once."""

import pytest

from policy.cluster import pod_states
from policy.objects.membership import Namespace
from policy.objects.queue import Queue
from policy.stepwise import at_once
from tests.unit.given import cluster_of, pod, quota

WAIT = 20


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    monkeypatch.setattr(pod_states, "AT_ONCE", 5)


def waiting(**rest):
    return [pod(f"w{number}", **rest) for number in range(WAIT)]


def entered(cluster, *, claims=True):
    """How many waiting pods count with a claim, or without one."""
    return sum(entry.kind == "pending" and entry.claims is claims for entry in cluster.ledger.entries.values())


@pytest.mark.parametrize("gate", [-1, 0], ids=["not gated", "gated"])
def test_very_many_that_wait_under_a_quota_that_comes_or_goes_are_entered_later(gate):
    cluster = cluster_of(*waiting(gate=gate))
    cluster.upsert_quota(quota(least={"cpu": 3}))
    assert (entered(cluster), cluster.to_be_divided) == (5, True)
    at_once(cluster.divide_steps())
    assert (entered(cluster), cluster.divided) == (WAIT, True)
    cluster.delete_quota("a", "quota")
    assert (entered(cluster), cluster.divided) == (WAIT - 5, False)
    at_once(cluster.divide_steps())
    assert (entered(cluster), cluster.divided, cluster.ledger.pool.claims) == (0, True, {})


def test_very_many_in_a_queue_that_closes_are_entered_later():
    cluster = cluster_of(*waiting())
    cluster.upsert_queue(Queue("q"))
    cluster.upsert_namespace(Namespace("a", queue="q"))
    at_once(cluster.divide_steps())
    cluster.upsert_queue(Queue("q", state="Closed"))
    assert entered(cluster, claims=False) == 5
    steps = sum(1 for _ in cluster.divide_steps(4))
    assert (entered(cluster, claims=False), cluster.to_be_divided) == (9, True)
    assert sum(1 for _ in cluster.divide_steps()) == steps + WAIT - 9 - 4, "a pause after each"
    assert (entered(cluster, claims=False), cluster.divided) == (WAIT, True)


def test_who_runs_counts_in_a_new_queue_at_once_however_many_do():
    running = [pod(f"r{number}", node="n1") for number in range(WAIT)]
    cluster = cluster_of(*running, *waiting())
    cluster.upsert_namespace(Namespace("a", queue="q"))
    cluster.upsert_queue(Queue("q"))
    assert cluster.ledger.queues.account("q").taken["pods"] == WAIT
    assert cluster.ledger.queues.account("q").pending["pods"] == 5


def test_who_goes_or_is_let_in_before_it_is_entered_is_not_entered_again():
    cluster = cluster_of(*waiting())
    cluster.upsert_quota(quota(least={"cpu": 3}))
    cluster.delete_pod("w9")
    cluster.grant(cluster.pods["w8"], 0)
    at_once(cluster.divide_steps())
    assert (entered(cluster), cluster.ledger.entries["w8"].kind) == (WAIT - 2, "granted")
    assert "w9" not in cluster.ledger.entries


@pytest.mark.parametrize(("cpu", "used"), [(2, 2000), (3, 0), (0.5, 500)], ids=["admitted", "not admitted", "less"])
def test_a_grant_that_grows_as_its_pod_is_resized_ends_unless_the_rules_admit_it(cpu, used):
    cluster = cluster_of(quota(most={"cpu": 2}), pod("p", version=1))
    assert cluster.admit(cluster.pods["p"], now=0) is None
    cluster.upsert_pod(pod("p", request={"cpu": cpu}, version=2), now=1)
    assert (cluster.ledger.account("a").used.get("cpu", 0), len(cluster.grants)) == (used, used > 0)
