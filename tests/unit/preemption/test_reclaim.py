"""Whom somebody has to go for, in which order, and what a plan leaves for the next."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.objects.constraints import Constraints
from policy.objects.group import Group
from policy.objects.pod import Pod, Unschedulable
from policy.objects.reservation import Reservation
from policy.preemption import joint_plans, plan_text, preemptors, reclaim
from policy.preemption.plans import NoPlan, Plan
from policy.stepwise import at_once
from tests.unit.given import pod, quota, wait_for_room
from tests.unit.given_nodes import labelled, node, term
from tests.unit.given_queues import queue
from tests.unit.preemption.test_victims import SYSTEM, me, run, world

NO_ROOM = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
BORROWED = (
    node(),
    quota("a", least={"cpu": 2}),
    quota("b", least={"cpu": 2}),
    *(run(f"b{number}", created=float(number)) for number in range(4)),
)
"""A node that one quota uses alone, though half of it is another's."""


NOBODY = Cluster()


def waiting(uid: str, **rest) -> Pod:
    return pod(uid, rest.pop("namespace", "a"), unschedulable=NO_ROOM, **({"created": 0.0} | rest))


def preview(cluster: Cluster, pods) -> Iterator[tuple[Pod, Plan | NoPlan]]:
    """The answers, without the pauses."""
    return filter(None, joint_plans.preview(cluster, pods))


def told(cluster: Cluster, uid: str) -> str:
    return at_once(plan_text.for_pod_steps(cluster, cluster.pods[uid]))


def outcome(results) -> dict[str, set[str] | str]:
    return {
        each.uid: {victim.uid for victim in result.victims} if isinstance(result, Plan) else result.reason
        for each, result in results
    }


# Who waits


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ({}, True),
        ({"terminating": True}, False),
        ({"node": "n1"}, False),
        ({"finished": True}, False),
        ({"unschedulable": None}, False),
        ({"unschedulable": Unschedulable("SchedulerError", "binding rejected")}, False),
        ({"unschedulable": Unschedulable("SchedulingGated", "gates")}, False),
    ],
    ids=str,
)
def test_a_pod_waits_once_the_scheduler_has_found_no_place_for_it(state, waits):
    cluster = world(node(), quota("a"), replace(waiting("p"), **state))
    assert [each.uid for each in wait_for_room(cluster, now=1, delay=1)] == ["p"] * waits


def test_it_waits_since_the_first_time_that_was_seen():
    cluster = world(node(), quota("a"))
    cluster.upsert_pod(waiting("p"), now=5)
    cluster.upsert_pod(replace(waiting("p"), unschedulable=Unschedulable("Unschedulable", "other words")), now=7)
    assert wait_for_room(cluster, now=5.9, delay=1) == []
    assert [each.uid for each in wait_for_room(cluster, now=6, delay=1)] == ["p"]


def test_the_scheduler_has_time_to_try_a_pod_that_is_unschedulable_no_longer():
    cluster = world(node(), waiting("p"))
    cluster.upsert_pod(replace(waiting("p"), unschedulable=None), now=3)
    cluster.upsert_pod(waiting("p"), now=5)
    assert wait_for_room(cluster, now=5.5, delay=1) == []


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ({}, True),
        ({"labels": {"app": "other"}}, False),
        ({"request": {"cpu": 1000, "pods": 1}}, False),  # another object, as it would be if it were not equal
        ({"priority": 1}, False),
        ({"namespace": "b"}, False),
        ({"scheduler": "another"}, False),
        ({"group": "g"}, False),
        ({"terminating": True}, False),
        ({"unschedulable": Unschedulable("SchedulerError", "binding rejected")}, False),
        ({"unschedulable": Unschedulable("SchedulingGated", "gates")}, False),
    ],
    ids=str,
)
def test_a_pod_that_was_not_tried_waits_as_well_as_one_that_is_alike_and_was(state, waits):
    tried = waiting("tried")
    untried = replace(tried, uid="untried", name="untried", **({"unschedulable": None} | state))
    cluster = world(node(), quota("a"), quota("b"), tried)
    cluster.upsert_pod(untried, now=5)
    assert [each.uid for each in wait_for_room(cluster, now=5.9, delay=1)] == ["tried"]
    assert {each.uid for each in wait_for_room(cluster, now=6, delay=1)} == {
        "tried",
        *["untried"] * waits,
    }


