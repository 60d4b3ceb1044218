"""Who waits, and for how long, after others were evicted in vain."""

from dataclasses import replace

import pytest

from policy.cluster.in_vain import ASKED_AGAIN, InVain, failure_key
from tests.unit.given import pod

ONE, TWO = pod("one"), pod("two", request={"cpu": 2})
VICTIMS = [pod("v1", "b", node="n"), pod("v2", "b", node="n")]


def fails(in_vain, item, now, since=None):
    in_vain.fail(item.namespace, failure_key(item), now if since is None else since, now)


def waits(in_vain, item, now):
    return max(0.0, in_vain.waits_until(item) - now)


def test_who_has_cost_nobody_anything_waits_for_nothing():
    assert waits(InVain(), ONE, 0) == 0


def test_it_waits_twice_as_long_each_time_and_ten_minutes_at_most():
    in_vain, now, waited = InVain(), 0.0, []
    for _ in range(9):
        fails(in_vain, ONE, now)
        waited.append(waits(in_vain, ONE, now))
        now += waited[-1]
    assert waited == [10, 20, 40, 80, 160, 320, 600, 600, 600]


@pytest.mark.parametrize(
    ("other", "waited"),
    [
        (replace(ONE, uid="another", name="another"), 10),
        (replace(ONE, labels={"new": "label"}, priority=9, queue="q", preemptible=False), 10),
        (TWO, 0),
        (pod("one", "c"), 0),
    ],
    ids=["another UID", "another label, priority and queue", "another request", "another namespace"],
)
def test_a_failure_counts_for_all_that_requests_the_same_in_its_namespace(other, waited):
    in_vain = InVain()
    fails(in_vain, ONE, 0)
    assert waits(in_vain, other, 0) == waited


def test_a_namespace_with_other_requests_each_time_waits_whole_from_the_third_on():
    in_vain = InVain()
    sizes = [pod(f"p{n}", request={"cpu": n}) for n in range(1, 6)]
    for now, each in enumerate(sizes[:3]):
        assert waits(in_vain, each, now) == 0
        fails(in_vain, each, now)
    assert waits(in_vain, sizes[3], 2) == 10
    fails(in_vain, sizes[3], 12)
    assert waits(in_vain, sizes[4], 12) == 20
    assert waits(in_vain, pod("p", "c"), 12) == 0


def test_of_plans_that_were_under_way_side_by_side_one_counts():
    in_vain = InVain()
    for now in (5, 6, 7):
        fails(in_vain, ONE, now, since=1)
    assert in_vain.waits_until(ONE) == 15
    fails(in_vain, TWO, 7, since=1)
    assert waits(in_vain, pod("p", request={"cpu": 3}), 7) == 0


def test_a_pod_that_runs_makes_up_for_its_kind_and_for_one_failure_of_the_namespace():
    in_vain = InVain()
    for now in (1, 2, 3, 4):
        fails(in_vain, pod(f"p{now}", request={"cpu": now}), now)
    in_vain.succeed(pod("p9", request={"cpu": 1}))
    fails(in_vain, ONE, 100)
    assert waits(in_vain, ONE, 100) == 20, "as after the fourth failure of the namespace"
    again = InVain()
    fails(again, ONE, 0)
    again.succeed(ONE)
    assert waits(again, ONE, 0) == 0
    fails(again, ONE, 0.5)
    assert waits(again, ONE, 0.5) == 10


def test_what_is_long_past_is_forgotten_and_nothing_of_it_is_kept():
    in_vain = InVain()
    for number in range(5):
        fails(in_vain, pod(f"p{number}", f"n{number}"), 0)
    in_vain.tick(611, {})
    fails(in_vain, pod("p", "n1"), 611)
    assert waits(in_vain, pod("p", "n1"), 611) == 10
    assert (len(in_vain._kinds), len(in_vain._namespaces)) == (1, 1)


def test_victims_in_vain_count_for_the_namespace_where_the_pod_is_not_known():
    in_vain = InVain()
    for now in (1, 2, 3):
        in_vain.fail("a", None, now, now)
    assert waits(in_vain, ONE, 3) == 10


