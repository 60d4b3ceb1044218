"""Pods that are critical to the system: where no rule applies to them, and that nobody takes them."""

from dataclasses import replace

import pytest

from policy.cluster.assumed import alike
from policy.cluster.pod_admission import Unsettled
from policy.cluster.quota_manager import decide
from policy.explain.remedy import pods_to_end
from policy.explain.verdicts import verdict_on
from policy.objects.constraints import Constraints
from policy.objects.membership import DEFAULT, Namespace
from policy.objects.pod import Pod
from policy.objects.reservation import STARVING, Reservation
from policy.preemption.plan_text import for_pod_steps
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.reclaim import name_of
from policy.preemption.victims import plan
from policy.queueing import positions
from policy.queueing.waking import to_wake
from policy.quota.admission import Rules, refusal_of_all
from policy.quota.elastic_quota import MAX
from policy.quota.gang_minimum import REFUSAL
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.stepwise import at_once
from tests.unit.given import pod, quota, refused_for, unreadable, wait_for_room
from tests.unit.given_gangs import asked, bound, group, members, see, seeing
from tests.unit.given_gates import NO_ROOM, gate, gated, ungated
from tests.unit.given_jobs import chosen, seen, sized, sized_pod
from tests.unit.given_jobs import waiting as large
from tests.unit.given_nodes import node
from tests.unit.given_queues import queue, world

SYSTEM = 2_000_000_000
NODE_CRITICAL = 2_000_001_000
CLOSED = queue("q", state="Closed")


def critical(namespace: str = "kube-system", uid: str = "cni", **rest):
    """A pod that is critical to its node, as a CNI's is."""
    return pod(uid, namespace, **({"priority": NODE_CRITICAL} | rest))


def run(uid: str, namespace: str = "a", **rest):
    return pod(uid, namespace, **({"node": "n1"} | rest))


# Who is exempt


@pytest.mark.parametrize(
    ("asking", "exempt"),
    [
        (critical(), True),
        (critical(priority=SYSTEM), True),
        (critical(priority=SYSTEM - 1), False),
        (critical("quotaward-system"), True),
        (critical("bounded"), False),
        (critical("bounded", preemptible=False), False),
        (critical("unreadable"), False),
        (critical("queued"), False),
        (critical("free"), True),
        (critical("free", priority=SYSTEM - 1), False),
        (critical("free", queue=DEFAULT), False),
        (critical("free", queue="q"), False),
        (critical("kube-system", queue="q"), True),
        (critical("free", group="grouped"), False),
    ],
    ids=lambda each: f"{each.namespace} {each.priority} {each.queue}{each.group}" if isinstance(each, Pod) else "",
)
@pytest.mark.parametrize("more", [[], [queue(DEFAULT)]], ids=["without a queue default", "with a queue default"])
def test_where_no_rule_applies_to_a_pod(asking, exempt, more):
    bounds = quota("bounded", most={"cpu": 0}), quota("kube-system", most={"cpu": 0}), unreadable("unreadable")
    cluster = world(CLOSED, *more, "queued:q")
    see(cluster, *bounds, group("grouped", namespace="free", queue="q"))
    assert cluster.is_exempt(asking) == exempt
    assert not exempt or cluster.admit(asking, now=0) is None


def test_the_operator_says_in_which_namespaces():
    rules = Rules(exempt_namespaces=frozenset({"infra"}))
    cluster = seeing(quota("infra", most={"cpu": 0}), quota("kube-system", most={"cpu": 0}), rules=rules)
    assert cluster.admit(critical("infra"), now=0) is None
    assert cluster.admit(critical("kube-system"), now=0).rule == MAX.name


def test_a_namespace_that_names_a_queue_which_is_not_there_has_one_of_its_own():
    cluster = world(queue("other"), "lost:nowhere")
    assert cluster.check(critical("lost")).rule == "queue-closed"