def test_for_untried_pods_room_is_made_only_as_fast_as_the_scheduler_binds():
    tried = waiting("tried", created=0.0)
    untried = [
        replace(tried, uid=f"u{n:03}", name=f"u{n:03}", unschedulable=None) for n in range(preemptors.AHEAD + 10)
    ]
    cluster = world(node(), quota("a"), tried, *untried)
    assert len(wait_for_room(cluster, now=1, delay=1)) == 1 + preemptors.AHEAD
    for each in untried[:30]:
        cluster.upsert_reservation(reclaim.reservation_of(Plan(each, "n1", (), 0), since=0))
    there = {each.uid for each in wait_for_room(cluster, now=1, delay=1)}
    assert there == {"tried", *(each.uid for each in untried[30 : preemptors.AHEAD])}


def test_who_was_admitted_or_has_room_kept_waits_no_longer():
    cluster = world(node(), waiting("p"), waiting("q"))
    assert cluster.admit(cluster.pods["p"], now=0) is None
    cluster.upsert_reservation(reclaim.reservation_of(Plan(cluster.pods["q"], "n1", (), 0), since=0))
    assert wait_for_room(cluster, now=9, delay=1) == []


def test_they_wait_by_priority_and_then_creation():
    pods = [
        waiting("late", created=3.0),
        waiting("early", created=1.0),
        waiting("high", created=9.0, priority=1),
        waiting("b", created=2.0),
        waiting("a", created=2.0),
    ]
    cluster = world(node(), quota("a"), *pods)
    assert [each.uid for each in wait_for_room(cluster, now=9, delay=1)] == [
        "high",
        "early",
        "a",
        "b",
        "late",
    ]


# What would be done


def test_each_plan_counts_for_the_next_and_nobody_goes_twice():
    pods = [waiting(f"p{number}") for number in range(3)]
    cluster = world(*BORROWED, *pods)
    assert outcome(preview(cluster, pods)) == {"p0": {"b3"}, "p1": {"b2"}, "p2": "protected"}


@pytest.mark.parametrize(("last", "reason"), [({}, "room"), ({"terminating": True}, "waiting")])
def test_room_for_one_is_taken_by_the_first_so_that_somebody_goes_for_the_next(last, reason):
    pods = [waiting(f"p{number}") for number in range(3)]
    there = BORROWED if last else BORROWED[:-1]
    cluster = world(*there, *([run("b3", created=3.0, **last)] if last else []), *pods)
    assert outcome(preview(cluster, pods)) == {"p0": reason, "p1": {"b2"}, "p2": "protected"}


def test_an_earlier_pod_that_cannot_be_helped_blocks_nobody():
    pods = [waiting("p0", request={"cpu": 3}), waiting("p1")]
    assert outcome(preview(world(*BORROWED, *pods), pods)) == {"p0": "protected", "p1": {"b3"}}


def test_after_a_preview_everything_is_as_before():
    pods = [waiting(f"p{number}") for number in range(3)]
    cluster = world(*BORROWED, *pods)
    before = dict(cluster.ledger.entries)
    for _ in joint_plans.preview(cluster, pods):
        pass
    assert cluster.ledger.entries == before
    assert (cluster.reservations.plans, cluster.table.expected) == ({}, {})


def test_a_preview_plans_for_pods_whose_first_plan_failed_and_does_not_forget_that():
    pods = [waiting(f"p{number}", created=float(number)) for number in range(3)]
    cluster = world(*BORROWED, *pods)
    cluster.upsert_reservation(replace(reclaim.reservation_of(Plan(pods[0], "n1", (), 0), since=0), failed_at=1.0))
    assert outcome(preview(cluster, pods)) == {"p0": {"b3"}, "p1": {"b2"}, "p2": "protected"}
    assert list(cluster.reservations.given_up) == ["reclaim-p0"]


def test_a_preview_that_is_not_looked_at_to_its_end_leaves_nothing_behind():
    pods = [waiting(f"p{number}") for number in range(3)]
    cluster = world(*BORROWED, *pods)
    seen = joint_plans.preview(cluster, pods)
    next(seen)
    seen.close()
    assert cluster.reservations.plans == {}


def test_the_same_question_is_asked_once():
    pods = [waiting(f"p{number}", request={"cpu": 3}) for number in range(2)]
    results = [result for _, result in preview(world(*BORROWED, *pods), pods)]
    assert isinstance(results[0], NoPlan)
    assert results[0] is results[1]


