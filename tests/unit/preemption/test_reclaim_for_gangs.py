"""A gang counts as one preemptor: it takes back only what all of it is entitled to, and its plans go together."""

from dataclasses import replace

import pytest

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.objects.constraints import Selector
from policy.objects.group import Group
from policy.objects.pod import Pod, Unschedulable
from policy.objects.reservation import Reservation
from policy.preemption import joint_plans, reclaim
from policy.preemption.plans import NoPlan
from policy.stepwise import at_once
from tests.unit.app.lines import lines_once
from tests.unit.given import amounts, pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, queue
from tests.unit.given_queues import world as with_queues
from tests.unit.preemption.test_victims import run
from tests.unit.preemption.test_victims import world as with_quotas

GROUP = "podgroups.scheduling.x-k8s.io/g"
NO_ROOM = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
EIGHT = node(size={"cpu": 8})
HALVES = (quota("a", least={"cpu": 4}), quota("b", least={"cpu": 4}))


def members(count: int, cpu: float = 2, namespace: str = "b", **rest) -> list[Pod]:
    request = {"request": {"cpu": cpu}, "group": GROUP, "unschedulable": NO_ROOM}
    return [pod(f"{namespace}{number}", namespace, **(request | rest)) for number in range(count)]


def running(count: int, cpu: float = 2, namespace: str = "a", **rest) -> list[Pod]:
    return [run(f"{namespace}-{number}", namespace, cpu, **rest) for number in range(count)]


def plans(cluster: Cluster, gang: list[Pod], namespace: str = "b") -> set[str] | str:
    """Who goes for the gang, or why nobody does."""
    cluster.upsert_group(Group(namespace, GROUP, minimum=len(gang)))
    for each in gang:
        cluster.upsert_pod(each, now=0)
    answer = at_once(joint_plans.plans_for_all_steps(divided(cluster) if cluster.queues else cluster, gang))
    stood = dict(cluster.ledger.entries), dict(cluster.reservations.plans)
    assert at_once(joint_plans.plans_for_all_of_a_copy_steps(cluster, gang)) == answer
    assert (cluster.ledger.entries, cluster.reservations.plans) == stood
    return answer.reason if isinstance(answer, NoPlan) else {victim.uid for one in answer for victim in one.victims}


@pytest.mark.parametrize("victims", [running(3), running(1, 6)], ids=["a gang's worth of pods", "one large pod"])
def test_a_gang_that_would_itself_borrow_takes_nothing_from_other_quotas(victims):
    assert plans(with_quotas(EIGHT, *HALVES, *victims), members(3)) == "gang"


def test_nor_does_it_take_a_whole_gang():
    cluster = with_quotas(EIGHT, *HALVES, *running(3, group=GROUP))
    cluster.upsert_group(Group("a", GROUP, minimum=3))
    assert plans(cluster, members(3)) == "gang"


def test_a_gang_within_its_min_takes_back_a_whole_gang_that_borrows():
    cluster = with_quotas(EIGHT, *HALVES, *running(3, group=GROUP))
    cluster.upsert_group(Group("a", GROUP, minimum=3))
    assert plans(cluster, members(2)) == {"a-0", "a-1", "a-2"}


def test_a_gang_that_would_exceed_what_its_queue_deserves_takes_nothing():
    cluster = with_queues(queue("a"), queue("b"), "a:a", "b:b", *running(3), cpu=8)
    assert plans(cluster, members(3)) == "gang"


def test_a_gang_within_what_its_queue_deserves_takes_back():
    cluster = with_queues(queue("a"), queue("b"), "a:a", "b:b", *running(4), *members(2, namespace="c"), cpu=8)
    assert len(plans(cluster, members(2))) == 2


def test_a_member_that_asks_for_less_than_the_others_is_not_entitled_without_them():
    large = members(3)[1:]
    small = replace(members(1, 1)[0], uid="small", name="small")
    assert plans(with_quotas(EIGHT, *HALVES, *running(3)), [small, *large]) == "gang"


def test_members_that_may_not_be_evicted_count_together_before_anybody_goes():
    gang = members(3, priority=9, preemptible=False)
    assert plans(with_quotas(EIGHT, *HALVES, *running(2, namespace="b")), gang) == "gang"


def test_in_a_copy_each_member_costs_as_much_as_the_first_one():
    def story(count):
        cluster = with_quotas(node(size={"cpu": count, "pods": 2 * count}), quota("b", least={"cpu": count}))
        gang = members(count + 1, 1)
        cluster.upsert_group(Group("b", GROUP, minimum=count + 1))
        for each in gang:
            cluster.upsert_pod(each, now=0)
        return cluster, gang

    def plan(cluster, gang):
        assert at_once(joint_plans.plans_for_all_of_a_copy_steps(cluster, gang)).reason == "gang"

    assert lines_once(plan, *story(160)) <= 5 * lines_once(plan, *story(40))


# The plans for one gang go together


def two_plans(*budgets: Budget) -> tuple[Cluster, list[Reservation]]:
    """Two members, each with a plan of one victim."""
    cluster = with_quotas(EIGHT, *HALVES, *running(4, labels={"app": "x"}), *budgets)
    gang = members(2)
    assert len(plans(cluster, gang)) == 2
    answer = at_once(joint_plans.plans_for_all_steps(cluster, gang))
    assert isinstance(answer, list)
    for each in answer:
        cluster.upsert_reservation(reclaim.reservation_of(each, 0.0))
    return cluster, list(cluster.reservations.plans.values())