def test_it_counts_as_used_and_others_are_refused_for_it():
    cluster = seeing(quota("kube-system", most={"cpu": 1}))
    assert cluster.admit(critical(), now=0) is None
    assert cluster.admit(critical(uid="second"), now=0) is None
    assert cluster.ledger.account("kube-system").used == {"cpu": 2000, "pods": 2}
    assert cluster.admit(pod("ordinary", "kube-system"), now=0).rule == MAX.name


# Who says no


def test_it_is_let_through_while_an_earlier_process_may_have_admitted_others():
    cluster = seeing(quota("kube-system", most={"cpu": 2}), pod("other", "kube-system"), settle_time=3)
    cluster.in_flight.suspect(now=0)
    with pytest.raises(Unsettled):
        cluster.admit(pod("ordinary", "kube-system", request={"cpu": 2}), now=0)
    assert cluster.admit(critical(request={"cpu": 2}), now=0) is None


def test_what_the_queue_default_has_left_does_not_matter():
    cluster = world(queue(DEFAULT), queue("big", weight=19), "a:big", *[pod(f"w{n}") for n in range(40)], cpu=20)
    see(cluster, run("sys", "kube-system"))
    assert cluster.admit(pod("ordinary", "kube-system"), now=0) is not None
    assert cluster.admit(critical(), now=0) is None


def test_it_need_not_wait_for_others_of_its_group():
    alone = critical(group="g")
    cluster = seeing(node(), group("g", namespace="kube-system"), alone)
    assert cluster.admit(critical(uid="other", group="g", priority=0), now=0) == REFUSAL
    assert cluster.admit(alone, now=0) is None
    assert verdict_on(cluster, "kube-system", "cni").outcome == "admissible"


def test_an_exempt_and_an_ordinary_one_of_the_queue_default_are_not_taken_for_alike():
    cluster = world(queue(DEFAULT, most={"cpu": 1}), run("there", "free", queue=DEFAULT))
    free = critical("free", unschedulable=refused_for(MAX))
    bound_by_it = replace(free, uid="also", name="also", queue=DEFAULT)
    see(cluster, free, bound_by_it)
    assert refusal_of_all(cluster.ledger, [free], cluster.rules) is None
    assert refusal_of_all(cluster.ledger, [bound_by_it, free], cluster.rules) is not None
    assert [each.uid for each in to_wake(cluster)] == ["cni"]
    granted = free, replace(free, uid="z", namespace="other"), replace(free, uid="like")
    assert [(one.uid, number) for one, number in alike(granted, cluster.table)] == [("cni", 2), ("z", 1)]


# Nodes that are kept for others


PINNED = {"owner": "DaemonSet"}


def holding():
    """Both nodes are held: for a gang of another namespace, one of whose members has come through."""
    gang = members(count=2, request={"cpu": 4})
    cluster = seeing(node("n1"), node("n2"), group(minimum=2), *gang)
    assert asked(cluster, gang[0]) == ["g0"]
    return cluster


def planned():
    """Node n1 is held by a plan, for a pod that is as important as can be."""
    cluster = seeing(node("n1"), quota("own", least={"cpu": 4}), run("b", request={"cpu": 4}))
    see(cluster, pod("me", "own", request={"cpu": 4}, priority=2**31 - 1))
    cluster.upsert_reservation(
        Reservation("r", name_of(cluster.pods["me"]), "n1", (name_of(cluster.pods["b"]),), since=0.0)
    )
    return cluster


def starving():
    """Node n1 is reserved for a job that starves."""
    cluster = seeing(node("n1"), node("n2"), pod("big", "x", request={"cpu": 4}))
    cluster.upsert_reservation(Reservation("r", name_of(cluster.pods["big"]), "n1", (), 0.0, STARVING, job="pods/big"))
    return cluster


