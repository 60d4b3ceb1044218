"""Whether borrowers leave a node for the job that it is reserved for (reserve.evict), and who stays whatever is set."""

from dataclasses import replace

import pytest

from policy.cluster.budgets import Budget
from policy.preemption import joint_plans, preemptors, victims
from policy.preemption.plans import Plan
from policy.quota.admission import Rules
from policy.stepwise import at_once
from tests.unit.given import quota, wait_for_room
from tests.unit.given_jobs import gang, reserve_all, reserved, seen, sized, sized_pod, waiting
from tests.unit.given_nodes import labelled

EVICTING = Rules(evict_for_reserved=True)
LENT = quota("b", least={"cpu": 0}, most={"cpu": 9})


def runs(name, on="n1", cpu=1.5, namespace="b", **rest):
    return sized_pod(name, cpu, node=on, namespace=namespace, **rest)


def world(*objects, quotas=(LENT,), rules=EVICTING):
    """What starves has its nodes; the pod group too, if there is one."""
    cluster = seen(*objects)
    cluster.rules = rules
    for each in quotas:
        cluster.upsert_quota(each)
    reserve_all(cluster)
    return cluster


def going(cluster, name="big"):
    """Who is to go for a pod."""
    result = victims.plan(cluster, cluster.pods[name])
    return sorted(pod.name for pod in result.victims) if isinstance(result, Plan) else []


def test_borrowers_on_the_reserved_node_go_for_a_job_without_an_entitlement():
    cluster = world(sized("n1"), runs("r1"), runs("r2"), waiting())
    assert reserved(cluster) == {"big": "n1"}
    assert going(cluster) == ["r1", "r2"]
    assert [pod.name for pod in wait_for_room(cluster, now=10, delay=1)] == ["big"]


def test_nobody_goes_by_default():
    cluster = world(sized("n1"), runs("r1"), runs("r2"), waiting(), rules=Rules())
    assert reserved(cluster) == {"big": "n1"}
    assert going(cluster) == []
    assert wait_for_room(cluster, now=10, delay=1) == []


def test_nobody_goes_from_a_node_that_is_not_reserved():
    cluster = world(sized("n1"), sized("n2"), runs("r1"), runs("r2", "n2", 3, namespace="c"), waiting(age=60))
    assert (reserved(cluster), going(cluster)) == ({}, [])


PROTECTED = {
    "its quota is within its min": (quota("b", least={"cpu": 3}, most={"cpu": 9}), runs("r2")),
    "its quota would fall below its min with both": (quota("b", least={"cpu": 2}, most={"cpu": 9}), runs("r2")),
    "it may not be evicted, within its min": (quota("c", least={"cpu": 2}, most={"cpu": 9}), runs("r2", namespace="c")),
    "it belongs to the system": (LENT, runs("r2", priority=2_000_000_000)),
    "it is under no quota": (LENT, runs("r2", namespace="d")),
    "its quota cannot be read": (replace(quota("c"), readable=False), runs("r2", namespace="c")),
}


@pytest.mark.parametrize(("bound", "stays"), PROTECTED.values(), ids=PROTECTED)
def test_who_is_protected_from_reclaim_stays_and_then_nobody_else_goes_in_vain(bound, stays):
    quotas = [LENT, bound] if bound.namespace != "b" else [bound]
    if bound.namespace == "c" and bound.readable:
        stays = replace(stays, preemptible=False)
    cluster = world(sized("n1"), runs("r1"), stays, waiting(), quotas=quotas)
    assert reserved(cluster) == {"big": "n1"}
    assert going(cluster) == []


def test_an_eviction_that_a_budget_does_not_allow_is_counted_and_so_comes_last():
    cluster = world(sized("n1"), runs("r1", labels={"app": "web"}), runs("r2"), waiting(cpu=1.5))
    cluster.upsert_budget(Budget("b", "budget", labelled(app="web"), 0))
    assert going(cluster) == ["r2"]
    cluster.delete_pod("r2")
    cluster.upsert_pod(runs("r3", cpu=1.5, labels={"app": "web"}), now=0)
    assert victims.plan(cluster, cluster.pods["big"]).violations == 1


def test_for_a_gang_there_are_plans_for_all_of_its_members_or_for_none():
    nodes = [sized("n1"), sized("n2")]
    for quotas, expected in (
        ((LENT,), {"n1": ["r1"], "n2": ["r2"]}),
        ((LENT, quota("c", least={"cpu": 9}, most={"cpu": 9})), None),
    ):
        other = runs("r2", "n2", 3, namespace="b" if expected else "c")
        cluster = world(*nodes, runs("r1", "n1", 3), other, *gang("w1", "w2"), quotas=quotas)
        assert set(reserved(cluster).values()) == {"n1", "n2"}
        members = preemptors.together_with(cluster, cluster.pods["w1"], wait_for_room(cluster, now=10, delay=1))
        result = at_once(joint_plans.plans_for_all_steps(cluster, members))
        found = {plan.node: [pod.name for pod in plan.victims] for plan in result} if isinstance(result, list) else None
        assert found == expected