def test_pods_that_are_kept_away_by_others_are_told_apart_by_their_labels():
    hostile = Constraints(anti_affinity=(term("kubernetes.io/hostname", app="web"),))
    fixed = run("a1", "a", cpu=0, owner="DaemonSet", constraints=hostile)
    pods = [waiting("p0", labels={"app": "web"}), waiting("p1", labels={"app": "db"})]
    assert outcome(preview(world(*BORROWED, fixed, *pods), pods)) == {"p0": "protected", "p1": {"b3"}}


# Shapes


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": "b"},
        {"priority": 1},
        {"request": {"cpu": 2}},
        {"constraints": Constraints(node_selector=(("zone", "a"),))},
        {"may_preempt": False},
        {"preemptible": False},
    ],
    ids=str,
)
def test_a_shape_differs_in_what_the_answer_depends_on(change):
    assert preemptors.shape_of(waiting("p"), NOBODY) != preemptors.shape_of(replace(waiting("p"), **change), NOBODY)


def test_a_shape_is_the_same_for_another_pod_like_it():
    one, other = waiting("p", labels={"job": "1"}), waiting("q", labels={"job": "2"})
    assert preemptors.shape_of(one, NOBODY) == preemptors.shape_of(other, NOBODY)


def test_labels_tell_shapes_apart_where_pods_are_kept_apart():
    apart = Constraints(anti_affinity=(term(app="web"),))
    one, other = (waiting("p", labels={"app": app}, constraints=apart) for app in ("web", "db"))
    assert preemptors.shape_of(one, NOBODY) != preemptors.shape_of(other, NOBODY)


# What is recorded and said


def test_a_plan_is_recorded_under_the_name_of_its_pod():
    cluster = world(*BORROWED, waiting("p"))
    plan = next(preview(cluster, [cluster.pods["p"]]))[1]
    recorded = reclaim.reservation_of(plan, since=7.0)
    assert (recorded.name, recorded.node, recorded.since, recorded.reason) == ("reclaim-p", "n1", 7.0, "Reclaim")
    assert [victim.uid for victim in recorded.victims] == ["b3"]


def test_the_text_of_a_plan_says_who_goes_or_why_nobody_does():
    cluster = world(*BORROWED, waiting("p"), waiting("q", request={"cpu": 3}))
    assert told(cluster, "p") == "to be evicted for it on node n1: b/b3"
    assert told(cluster, "q").startswith("nobody is evicted for it: ")
    assert told(cluster, "b1") == ""


def test_the_text_of_a_plan_follows_what_is_being_done():
    safe = run("b9", labels={"app": "x"})
    cluster = world(*BORROWED[:3], safe, waiting("p"), Budget("b", "budget", labelled(app="x"), 0))
    cluster.upsert_reservation(reclaim.reservation_of(Plan(cluster.pods["p"], "n1", (safe,), 1), since=0))
    assert "a disruption budget does not let go now: b/b9" in told(cluster, "p")
    cluster.upsert_pod(replace(safe, terminating=True), now=1)
    assert "on their way out: b/b9" in told(cluster, "p")
    cluster.delete_pod("b9")
    assert "room was made on node n1" in told(cluster, "p")


def test_one_that_is_given_room_on_a_node_needs_no_second_plan():
    cluster = world(*BORROWED, waiting("p"))
    plan = next(preview(cluster, [cluster.pods["p"]]))[1]
    cluster.upsert_reservation(reclaim.reservation_of(plan, since=0))
    again = me(1, unschedulable=NO_ROOM)
    assert outcome(preview(cluster, [again])) == {"me": {"b2"}}


@pytest.mark.parametrize("change", ["gone", "terminating"])
def test_a_plan_is_still_true_when_a_victim_has_left_while_it_was_checked(change):
    cluster = world(*BORROWED, waiting("p", request={"cpu": 2}))
    plan = next(preview(cluster, [cluster.pods["p"]]))[1]
    recorded = reclaim.reservation_of(plan, since=0)
    cluster.upsert_reservation(recorded)
    work = reclaim.still_planned_steps(cluster, recorded, plan.victims)
    next(work)
    first, second = plan.victims
    if change == "gone":
        cluster.delete_pod(first.uid)
    else:
        cluster.upsert_pod(replace(first, terminating=True), now=1)
    assert at_once(work)
    cluster.upsert_quota(quota("b", least={"cpu": 4}))
    assert not at_once(reclaim.still_planned_steps(cluster, recorded, [second]))


