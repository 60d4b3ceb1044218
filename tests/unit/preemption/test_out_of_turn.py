"""A plan waits while the victims of an earlier one would be evicted from the min of their namespace after it."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.preemption.out_of_turn import in_turn, must_wait
from policy.preemption.plans import Plan
from policy.preemption.reclaim import reservation_of
from tests.unit.given import cluster_of, pod, quota
from tests.unit.given_nodes import node


def running(uid: str, cpu: float = 1, namespace: str = "borrower") -> Pod:
    return pod(uid, namespace, request={"cpu": cpu}, node="n1")


FIRST, LARGE, REST = running("first", 1), running("large", 2), running("rest", 0.1)
OWNER, OTHER = pod("owner", "owner"), pod("other", "owner")


def planned(first: Pod = FIRST, owner: Pod = OWNER, least: float = 2, used: float = 0) -> Cluster:
    """The borrower uses 3.1 cores and ``used``; a plan for the owner takes one of them, and has not begun."""
    quotas = quota("borrower", least={"cpu": least}), quota("owner", least={"cpu": 9})
    pods = [FIRST, LARGE, REST, *([running("more", used)] if used else []), owner, OTHER]
    cluster = cluster_of(node(size={"cpu": 99, "pods": 99}), *quotas, *pods)
    cluster.upsert_reservation(reservation_of(Plan(owner, "n1", (first,), 0), since=0))
    return cluster


def plan(*victims: Pod) -> Plan:
    return Plan(OTHER, "n1", victims, 0)


def test_a_plan_waits_that_would_leave_an_earlier_victim_within_min():
    """Used are 3.1 of min 2: one core and then two may go, but not two and then one."""
    assert must_wait(planned(), [plan(LARGE)])
    assert in_turn(planned(), [plan(LARGE), plan(REST)]) == [plan(REST)]


@pytest.mark.parametrize("used", [0.9, 2])
def test_a_plan_need_not_wait_where_any_order_is_lawful(used):
    assert must_wait(planned(used=used), [plan(LARGE)]) is (used < 1)


def test_a_plan_need_not_wait_once_the_earlier_victim_was_asked_to_go():
    cluster = planned()
    cluster.leaving.ask_to_go(FIRST.uid)
    assert not must_wait(cluster, [plan(LARGE)])


def test_a_plan_need_not_wait_for_a_plan_whose_pod_is_gone():
    cluster = planned()
    cluster.delete_pod(OWNER.uid)
    assert not must_wait(cluster, [plan(LARGE)])


def test_a_plan_that_takes_the_same_pod_need_not_wait_for_it():
    assert not must_wait(planned(), [plan(FIRST)])


def test_less_important_pods_of_its_own_namespace_go_whatever_is_left():
    own = replace(OWNER, namespace="borrower")
    assert not must_wait(planned(owner=own), [plan(LARGE)])


def test_where_min_names_nothing_that_a_victim_requests_nothing_of_min_is_taken():
    cluster = planned()
    cluster.upsert_quota(quota("borrower", least={"memory": 9}))
    assert not must_wait(cluster, [plan(LARGE)])


def test_plans_for_a_whole_gang_count_together():
    cluster = planned(used=1)
    assert not must_wait(cluster, [plan(LARGE)])
    assert must_wait(cluster, [plan(LARGE), plan(running("more", 1))])