@pytest.mark.parametrize("kept", [holding, planned, starving])
@pytest.mark.parametrize(
    ("asking", "enters"),
    [
        (pod("p", "x"), False),
        (pod("p", "kube-system", priority=SYSTEM - 1), False),
        (pod("p", "x", **PINNED), True),
        (pod("p", "own", **PINNED), True),
        (critical("x"), True),
        (critical(), True),
    ],
    ids=["another", "not critical", "of a DaemonSet", "of a DaemonSet, with a quota", "exempt", "of kube-system"],
)
def test_who_may_use_a_node_that_is_kept_for_others(kept, asking, enters):
    cluster = kept()
    assert (
        "n1" not in cluster.reservations.nodes_held_from(asking) | cluster.reservations.nodes_reserved_from(asking)
    ) == enters


def test_a_pod_of_a_daemon_set_is_bound_by_its_quota_all_the_same():
    cluster = planned()
    see(cluster, quota("x", most={"cpu": 0}))
    assert cluster.admit(pod("p", "x", **PINNED), now=0).rule == MAX.name


def test_a_pod_that_was_kept_off_is_woken_once_it_no_longer_is():
    kept_off = refused_for(MAX)
    cluster = seeing(quota("free", most={"cpu": 0}), critical("free", unschedulable=kept_off))
    assert to_wake(cluster) == []
    generation = cluster.generations.admission
    cluster.delete_quota("free", "quota")
    assert cluster.generations.admission > generation
    assert [each.uid for each in to_wake(cluster)] == ["cni"]


# Gates


def test_it_is_ungated_at_once_and_others_of_its_namespace_are_not():
    cluster = world(queue(DEFAULT, most={"cpu": 1}), run("there", "free"), *gated(pod("p", "free")))
    see(cluster, *gated(critical("free"), critical("free", "low", priority=SYSTEM), critical("a", "tenant")))
    see(cluster, quota("a", most={"cpu": 0}))
    gate(cluster, "free", "a")
    assert positions.position_text(cluster, cluster.pods["cni"]) == "no rule applies to it: it is being ungated"
    assert ungated(cluster) == ["cni", "low"]
    assert "free" not in {namespace for (_, namespace), line in cluster.gates.lines.items() if len(line) > 1}


def test_others_of_its_group_stay_at_their_gates():
    cluster = world(queue(DEFAULT, most={"cpu": 0}))
    see(cluster, group("g", 2, "free"), *gated(critical("free", group="g"), pod("p", "free", group="g")))
    gate(cluster, "free")
    assert ungated(cluster) == ["cni"]


# Who goes


@pytest.mark.parametrize("namespace", ["kube-system", "free", "b"])
@pytest.mark.parametrize("priority", [0, SYSTEM + 1, 2**31 - 1])
def test_no_critical_pod_is_a_victim_however_important_the_preemptor(namespace, priority):
    victim = run("cni", namespace, priority=SYSTEM, request={"cpu": 4})
    cluster = seeing(node(), quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0}), victim)
    for asking in (pod("me", "a", priority=priority), pod("me", "b", priority=priority)):
        assert isinstance(plan(cluster, asking), NoPlan)
    assert isinstance(plan(cluster, critical(priority=2**31 - 1)), NoPlan)


def test_nobody_is_evicted_by_us_for_it_as_the_scheduler_does_that():
    waits = critical(unschedulable=NO_ROOM)
    cluster = seeing(node(), quota("a", least={"cpu": 0}), quota("kube-system", least={"cpu": 4}), run("a1"), waits)
    assert wait_for_room(cluster, now=100, delay=1) == []
    assert at_once(for_pod_steps(cluster, waits)) == ""


def test_what_the_scheduler_will_do_for_it_is_foreseen():
    lent = [run("a1", priority=5, request={"cpu": 2}), run("a2", priority=4, request={"cpu": 2})]
    cluster = seeing(node(), quota("a", least={"cpu": 4}), *lent, critical(unschedulable=NO_ROOM))
    found = plan(cluster, cluster.pods["cni"])
    assert isinstance(found, Plan)
    assert [victim.uid for victim in found.victims] == ["a2"]
    simulation = Simulation(cluster, Terms(), now=100.0)
    at_once(simulation.come_to_rest_steps())
    assert [each.pod.uid for each in simulation.evictions] == ["a2"]
    assert cluster.pods["cni"].node == "n1"


