"""Who has to go where queues stand in a tree: givers by their nearest common queue, the nearest first."""

from dataclasses import replace

import pytest

from policy.objects.group import Group
from policy.preemption import joint_plans, plan_text, reclaim
from policy.preemption.plans import Plan
from policy.preemption.victims import victims_on
from policy.stepwise import at_once
from tests.unit.given import pod
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, pods, queue, world
from tests.unit.preemption.test_reclaim_between_queues import taken_for, waiting
from tests.unit.preemption.test_victims import gone

COMPANY = (
    *(queue("A"), queue("a1", parent="A"), queue("a2", parent="A")),
    *(queue("B"), queue("b1", parent="B"), queue("b2", parent="B")),
    *("x:a1", "y:a2", "z:b1", "w:b2"),
)


def company(*more, **rest):
    return world(*COMPANY, *more, **rest)


def whose(victims):
    """How many pods go of each namespace."""
    assert not isinstance(victims, str), victims
    return {name: number for name in "wxyz" if (number := sum(uid.startswith(f"{name}-") for uid in victims))}


def test_a_department_takes_back_within_before_outside():
    cluster = company(*pods("y", 6, node="n1"), *pods("z", 10, node="n1"), *pods("x", 3), cpu=16)
    assert whose(taken_for(cluster, waiting("x"))) == {"y": 1}


def test_of_two_nodes_that_with_the_nearer_giver_is_chosen():
    sizes = node("n1", size={"cpu": 8, "pods": 99}), node("n2", size={"cpu": 8, "pods": 99})
    on = (*pods("z", 8, node="n1"), *pods("w", 2, node="n2"), *pods("y", 6, node="n2"))
    cluster = company(*sizes, *on, *pods("x", 3))
    assert whose(taken_for(cluster, waiting("x"))) == {"y": 1}
    plans = victims_on(cluster, cluster.pods["me"], ["n1", "n2"])
    assert [plan.node for plan in plans] == ["n2"]


def test_a_department_within_its_part_takes_from_another():
    cluster = company(*pods("y", 2, node="n1"), *pods("z", 14, node="n1"), cpu=16)
    assert whose(taken_for(cluster, waiting("x", cpu=4))) == {"z": 4}


def test_a_department_beyond_its_part_takes_only_within():
    cluster = company(*pods("y", 8, node="n1"), *pods("z", 8, node="n1"), cpu=16)
    assert whose(taken_for(cluster, waiting("x", cpu=2))) == {"y": 2}
    cluster = company(*pods("x", 4, node="n1"), *pods("y", 4, node="n1"), *pods("z", 8, node="n1"), cpu=16)
    assert taken_for(cluster, waiting("x", uid="me")) == "protected"


def test_with_victims_gone_within_a_department_may_take_the_rest_outside():
    sizes = node("n1", size={"cpu": 8, "pods": 99}), node("n2", size={"cpu": 8, "pods": 99})
    held = (*pods("y", 2, node="n1"), *pods("z", 6, node="n1"), *pods("y", 4, 2, node="n2"), *pods("w", 4, node="n2"))
    cluster = company(*sizes, *held, *pods("x", 1, request={"cpu": 4}))
    cluster.upsert_node(node("n2", size={"cpu": 8, "pods": 99}, unschedulable=True))
    found = gone(divided(cluster), cluster.pods["x-0"])
    assert whose(found) == {"y": 2, "z": 2}


def test_whose_department_has_no_more_than_its_part_loses_nothing_to_outside():
    sizes = node("n1", size={"cpu": 5, "pods": 99}), node("n2", size={"cpu": 10, "pods": 99}, unschedulable=True)
    third = queue("C"), "c:C", *pods("c", 10, node="n2")  # it has too much, and where nobody can take its place
    cluster = company(*sizes, *third, *pods("z", 5, node="n1"), *pods("w", 5))
    assert taken_for(cluster, waiting("x")) == "protected"
    cluster.upsert_queue(queue("B", most={"cpu": 4}))
    assert whose(taken_for(cluster, waiting("x"))) == {"z": 1}


def test_whoever_would_go_beyond_its_departments_part_takes_nothing_outside():
    third = queue("C"), "c:C", *pods("c", 16)
    cluster = company(*third, *pods("y", 8, node="n1"), *pods("z", 8, node="n1"), cpu=16)
    assert whose(taken_for(cluster, waiting("x"))) == {"y": 4}, "its department has no claim to more than a third"
    cluster.upsert_queue(replace(cluster.queues["a2"], reclaimable=False))
    assert taken_for(cluster, waiting("x")) == "protected"