def begun(*objects, asked: int = 1):
    """A plan that takes b3, the youngest, is recorded; after that a younger pod took the place of b0."""
    cluster = world(*BORROWED, *objects, waiting("p", request={"cpu": asked}))
    [(_, plan)] = preview(cluster, [cluster.pods["p"]])
    assert "b3" in {victim.uid for victim in plan.victims}
    recorded = reclaim.reservation_of(plan, since=0)
    cluster.upsert_reservation(recorded)
    cluster.delete_pod("b0")
    cluster.upsert_pod(run("b9", created=9.0, started=9.0), now=1)
    return cluster, recorded, plan.victims


def test_a_plan_holds_though_somebody_else_would_be_cheaper_by_now():
    cluster, recorded, victims = begun()
    assert at_once(reclaim.still_planned_steps(cluster, recorded, victims))
    cluster.delete_reservation(recorded.name)
    [(_, other)] = preview(cluster, [cluster.pods["p"]])
    assert [victim.uid for victim in other.victims] == ["b9"]


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.upsert_quota(quota("b", least={"cpu": 4})),
        lambda cluster: cluster.upsert_quota(quota("a", least={"cpu": 0})),
        lambda cluster: cluster.upsert_pod(replace(cluster.pods["b3"], priority=SYSTEM), now=1),
        lambda cluster: [
            cluster.upsert_pod(replace(cluster.pods["b3"], labels={"app": "web"}), now=1),
            cluster.upsert_budget(Budget("b", "web", labelled(app="web"), allowed=0)),
        ],
        lambda cluster: [
            cluster.protection.pass_time(50),
            cluster.upsert_quota(replace(quota("b", least={"cpu": 2}), min_run_time=100)),
        ],
        lambda cluster: cluster.delete_pod("b1"),
        lambda cluster: cluster.upsert_node(node("n0")),
        lambda cluster: cluster.upsert_node(replace(cluster.table.node("n1"), unschedulable=True)),
    ],
    ids=["within min", "not entitled", "exempt", "in a budget", "protected", "room", "room elsewhere", "cordoned"],
)
def test_a_plan_holds_no_more_once_its_victim_may_not_go_or_need_not(change):
    cluster, recorded, victims = begun()
    change(cluster)
    assert not at_once(reclaim.still_planned_steps(cluster, recorded, victims))


def test_a_plan_holds_no_more_once_one_of_its_victims_need_not_go():
    cluster, recorded, victims = begun(asked=2)
    assert at_once(reclaim.still_planned_steps(cluster, recorded, victims))
    cluster.delete_pod("b9")
    assert not at_once(reclaim.still_planned_steps(cluster, recorded, victims))


@pytest.mark.parametrize(
    ("namespace", "said"),
    [
        ("a", "its priority is lower"),
        ("b", "ElasticQuota b/quota borrows"),
        ("both", "ElasticQuota both/quota borrows and Queue large has more than it deserves"),
        ("queued", "Queue large has more than it deserves"),
        ("beside", "namespace beside has more than its share of Queue small"),
        ("free", "its priority is lower"),
    ],
)
def test_it_can_be_told_by_which_rule_a_victim_goes(namespace, said):
    in_queues = {"a": "small", "b": "gone", "both": "large", "queued": "large", "beside": "small"}
    victim = run("v", namespace, queue=in_queues.get(namespace, ""))
    cluster = world(node(), quota("b"), quota("both"), waiting("p", queue="small"), victim)
    cluster.upsert_queue(queue("small"))
    cluster.upsert_queue(queue("large"))
    reservation = reclaim.reservation_of(Plan(cluster.pods["p"], "n1", (victim,), 0), since=0)
    assert plan_text.why_evicted(cluster, reservation, victim) == said


# Gangs


def gang_waits(*others, minimum: int = 2, count: int = 2, **rest) -> Cluster:
    members = [waiting(f"m{number}", group="g", **({"created": float(number)} | rest)) for number in range(count)]
    cluster = world(*others, *members)
    cluster.upsert_group(Group(members[0].namespace, "g", minimum))
    return cluster


def previewed(cluster: Cluster) -> dict[str, set[str] | str]:
    pods = wait_for_room(cluster, now=1, delay=0)
    return outcome(preview(cluster, pods))