def test_a_borrower_that_is_critical_stays_and_others_go():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    there = run("b1", "b", priority=SYSTEM, request={"cpu": 2}), run("b2", "b", priority=9, request={"cpu": 2})
    found = plan(seeing(node(), *quotas, *there), pod("me", "a"))
    assert isinstance(found, Plan)
    assert [victim.uid for victim in found.victims] == ["b2"]


def test_of_a_broken_gang_what_is_critical_stays():
    there = [replace(each, priority=(0, SYSTEM, 0)[at]) for at, each in enumerate(members(namespace="b"))]
    lent = quota("a", least={"cpu": 1}), quota("b", least={"cpu": 0})
    waits = pod("me", "a", unschedulable=NO_ROOM)
    cluster = seeing(node(size={"cpu": 3}), group(namespace="b"), *lent, *map(bound, there), waits)
    simulation = Simulation(cluster, Terms(), now=100.0)
    at_once(simulation.come_to_rest_steps())
    assert "g1" in cluster.pods


# What people are told


@pytest.mark.parametrize(
    ("asking", "why"),
    [
        (critical(), "namespace kube-system is exempt"),
        (critical("free"), "namespace free has neither an ElasticQuota nor a queue of its own"),
    ],
    ids=["by its namespace", "by nothing"],
)
def test_the_verdict_says_why_no_rule_applies(asking, why):
    told = f"no rule applies to it, as it is critical to the system (priority {NODE_CRITICAL}) and {why}"
    cluster = world(queue(DEFAULT), asking)
    assert verdict_on(cluster, asking.namespace, "cni").message == f"{told}; waiting for the scheduler to try it"
    see(cluster, replace(asking, unschedulable=NO_ROOM))
    told_now = f"{told}; the scheduler says: {NO_ROOM.message}"
    assert verdict_on(cluster, asking.namespace, "cni").message == told_now
    assert cluster.admit(cluster.pods["cni"], now=0) is None
    assert verdict_on(cluster, asking.namespace, "cni").message == f"{told}; waiting for the scheduler to bind it"


def test_nobody_is_told_to_end_it():
    cluster = seeing(run("cni", "kube-system", priority=SYSTEM), run("other"), run("tenant", "b", priority=SYSTEM))
    see(cluster, quota("b"))
    assert {each.uid for each in pods_to_end(cluster, lambda _: True)} == {"other", "tenant"}


# Other places that keep room or pods away


def test_namespaces_that_are_exempt_get_no_resource_quota():
    there = run("a1", "infra"), run("b1", "a"), run("c1", "quotaward-system")
    cluster = world(queue(DEFAULT), *there, rules=Rules(quota_manager=True, exempt_namespaces=frozenset({"infra"})))
    assert set(decide(cluster, {}).limits) == {"a", "quotaward-system"}


def test_what_an_exempt_pod_uses_is_not_waited_for_when_a_node_is_reserved():
    stays = replace(sized_pod("cni", 0.5, node="n1"), namespace="kube-system", priority=SYSTEM)
    assert chosen(seen(sized(), stays, large(cpu=2.5))) == {"big": "n1"}
    assert chosen(seen(sized(), stays, large())) == {}
    assert chosen(seen(sized(), replace(stays, priority=0), large())) == {"big": "n1"}


def test_a_namespace_that_gets_a_queue_of_its_own_is_bound_by_it_from_then_on():
    cluster = world(queue(DEFAULT), queue("q", most={"cpu": 0}))
    asking = critical("free", constraints=Constraints())
    assert cluster.check(asking) is None
    cluster.upsert_namespace(Namespace("free", "q"))
    assert cluster.check(asking) is not None
