"""Who waits in vain claims nothing, until something changes that could help."""

import pytest

from policy.cluster.budgets import Budget
from policy.cluster.unschedulable import KINDS_AT_ONCE, NAMESPACES_AT_ONCE, PODS_AT_ONCE, UnschedulablePods
from policy.objects.constraints import Constraints, Taint
from policy.objects.group import Group
from policy.objects.pod import Unschedulable
from policy.objects.reservation import Reservation
from policy.preemption.reclaim import name_of
from policy.quota import kept_nodes
from policy.quota.queue_rules import DESERVED
from tests.unit.given import cluster_of, pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import admitted, deserved, divided, pods, queue, world

NO_PLACE = Unschedulable(
    "Unschedulable", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
)
OURS = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Queue deserved exceeded: cpu.")
ELSEWHERE = Constraints(node_selector=(("disk", "ssd"),))


def cluster_with(one, *others):
    return world(queue("q1"), queue("q2"), "a:q1", "b:q2", one, *pods("b", 9), *others, cpu=8)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"unschedulable": NO_PLACE}, 8),
        ({"unschedulable": OURS}, 4),
        ({}, 4),
        ({"unschedulable": Unschedulable("SchedulerError", "boom")}, 4),
    ],
)
def test_only_who_was_found_no_place_for_by_others_loses_its_claim_in_time(state, expected):
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, **state))
    assert deserved(cluster, "q2") == 4
    cluster.tick(29)
    assert deserved(divided(cluster), "q2") == 4
    cluster.tick(31)
    assert deserved(divided(cluster), "q2") == expected


def test_who_waits_is_counted_with_the_priority_that_it_has_now():
    unschedulable = UnschedulablePods(patience=30)
    for priority in (0, 5, -1):
        unschedulable.add(pod("p", "a", priority=priority), 1, 0)
        assert [unschedulable.some_wait("a", priority + more) for more in (0, 1)] == [True, False]
    assert unschedulable.judge(31, None) == ["p"]
    unschedulable.add(pod("p", "a", priority=7), 1, 0)
    assert not unschedulable.some_wait("a", -9)
    unschedulable.help_pods(["p"])
    assert unschedulable.some_wait("a", 7)


def test_who_was_tried_again_at_once_loses_its_claim_once():
    unschedulable, one = UnschedulablePods(patience=30), pod("p", "a")
    unschedulable.add(one, 1, 0)
    unschedulable.remove("p")
    unschedulable.add(one, 1, 0)
    assert unschedulable.some_wait("a", 0)
    assert unschedulable.judge(31, None) == ["p"]
    assert not unschedulable.some_wait("a", 0)
    unschedulable.help_pods(["p"])
    assert unschedulable.some_wait("a", 0)


@pytest.mark.parametrize("state", [{"gated": True}, {"terminating": True}])
def test_who_is_gated_by_others_or_going_claims_nothing(state):
    assert deserved(cluster_with(pod("p", "a", request={"cpu": 4}, **state)), "q2") == 8


def test_in_a_closed_queue_nobody_has_a_claim_until_it_is_open_again():
    cluster = cluster_with(pod("p", "a", request={"cpu": 3}), pod("r", "a", node="n1"))
    for state in ("Closed", "Closing"):
        cluster.upsert_queue(queue("q1", state=state))
        assert [deserved(divided(cluster), name) for name in ("q1", "q2")] == [1, 7]
        assert admitted(cluster, *pods("b", 7)) == [f"b-{number}" for number in range(7)]
        for number in range(7):
            cluster.withdraw(f"b-{number}")
    cluster.upsert_queue(queue("q1"))
    assert [deserved(divided(cluster), name) for name in ("q1", "q2")] == [4, 4]
    assert admitted(cluster, *pods("b", 7)) == [f"b-{number}" for number in range(4)]


def test_the_guarantee_of_a_closed_queue_is_kept():
    cluster = world(queue("q1", kept={"cpu": 3}, state="Closed"), queue("q2"), "b:q2", *pods("b", 9), cpu=8)
    assert admitted(cluster, *pods("b", 9)) == [f"b-{number}" for number in range(5)]


def test_a_node_that_could_take_it_gives_the_claim_back():
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, constraints=ELSEWHERE, unschedulable=NO_PLACE))
    cluster.tick(31)
    assert deserved(divided(cluster), "q1") == 0
    cluster.upsert_node(node("n2", size={"cpu": 4, "pods": 110}, labels={"disk": "ssd"}))
    assert deserved(divided(cluster), "q1") == 4
    cluster.tick(32)
    assert deserved(divided(cluster), "q1") == 4
    cluster.tick(61)
    assert deserved(divided(cluster), "q1") == 4
    cluster.tick(63)
    assert deserved(divided(cluster), "q1") == 0


def test_a_pod_that_leaves_helps_only_who_could_take_its_place():
    place = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
    cluster = cluster_with(
        pod("p", "a", request={"cpu": 4}, constraints=ELSEWHERE, unschedulable=NO_PLACE),
        pod("other", "a", request={"cpu": 1}, unschedulable=place),
        pod("runs", "b", node="n1"),
    )
    cluster.tick(31)
    assert deserved(divided(cluster), "q1") == 0
    cluster.delete_pod("runs")
    cluster.tick(32)
    assert deserved(divided(cluster), "q1") == 1