def test_plans_of_a_gang_know_each_other_until_it_can_start():
    cluster, (first, second) = two_plans()
    assert reclaim.mates(cluster, first) == [second]
    cluster.grant(cluster.pods[second.pod.uid], now=0)
    assert reclaim.mates(cluster, first) == []


def test_nobody_goes_while_a_budget_lets_only_some_of_all_victims_go():
    cluster, reservations = two_plans(Budget("a", "pdb", Selector(()), 1))
    assert all(len(reclaim.held_back(cluster, each)) == 1 for each in reservations)
    cluster.upsert_budget(Budget("a", "pdb", Selector(()), 2))
    assert not any(reclaim.held_back(cluster, each) for each in reservations)


def test_those_whose_budget_lets_nobody_go_are_asked_first_and_the_others_wait():
    one = Budget("a", "pdb", Selector(()), 0)
    cluster, reservations = two_plans()
    protected, free = (cluster.pods[each.victims[0].uid] for each in reservations)
    cluster.upsert_pod(replace(free, labels={}), now=0)
    cluster.upsert_budget(replace(one, selector=Selector(()), disrupted=frozenset({free.name})))
    assert [reclaim.in_order_of_eviction(cluster, each) for each in reservations] == [[protected], []]


# Room that was made


def test_what_is_held_for_pods_that_may_not_be_evicted_counts_towards_min():
    cluster = with_quotas(EIGHT, *HALVES, *running(4))
    first, second = members(2, 3, preemptible=False, group="")
    for each in (first, second):
        cluster.upsert_pod(each, now=0)
    cluster.upsert_reservation(Reservation("r", reclaim.name_of(first), "n1", (), 0.0))
    assert cluster.ledger.account("b").pinned == amounts(cpu=3, pods=1)
    refused = cluster.check(second)
    assert refused is not None
    assert refused.rule == "elastic-quota-borrowing"


def owner_waits(*victims: Pod) -> Cluster:
    """A cluster in which room was made for a pod of b; these went for it."""
    cluster = with_quotas(EIGHT, *HALVES, *running(3), pod("owner", "b", request={"cpu": 2}))
    going = tuple(reclaim.name_of(victim) for victim in victims)
    cluster.upsert_reservation(Reservation("r", reclaim.name_of(cluster.pods["owner"]), "n1", going, 0.0))
    return cluster


def test_a_more_important_pod_does_not_borrow_the_room_that_was_made():
    cluster = owner_waits()
    assert cluster.reservations.nodes_held_from(pod("other", "a", priority=9)) == {"n1"}
    assert cluster.reservations.nodes_held_from(pod("other", "free", priority=9)) == set()
    assert cluster.reservations.nodes_held_from(pod("more", "b", request={"cpu": 2}, priority=9)) == set()


def test_room_does_not_go_back_to_the_team_that_it_was_taken_from():
    cluster = owner_waits(run("gone", "c"))
    cluster.upsert_quota(quota("c", least={"cpu": 4}))
    again = pod("again", "c", request={"cpu": 2}, priority=9)
    assert cluster.reservations.nodes_held_from(again) == {"n1"}
    cluster.upsert_quota(quota("d", least={"cpu": 4}))
    assert cluster.reservations.nodes_held_from(replace(again, namespace="d")) == set()


# Own and others' together


def thirds(*, governed_by: str) -> Cluster:
    """Nine cores: one uses three of its four and a half, one core of it less important; the other uses six."""
    own = [run("low", "a", 1, priority=-1), run("own", "a", 2)]
    others = running(6, 1, namespace="b")
    if governed_by == "queues":
        return with_queues(queue("a"), queue("b"), "a:a", "b:b", *own, *others, cpu=9)
    bounds = [quota(name, least={"cpu": 4.5}) for name in "ab"]
    return with_quotas(node(size={"cpu": 9}), *bounds, *own, *others)


@pytest.mark.parametrize("governed_by", ["queues", "quotas"])
def test_its_own_less_important_pod_goes_and_then_what_it_is_owed(governed_by):
    cluster = thirds(governed_by=governed_by)
    cluster.upsert_pod(pod("me", "a", request={"cpu": 2}, unschedulable=NO_ROOM), now=0)
    for each in running(2, 1, namespace="b"):
        cluster.upsert_pod(replace(each, uid=f"w{each.uid}", name=f"w{each.name}", node=""), now=0)
    if cluster.queues:
        divided(cluster)
    answer = at_once(reclaim.victims.search_steps(cluster, cluster.pods["me"]))
    assert not isinstance(answer, NoPlan)
    assert sorted(victim.namespace for victim in answer.victims) == ["a", "b"]
    assert "low" in {victim.uid for victim in answer.victims}


@pytest.mark.parametrize("governed_by", ["queues", "quotas"])
def test_others_are_not_owed_more_than_fits_once_its_own_have_gone(governed_by):
    cluster = thirds(governed_by=governed_by)
    cluster.upsert_pod(pod("me", "a", request={"cpu": 4}, unschedulable=NO_ROOM), now=0)
    if cluster.queues:
        divided(cluster)
    assert at_once(reclaim.victims.search_steps(cluster, cluster.pods["me"])).reason == "protected"