def test_for_a_gang_there_is_a_plan_for_each_that_it_takes_to_start():
    assert previewed(gang_waits(*BORROWED)) == {"m0": {"b3"}, "m1": {"b2"}}


@pytest.mark.parametrize(("minimum", "count"), [(3, 3), (3, 2)])
def test_for_a_gang_that_could_not_start_nobody_goes(minimum, count):
    assert set(previewed(gang_waits(*BORROWED, minimum=minimum, count=count)).values()) == {"gang"}


def test_members_beyond_the_minimum_start_no_reclaim():
    cluster = gang_waits(*BORROWED, count=4)
    assert [pod.uid for pod in wait_for_room(cluster, now=1, delay=0)] == ["m0", "m1"]
    cluster.upsert_pod(pod("ready", group="g", node="n1"), now=0)
    assert [pod.uid for pod in wait_for_room(cluster, now=1, delay=0)] == ["m0"]
    cluster.grant(cluster.pods["m3"], now=0)
    assert wait_for_room(cluster, now=1, delay=0) == []


def test_a_gang_that_has_started_and_lost_a_member_goes_first_in_its_namespace():
    others = waiting("of-b", namespace="b", created=-3.0), waiting("of-a", created=-2.0, priority=1)
    cluster = gang_waits(node(), quota("a"), quota("b"), *others, minimum=3, count=2)
    assert [pod.uid for pod in wait_for_room(cluster, now=1, delay=0)] == [
        "of-a",
        "of-b",
        "m0",
        "m1",
    ]
    cluster.upsert_pod(pod("runs", group="g", node="n1"), now=0)
    assert [pod.uid for pod in wait_for_room(cluster, now=1, delay=0)] == [
        "m0",
        "of-b",
        "m1",
        "of-a",
    ]


def test_a_gang_that_has_started_and_lost_a_member_goes_first_in_its_queue():
    fresh = waiting("of-b", namespace="b", created=-3.0, priority=1)
    cluster = gang_waits(node(), fresh, minimum=3, count=2)
    cluster.upsert_queue(queue("default"))
    assert [pod.uid for pod in wait_for_room(cluster, now=1, delay=0)] == ["of-b", "m0", "m1"]
    cluster.upsert_pod(pod("runs", group="g", node="n1"), now=0)
    assert [pod.uid for pod in wait_for_room(cluster, now=1, delay=0)] == ["m0", "m1", "of-b"]


def test_those_that_room_is_kept_for_count_towards_the_minimum():
    cluster = gang_waits(*BORROWED, count=4)
    name = reclaim.name_of(cluster.pods["m2"])
    cluster.upsert_reservation(Reservation("r", name, "n1", (), 0.0))
    assert [pod.uid for pod in wait_for_room(cluster, now=1, delay=0)] == ["m0"]


def test_a_gang_without_a_quota_takes_from_lower_priority_whole_or_not_at_all():
    running = [run(f"low{number}", "z") for number in range(4)]
    cluster = gang_waits(node(), *running, priority=1)
    assert {len(each) for each in previewed(cluster).values()} == {1}
    assert set(previewed(gang_waits(node(), *running)).values()) == {"gang"}


def test_other_pods_without_a_quota_are_left_to_the_schedulers_own_preemption():
    assert wait_for_room(world(node(), waiting("p", priority=1)), now=1, delay=0) == []


def test_where_nodes_have_room_for_all_nobody_goes():
    cluster = gang_waits(node(), quota("a", least={"cpu": 2}))
    assert set(previewed(cluster).values()) == {"room"}


def test_very_many_that_wait_are_looked_at_with_pauses_in_which_some_may_go():
    pods = [replace(waiting(f"p{number:04}"), priority=number % 3) for number in range(1000)]
    cluster = world(node(), quota("a"), *pods)
    steps, gone = preemptors.waiting_steps(cluster, now=9, delay=1), 0
    try:
        while True:
            next(steps)
            gone += 1
            cluster.delete_pod(pods[-gone].uid)
    except StopIteration as end:
        found = end.value
    assert gone > 30
    assert len(found) == 1000 - gone
    assert all(pod.uid in cluster.pods for pod in found)
    assert [pod.uid for pod in found] == [
        pod.uid for pod in sorted(found, key=lambda pod: (-pod.priority, pod.created, pod.uid))
    ]