def test_who_gets_a_place_is_doubted_no_more():
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, unschedulable=NO_PLACE))
    cluster.tick(31)
    cluster.upsert_pod(pod("p", "a", request={"cpu": 4}), now=32)
    assert deserved(divided(cluster), "q1") == 4


GANG = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Gang minimum cannot be placed yet.")
HELD = Unschedulable("Unschedulable", f"0/1 nodes are available: 1 {kept_nodes.HELD.text}.")
FULL = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def full(*objects, **options):
    """Of 4 cores q1, three times as heavy, has 3, and q2 one; each has a pod waiting that the scheduler has tried."""
    waiting = [pod("a4", "a", unschedulable=FULL), pod("b2", "b", unschedulable=FULL)]
    running = [*pods("a", 3, node="n1"), *pods("b", 1, node="n1")]
    return world(queue("q1", 3), queue("q2"), "a:q1", "b:q2", *running, *waiting, *objects, cpu=4, **options)


def test_what_becomes_free_is_divided_before_it_is_given():
    cluster = full()
    cluster.tick(31)
    assert not cluster.attempts.keeps_claim(cluster.pods["a4"])
    cluster.delete_pod("a-1")
    assert cluster.admit(cluster.pods["b2"], now=31).rule == DESERVED.name
    assert cluster.admit(cluster.pods["a4"], now=31) is None


@pytest.mark.parametrize(
    "leaves",
    [
        {"finished": True},
        {"request": {"cpu": 0}},
    ],
)
def test_room_comes_also_from_who_has_finished_or_takes_less(leaves):
    cluster = full()
    cluster.tick(31)
    cluster.upsert_pod(pod("a-1", "a", node="n1", **leaves), now=31)
    assert cluster.attempts.keeps_claim(cluster.pods["a4"])


@pytest.mark.parametrize(("said", "expected"), [(GANG, 8), (HELD, 8), (OURS, 4)])
def test_whoever_says_that_there_is_no_place_the_claim_is_lost_in_time(said, expected):
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, unschedulable=said))
    cluster.tick(29)
    assert deserved(divided(cluster), "q2") == 4
    cluster.tick(31)
    assert deserved(divided(cluster), "q2") == expected


def test_that_its_queue_refuses_it_gives_no_claim_back():
    cluster = cluster_with(pod("p", "a", request={"cpu": 4}, unschedulable=GANG))
    cluster.tick(31)
    cluster.upsert_pod(pod("p", "a", request={"cpu": 4}, unschedulable=OURS), now=32)
    cluster.tick(33)
    assert deserved(divided(cluster), "q2") == 8


def without_claim(**rest):
    """A pod on whose node 3 of 4 cores are used, by a pod of its queue, and which needs two; it has lost its claim."""
    waits = pod("p", "a", request={"cpu": 2}, unschedulable=FULL, **rest)
    runs = [pod("r", "a", request={"cpu": 3}, node="n1"), pod("gpu", "b", request={"gpu": 1}, node="n1")]
    n1 = node("n1", size={"cpu": 4, "gpu": 2, "pods": 110})
    cluster = world(queue("q1"), queue("q2"), "a:q1", "b:q2", n1, waits, *runs)
    cluster.tick(31)
    assert not cluster.attempts.keeps_claim(waits)
    return cluster


NODE = node("n1", size={"cpu": 4, "gpu": 2, "pods": 110}, labels={"new": "label"})
TAINTED = node("n2", size={"cpu": 9, "pods": 9}, taints=(Taint("mine", "", "NoSchedule"),))


@pytest.mark.parametrize(
    ("case", "change", "helps"),
    [
        ("a budget", lambda c: c.upsert_budget(Budget("a", "b", None, 1)), False),
        ("a quota of others", lambda c: c.upsert_quota(quota("b", least={"cpu": 1})), False),
        ("its quota", lambda c: c.upsert_quota(quota("a", least={"cpu": 1})), True),
        ("another queue", lambda c: c.upsert_queue(queue("q2", 5)), False),
        ("its queue is heavier", lambda c: c.upsert_queue(queue("q1", 5)), True),
        ("its queue is bounded", lambda c: c.upsert_queue(queue("q1", most={"cpu": 9})), False),
        ("a label of a node", lambda c: c.upsert_node(NODE), False),
        ("a larger node", lambda c: c.upsert_node(node("n1", size={"cpu": 5, "pods": 9})), True),
        ("a node that is not large enough", lambda c: c.upsert_node(node("n1", size={"cpu": 4.5, "pods": 9})), False),
        ("a node that it may not go to", lambda c: c.upsert_node(TAINTED), False),
        ("a node that is too small", lambda c: c.upsert_node(node("n2", size={"cpu": 1, "pods": 9})), False),
        ("a node", lambda c: c.upsert_node(node("n2", size={"cpu": 2, "pods": 9})), True),
        ("who frees something else", lambda c: c.delete_pod("gpu"), False),
        ("who makes room", lambda c: c.delete_pod("r"), True),
        ("who waits like it", lambda c: c.upsert_pod(pod("q", "a", request={"cpu": 2}), now=31), False),
    ],
)
def test_a_claim_comes_back_only_by_what_could_help(case, change, helps):
    cluster = without_claim()
    cluster.hints.count(cluster.pods["p"])
    change(cluster)
    assert cluster.attempts.keeps_claim(cluster.pods["p"]) == helps, case
    cluster.tick(32)
    assert cluster.attempts.keeps_claim(cluster.pods["p"]) == helps, case
    assert (cluster.ledger.entries["p"].claims, cluster.hints.count(cluster.pods["p"]) > 0) == (helps, helps), case