def test_a_victim_without_whom_others_could_not_be_taken_is_not_spared():
    sizes = node("n1", size={"cpu": 6, "pods": 99}), node("n2", size={"cpu": 10, "pods": 99}, unschedulable=True)
    big = pod("z-big", "z", request={"cpu": 4}, node="n1")
    held = (
        *pods("y", 2, node="n1"),
        big,
        *pods("y", 4, 2, node="n2"),
        *pods("z", 4, node="n2"),
        *pods("w", 2, node="n2"),
    )
    cluster = company(*sizes, *held)
    assert whose(taken_for(cluster, waiting("x", cpu=4))) == {"y": 2, "z": 1}


@pytest.mark.parametrize("name", ["B", "b1"])
def test_what_may_not_be_reclaimed_protects_all_below_it_from_outside(name):
    cluster = company(*pods("z", 16, node="n1"), cpu=16)
    cluster.upsert_queue(replace(cluster.queues[name], reclaimable=False))
    divided(cluster)
    assert taken_for(cluster, waiting("x")) == "protected"
    within = taken_for(cluster, waiting("w", uid="me"))
    assert (whose(within) == {"z": 1}) if name == "B" else (within == "protected")


def test_nobody_goes_by_whom_a_queue_on_the_way_falls_below_its_guarantee():
    cluster = company(*pods("z", 1, node="n1", request={"cpu": 16}), cpu=16)
    cluster.upsert_queue(replace(cluster.queues["B"], guarantee={"cpu": 2000}))
    divided(cluster)
    assert taken_for(cluster, waiting("x", cpu=4)) == "protected"


def test_a_queue_at_a_full_parent_takes_back():
    cluster = company(*pods("y", 6, node="n1"), cpu=16)
    cluster.upsert_queue(queue("A", most={"cpu": 6}))
    divided(cluster)
    assert whose(taken_for(cluster, waiting("x", cpu=3))) == {"y": 3}
    cluster.upsert_pod(pod("more", "x", request={"cpu": 1}), now=0)
    assert len(gone(divided(cluster), cluster.pods["more"])) == 1


def test_what_runs_in_a_queue_with_children_goes_for_those_below_it():
    cluster = company("v:A", *pods("v", 8, node="n1"), *pods("z", 8, node="n1"), *pods("x", 8), cpu=16)
    cluster.upsert_queue(replace(cluster.queues["A"], reclaimable=False))
    divided(cluster)
    assert whose(taken_for(cluster, waiting("w", cpu=3))) == {"z": 3}, "its department has no more than its part"
    cluster.delete_pod("me")
    assert {uid[:1] for uid in taken_for(cluster, waiting("x", cpu=3))} == {"v"}


def test_a_gang_counts_once_at_every_level():
    gang = [pod(f"x-{number}", "x", group="g", request={"cpu": 2}) for number in range(2)]
    cluster = company(*pods("y", 6, node="n1"), *pods("z", 10, node="n1"), *gang, cpu=16)
    cluster.upsert_group(Group("x", "g", minimum=2))
    answer = at_once(joint_plans.plans_for_all_steps(divided(cluster), gang))
    assert whose([each.uid for plan in answer for each in plan.victims]) == {"y": 2, "z": 2}


@pytest.mark.parametrize(
    ("giver", "taker", "said"),
    [
        ("y", "x", "Queue a2 has more than it deserves, within Queue A"),
        ("z", "x", "Queue b1, and Queue B above it, have more than they deserve"),
        ("c", "x", "Queue C has more than it deserves"),
        ("boss", "x", "Queue A has more than it deserves, within Queue A"),
        ("x", "boss", "Queue a1 has more than it deserves, within Queue A"),
    ],
)
def test_whoever_goes_is_told_at_which_level_too_much_was_taken(giver, taker, said):
    victim = pod("v", giver, node="n1")
    cluster = company(queue("C"), "c:C", "boss:A", victim, waiting(taker))
    reservation = reclaim.reservation_of(Plan(cluster.pods["me"], "n1", (victim,), 0), since=0)
    assert plan_text.why_evicted(cluster, reservation, victim) == said