def seen(in_vain, now, *pods):
    """What goes in vain once these pods, and no others, are there."""
    for each in pods:
        in_vain.see(each)
    if ONE.uid not in (there := {each.uid: each for each in pods}):
        in_vain.forget(ONE.uid)
    return list(in_vain.settle(there, now))


def promised(*nodes):
    in_vain = InVain()
    in_vain.promise(ONE, {node: [victim] for node, victim in zip(nodes, VICTIMS, strict=False)}, 0)
    assert seen(in_vain, 1, ONE, *VICTIMS) == []
    return in_vain


def test_whom_the_scheduler_evicted_for_a_pod_that_is_gone_went_in_vain():
    in_vain = promised("n1", "n2")
    assert seen(in_vain, 2, replace(ONE, nominated_node="n1"), *VICTIMS) == []
    there = replace(VICTIMS[0], terminating=True)  # the other has ended by itself
    assert seen(in_vain, 3, there) == [("a", 1)]
    assert in_vain.waits_until(ONE) == 13
    assert seen(in_vain, 4) == []


def test_whom_the_scheduler_was_told_of_at_first_is_remembered_when_it_asks_again():
    in_vain = promised("n1")
    in_vain.promise(ONE, {"n1": [VICTIMS[1]]}, ASKED_AGAIN)
    assert seen(in_vain, 3, VICTIMS[1]) == [("a", 1)]


def test_an_old_answer_blames_nobody_once_there_is_another():
    in_vain = promised("n1")
    in_vain.promise(ONE, {"n1": [VICTIMS[1]]}, ASKED_AGAIN + 1)
    assert seen(in_vain, 4, VICTIMS[1]) == []


def test_where_the_scheduler_evicted_nobody_nobody_went_in_vain():
    in_vain = promised("n1", "n2")
    assert seen(in_vain, 2, *VICTIMS) == []
    assert waits(in_vain, ONE, 2) == 0


def test_a_pod_that_runs_where_the_scheduler_evicted_others_is_a_success():
    in_vain = promised("n1")
    fails(in_vain, ONE, 1)
    assert seen(in_vain, 2, replace(ONE, node="n1")) == []
    assert waits(in_vain, ONE, 2) == 0


def test_who_went_in_vain_by_reclaim_and_as_the_scheduler_was_told_is_counted_once():
    in_vain = promised("n1", "n2")
    assert in_vain.count([VICTIMS[0].uid], 2) == 1
    assert seen(in_vain, 3) == [("a", 1)]


def test_what_the_scheduler_was_told_is_not_remembered_for_ever():
    in_vain = promised("n1")
    in_vain.tick(601, {ONE.uid: ONE})
    assert seen(in_vain, 602) == []


def test_a_pod_gone_before_the_scheduler_evicted_anybody_is_judged_a_little_later():
    in_vain = promised("n1")
    assert seen(in_vain, 3, *VICTIMS) == []
    assert seen(in_vain, 3 + ASKED_AGAIN / 2, VICTIMS[1]) == [("a", 1)]
    again = promised("n1")
    assert seen(again, 3, *VICTIMS) == seen(again, 3 + ASKED_AGAIN, *VICTIMS) == []
    assert seen(again, 4 + ASKED_AGAIN, VICTIMS[1]) == []


def test_a_promise_knows_the_node_that_was_nominated_before_it():
    in_vain = InVain()
    in_vain.promise(replace(ONE, nominated_node="n1"), {"n1": VICTIMS[:1], "n2": VICTIMS[1:]}, 0)
    assert seen(in_vain, 1, VICTIMS[0]) == []  # the one on the other node has ended by itself


def test_a_pod_that_was_gone_before_the_answer_is_judged_all_the_same():
    in_vain = InVain()
    in_vain.forget(ONE.uid)
    in_vain.promise(ONE, {"n1": VICTIMS}, 0)
    in_vain.tick(ASKED_AGAIN + 1, {})
    assert list(in_vain.settle({VICTIMS[0].uid: VICTIMS[0]}, ASKED_AGAIN + 1)) == [("a", 1)]