def test_a_node_whose_taint_goes_helps_who_could_not_go_there():
    cluster = without_claim()
    cluster.upsert_node(TAINTED)
    cluster.upsert_node(node("n2", size={"cpu": 9, "pods": 9}))
    assert cluster.attempts.keeps_claim(cluster.pods["p"])


def test_a_budget_that_lets_more_go_helps_whose_plan_failed_for_its_pods():
    cluster = without_claim()
    plan = Reservation("r", name_of(cluster.pods["p"]), "n1", (name_of(cluster.pods["gpu"]),), 0.0, failed_at=9.0)
    cluster.upsert_reservation(plan)
    for namespace, allowed, helps in (("c", 1, False), ("b", 0, False), ("b", 1, True)):
        cluster.upsert_budget(Budget(namespace, "x", None, 0))
        cluster.upsert_budget(Budget(namespace, "x", None, allowed))
        assert cluster.attempts.keeps_claim(cluster.pods["p"]) == helps


def test_what_is_only_looked_at_helps_nobody():
    cluster = without_claim()
    with cluster.changes.trial():
        cluster.delete_pod("r")
    assert not cluster.attempts.keeps_claim(cluster.pods["p"])


def test_a_gang_that_becomes_complete_has_a_claim_again():
    cluster = without_claim(group="g")
    cluster.upsert_group(Group("a", "g", minimum=2))
    cluster.tick(62)
    cluster.tick(93)
    assert not cluster.attempts.keeps_claim(cluster.pods["p"])
    cluster.upsert_pod(pod("q", "a", request={"cpu": 2}, group="g"), now=93)
    assert cluster.ledger.entries["p"].claims


def test_patience_counts_from_when_the_condition_says_so_after_a_restart():
    for since, later in ((1000.0, 46), (1020.0, 51), (9999.0, 71)):  # the first has only its time for reclaim left
        said = Unschedulable("Unschedulable", FULL.message, since)
        cluster = world(queue("q1"), "a:q1")
        cluster.epoch = 1000.0
        cluster.upsert_pod(pod("p", "a", unschedulable=said), now=40)
        cluster.tick(later - 2)
        assert cluster.attempts.keeps_claim(cluster.pods["p"])
        cluster.tick(later)
        assert not cluster.attempts.keeps_claim(cluster.pods["p"])


def test_patience_counts_from_now_for_who_was_seen_before():
    said = Unschedulable("Unschedulable", FULL.message, 1.0)
    cluster = world(queue("q1"), "a:q1", pod("p", "a"))
    cluster.upsert_pod(pod("p", "a", unschedulable=said), now=40)
    cluster.tick(69)
    assert cluster.attempts.keeps_claim(cluster.pods["p"])


def test_what_is_read_at_the_start_gives_no_claim_back():
    said = Unschedulable("Unschedulable", FULL.message, 1.0)
    cluster = cluster_of(pod("p", "a", unschedulable=said))
    cluster.upsert_node(node("n1", size={"cpu": 9, "pods": 9}))
    cluster.tick(100)
    assert not cluster.attempts.keeps_claim(cluster.pods["p"])


def test_what_happens_takes_no_time_that_grows_with_what_waits():
    pods = UnschedulablePods(patience=1)
    for number in range(3000):
        pods.add(pod(f"p{number}", f"n{number % 30}", request={"cpu": 1 + number % 100}), 1, since=0)
    assert len(pods.judge(2, None)) == 3000
    asked = []
    back = pods.help(lambda each: asked.append(each) or True)
    assert len(asked) == KINDS_AT_ONCE
    assert 0 < len(back) <= KINDS_AT_ONCE * NAMESPACES_AT_ONCE * PODS_AT_ONCE
    assert not {each.request["cpu"] for each in asked} & _looked_at_next(pods)
    assert len(pods.judge(2.1, lambda _: True)) == 3000 - len(back)


def _looked_at_next(pods):
    asked = []
    pods.help(asked.append)
    return {each.request["cpu"] for each in asked}


def test_pods_at_gates_are_told_when_the_last_pod_like_them_has_its_claim_again():
    some = UnschedulablePods(patience=1)
    some.add(pod("tried"), 1, 0)
    some.add_gated(pod("gated"), 1)
    assert set(some.judge(1, None)) == {"tried", "gated"}
    assert some.help_pods(["tried"]) == ["tried"]
    assert some.keeps_claim("gated")
    assert "gated" in some.judge(1, None)
