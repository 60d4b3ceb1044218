"""Gangs: who is refused until the group could start, and what is held for those that start."""

from dataclasses import replace

import pytest

from policy.cluster.gang_admission import BACKOFF
from policy.cluster.pod_admission import Unsettled
from policy.explain.verdicts import verdict_on
from policy.objects.constraints import Constraints
from policy.objects.membership import Namespace
from policy.objects.pod import Unschedulable
from policy.objects.reservation import PodName, Reservation
from policy.queueing.waking import to_wake
from policy.quota.admission import Rules
from policy.quota.gang_minimum import RULE
from tests.unit.given import pod, quota
from tests.unit.given_gangs import asked, bound, group, members, refused, see, seeing
from tests.unit.given_nodes import HOSTNAME, node, term
from tests.unit.given_queues import divided, queue

FULL = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
OVER_TWO = {"cpu": 2, "pods": 10}


def held(cluster) -> dict[str, str]:
    """The node that is held, by member."""
    return {uid: hold.node for uid in sorted(cluster.pods) if (hold := cluster.gangs.holds.get(uid))}


STARTS = {  # members that exist, cores of the nodes, other objects: whether the group of three may start
    "with room for all on one node": (3, [4], [], True),
    "with room for all on several nodes": (3, [1, 1, 1], [], True),
    "with room for more than the minimum": (5, [4], [], True),
    "with room for one less": (3, [2], [], False),
    "with room in sum, but not for each": (3, [2.5, 0.5], [], False),
    "with a member that is missing": (2, [4], [], False),
    "with members enough in another group only": (2, [4], [members("h", 2)], False),
    "with a member that is terminating": (2, [4], [pod("old", group="g", terminating=True)], False),
    "with a member that somebody else keeps from being scheduled": (
        2,
        [4],
        [pod("gated", group="g", gated=True)],
        False,
    ),
    "with a member that has failed": (2, [4], [pod("f", group="g", node="n1", finished=True)], False),
    "with one that has succeeded": (2, [4], [pod("s", group="g", node="n1", finished=True, succeeded=True)], True),
    "with one that is bound": (2, [4], [pod("b", group="g", node="n1")], True),
    "with one that is bound and in the way": (2, [2], [pod("b", group="g", node="n1", request={"cpu": 2})], False),
    "with one that is bound and going": (2, [4], [pod("b", group="g", node="n1", terminating=True)], False),
    "with one that requests what no node has": (2, [4], [pod("x", group="g", request={"gpu": 1})], False),
    "with a quota for all": (3, [4], [quota(most={"cpu": 3})], True),
    "with a quota for one less": (3, [4], [quota(most={"cpu": 2})], False),
    "with a quota of which others have used a part": (3, [8], [quota(most={"cpu": 3}), pod("o", node="n1")], False),
    "with enough to borrow for one less": (3, [4], [quota(least={"cpu": 1}), quota("b", least={"cpu": 1})], False),
    "with a queue for all": (3, [4], [queue("default", most={"cpu": 3, "pods": 9})], True),
    "with a queue for one less": (3, [4], [queue("default", most={"cpu": 2, "pods": 9})], False),
    "with room that a pod is expected to take": (3, [3], [pod("o", "b", nominated_node="n1", priority=-1)], False),
}


@pytest.mark.parametrize("case", STARTS)
def test_a_group_of_three_starts(case):
    number, cores, others, expected = STARTS[case]
    nodes = [node(f"n{at}", size={"cpu": size, "pods": 10}) for at, size in enumerate(cores, start=1)]
    gang = members(count=number)
    cluster = seeing(*nodes, group(), gang, *others)
    first = cluster.admit(gang[0], now=0)
    if expected:
        assert first is None
    else:
        assert (first.rule, first.message) == (RULE.name, RULE.text) or first.rule.startswith(("elastic", "queue"))
    ready = sum(each.succeeded or each.assigned for each in cluster.groups.members(("a", "g")) if not each.terminating)
    assert len(cluster.grants) == (3 - ready if expected else 0)


DONE = {"node": "n1", "finished": True, "succeeded": True}
RUNS = {
    "a pod that runs": ([{"node": "n1"}], 1),
    "one that runs and is being deleted": ([{"node": "n1", "terminating": True}], 0),
    "one that was evicted and has exited with 0": ([DONE | {"terminating": True}], 0),
    "one that has failed": ([{"node": "n1", "finished": True}], 0),
    "all of a run that is over": ([DONE | {"created": 1, "finished_at": 9}] * 3, 3),
    "one of a run that was over when the next began": ([DONE | {"created": 1, "finished_at": 9}, {"created": 10}], 0),
    "one that ended after the oldest who waits was created": (
        [DONE | {"created": 1, "finished_at": 11}, {"created": 10}],
        1,
    ),
    "one that ended before its successor came, beside one that runs on": (
        [DONE | {"created": 1, "finished_at": 9}, {"created": 1, "node": "n1"}, {"created": 10}],
        2,
    ),
    "one whose end is not known, created with those who wait": ([DONE | {"created": 10}, {"created": 10}], 1),
    "one whose end is not known, created before those who wait": ([DONE | {"created": 1}, {"created": 10}], 0),
    "one of the Job whose last pod has failed and is made anew": (
        [DONE | {"created": 1, "finished_at": 9, "controller": "job"}, {"created": 20, "controller": "job"}],
        1,
    ),
    "one of the Job that had run before": (
        [DONE | {"created": 1, "finished_at": 9, "controller": "first"}, {"created": 20, "controller": "second"}],
        0,
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_towards_the_minimum_counts(case):
    states, expected = RUNS[case]
    some = [pod(f"p{at}", group="g", **{"created": 0} | state) for at, state in enumerate(states)]
    cluster = seeing(group(), some)
    assert len(cluster.gangs.ready(group())) == expected
    assert len(cluster.groups.job("a", "g").standing) == expected


def test_a_gang_does_not_start_in_part_because_its_last_run_has_succeeded():
    old = [pod(f"o{at}", group="g", **DONE, created=1, finished_at=5) for at in range(3)]
    new = members(created=10.0)
    cluster = seeing(node("n1", size={"cpu": 1, "pods": 10}), group(), old, new)
    assert asked(cluster, *new) == []


def test_once_the_first_has_passed_all_it_takes_have_a_place_and_pass():
    gang = members(count=4)
    cluster = seeing(*(node(f"n{at}", size=OVER_TWO) for at in (1, 2)), group(), gang)
    assert asked(cluster, gang[3]) == ["g3"]
    assert held(cluster) == {"g0": "n1", "g1": "n1", "g3": "n2"} or len(held(cluster)) == 3
    assert asked(cluster, gang[0], gang[1]) == ["g0", "g1"]
    assert len(cluster.grants) == 3


def test_the_others_are_taken_in_their_turn():
    gang = members(count=5)
    cluster = seeing(node(size={"cpu": 9, "pods": 10}), group(), replace(gang[4], priority=7), gang[:4])
    assert asked(cluster, gang[3]) == ["g3"]
    assert set(held(cluster)) == {"g3", "g4", "g0"}


def test_members_beyond_the_minimum_are_like_any_other_pod():
    gang = members(count=5)
    cluster = seeing(node(size={"cpu": 3, "pods": 10}), group(), quota(most={"cpu": 4}), gang)
    assert asked(cluster, *gang) == ["g0", "g1", "g2", "g3"]
    assert len(held(cluster)) == 3


def test_a_member_that_asks_before_it_was_seen_counts():
    gang = members()
    cluster = seeing(node(), group(), gang[:2])
    assert asked(cluster, gang[2]) == ["g2"]
    assert cluster.table.placed("g2").site.name == "n1"
    see(cluster, gang[2])
    assert asked(cluster, *gang) == ["g0", "g1", "g2"]
    assert len(cluster.grants) == 3


def test_one_that_asked_and_is_never_seen_leaves_nothing_behind():
    gang = members()
    cluster = seeing(node(), group(), gang[:2])
    cluster.admit(gang[2], now=0)
    cluster.tick(100)
    assert cluster.table.placed("g2") is None
    assert not cluster.gangs.holds


NOT_GATED = {
    "a native group": ([group(native=True)], {}),
    "a minimum of one": ([group(minimum=1)], {}),
    "a group that is not there": ([], {}),
    "the rule switched off": ([group()], {"rules": Rules(gangs=False)}),
}


@pytest.mark.parametrize("case", NOT_GATED)
def test_nobody_waits_for_the_others_with(case):
    objects, options = NOT_GATED[case]
    gang = members(count=1)
    cluster = seeing(node(), *objects, gang, **options)
    assert asked(cluster, *gang) == ["g0"]
    assert not cluster.gangs.holds


def test_two_gangs_that_fit_only_one_at_a_time_are_placed_one_whole_after_the_other():
    one, two = members("g"), members("h")
    cluster = seeing(node(size={"cpu": 4, "pods": 10}), group("g"), group("h"), one, two)
    assert asked(cluster, two[0], one[0], two[1], one[1], two[2], one[2]) == ["h0", "h1", "h2"]
    see(cluster, *map(bound, two))
    assert asked(cluster, *one) == []
    for each in two:
        cluster.delete_pod(each.uid)
    assert asked(cluster, *one) == ["g0", "g1", "g2"]


def test_others_are_kept_off_what_is_held_and_no_more():
    gang, others = members(), [pod(f"o{number}", "b") for number in range(2)]
    cluster = seeing(node("n1"), node("n2"), group(), gang, others)
    assert asked(cluster, gang[0], offered=("n1",)) == ["g0"]
    assert held(cluster) == dict.fromkeys(("g0", "g1", "g2"), "n1")
    assert cluster.reservations.nodes_held_from(others[0]) == set()
    assert cluster.reservations.nodes_held_from(pod("big", "b", request={"cpu": 2})) == {"n1"}
    assert cluster.reservations.nodes_held_from(pod("high", "b", priority=9, request={"cpu": 2})) == {"n1"}
    assert cluster.reservations.nodes_held_from(gang[1]) == set()
    assert asked(cluster, others[0]) == ["o0"]
    assert cluster.reservations.nodes_held_from(others[1]) == {"n1"}  # the other may be on its way there
    see(cluster, bound(others[0], "n2"))
    assert cluster.reservations.nodes_held_from(others[1]) == set()


def test_a_member_whose_node_is_not_offered_goes_to_another_and_is_held_there():
    gang = members()
    cluster = seeing(node("n1", size=OVER_TWO), node("n2", size=OVER_TWO), node("n3"), group(), gang)
    cluster.admit(gang[0], now=0, offered=("n1", "n2"))
    where = held(cluster)["g1"]
    assert asked(cluster, gang[1], offered=("n3",)) == ["g1"]
    assert held(cluster)["g1"] == "n3" != where
    assert cluster.table.placed("g1").site.name == "n3"


def test_a_member_never_goes_where_others_are_held():
    gang = members()
    cluster = seeing(node("n1", size=OVER_TWO), node("n2", size={"cpu": 1, "pods": 5}), group(), gang)
    cluster.admit(gang[0], now=0, offered=("n1",))
    where = held(cluster)
    lonely = next(each for each in gang if where[each.uid] == "n2")
    refused = cluster.admit(lonely, now=1, offered=("n1",))
    assert refused.rule == RULE.name
    assert held(cluster) == where  # it has its time to ask again
    assert asked(cluster, lonely, now=2, offered=("n1", "n2")) == [lonely.uid]


def test_the_first_goes_where_the_scheduler_offers():
    gang = members()
    cluster = seeing(node("n1"), node("n2"), group(), gang)
    cluster.admit(gang[0], now=0, offered=("n2",))
    assert held(cluster)["g0"] == "n2"
    assert asked(seeing(node("n1"), group(), gang), gang[0], offered=()) == []


def test_what_is_held_counts_as_used_from_the_start():
    gang = members()
    cluster = seeing(node(), group(), quota(most={"cpu": 3}), gang, pod("o"))
    assert asked(cluster, gang[0], pod("o")) == ["g0"]
    assert cluster.ledger.account("a").used == {"cpu": 3000, "pods": 3}


def test_a_hold_ends_in_time_and_the_group_backs_off_for_twice_as_long_each_time():
    gang = members()
    cluster = seeing(node(size={"cpu": 3, "pods": 9}), group(), group("h"), gang, members("h"), hold_time=10)
    now = 0.0
    for pause in (BACKOFF, 2 * BACKOFF, 4 * BACKOFF):
        assert asked(cluster, gang[0], now=now) == ["g0"]
        cluster.tick(now + 9)
        assert len(cluster.grants) == 3
        now += 10
        cluster.withdraw("g0")  # it was not placed
        cluster.tick(now)
        assert len(cluster.grants) == 0
        assert asked(cluster, *gang, now=now) == []
        cluster.tick(now + pause - 1)
        assert asked(cluster, *gang, now=now + pause - 1) == []
        now += pause
        cluster.tick(now)
    assert asked(cluster, gang[0], now=now) == ["g0"]


def test_a_member_that_leaves_its_group_leaves_its_place_to_others():
    gang = members()
    cluster = seeing(node(size={"cpu": 3, "pods": 9}), group(), gang)
    assert asked(cluster, gang[0]) == ["g0"]
    assert "g1" in cluster.gangs.holds
    before = cluster.generations.of_placing
    see(cluster, replace(gang[1], group=""))
    assert "g1" not in cluster.gangs.holds
    assert cluster.generations.of_placing != before


def test_others_go_first_while_a_group_backs_off():
    one, two = members("g"), members("h")
    cluster = seeing(node(size={"cpu": 3, "pods": 9}), group("g"), group("h"), one, two, hold_time=10)
    assert asked(cluster, one[0], two[0]) == ["g0"]
    cluster.withdraw("g0")
    cluster.tick(10)
    assert asked(cluster, one[0], two[0], now=10) == ["h0"]


def test_one_that_asked_keeps_its_grant_when_the_time_of_the_others_is_over():
    gang = members()
    cluster = seeing(node(), group(), gang, hold_time=10)
    cluster.admit(gang[0], now=0)
    cluster.admit(gang[1], now=9)
    cluster.tick(10)
    assert {uid for uid in ("g0", "g1", "g2") if uid in cluster.grants} == {"g0", "g1"}


def test_the_rest_of_a_gang_that_started_in_part_needs_only_what_is_missing():
    gang = members(count=4)
    cluster = seeing(node(size={"cpu": 4, "pods": 9}), group(minimum=4), gang, hold_time=10)
    cluster.admit(gang[0], now=0)
    see(cluster, bound(gang[0]))
    cluster.tick(10)
    cluster.tick(10 + BACKOFF)
    see(cluster, pod("o", "b", node="n1"))
    assert asked(cluster, gang[1], now=20) == []
    cluster.delete_pod("o")
    assert asked(cluster, *gang[1:], now=20) == ["g1", "g2", "g3"]


def test_that_the_scheduler_tried_a_member_before_it_was_held_takes_nothing_from_it():
    gang = members()
    cluster = seeing(node(), group(), gang)
    cluster.admit(gang[0], now=0)
    see(cluster, replace(gang[1], unschedulable=FULL, version=1))
    assert "g1" in cluster.grants
    assert asked(cluster, gang[1]) == ["g1"]
    see(cluster, replace(gang[1], unschedulable=Unschedulable("SchedulerError", "binding rejected"), version=2))
    assert "g1" not in cluster.grants
    assert "g1" not in cluster.gangs.holds
    assert cluster.table.placed("g1") is None


def test_what_is_held_is_not_looked_for_again_until_something_has_changed(monkeypatch):
    gang = members()
    cluster = seeing(node(size=OVER_TWO), group(), gang)
    looks = []
    find = cluster.gangs.search.find
    monkeypatch.setattr(cluster.gangs.search, "find", lambda *given: looks.append(given) or find(*given))
    assert asked(cluster, *gang, *gang) == []
    assert len(looks) == 1
    see(cluster, refused(gang))
    assert asked(cluster, *gang) == []
    assert len(looks) == 1
    see(cluster, pod("o", "b", node="n1"))
    cluster.delete_pod("o")
    assert asked(cluster, *gang) == []
    assert len(looks) == 2
    see(cluster, node("n2"))
    assert asked(cluster, *gang) == ["g0", "g1", "g2"]


CHANGES = {
    "a quota is raised": (quota(most={"cpu": 2}), lambda cluster: cluster.upsert_quota(quota(most={"cpu": 3}))),
    "a member comes": (group(minimum=4), lambda cluster: see(cluster, refused(members(start=3, count=1)))),
    "the minimum is lowered": (group(minimum=4), lambda cluster: cluster.upsert_group(group(minimum=3))),
    "a pod goes": (pod("o", "b", request={"cpu": 2}, node="n1"), lambda cluster: cluster.delete_pod("o")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_member_is_woken_when_its_group_can_start_and_then_the_others_when(change):
    before, happens = CHANGES[change]
    gang = refused(members())
    cluster = seeing(node(), group(), before, gang)
    assert to_wake(cluster) == []
    cluster.admit(gang[0], now=0)
    generation = cluster.generations.admission
    happens(cluster)
    assert cluster.generations.admission > generation
    first, *_ = woken = to_wake(cluster)
    assert len(woken) == 1
    generation = cluster.generations.admission
    assert asked(cluster, first) == [first.uid]
    assert cluster.generations.admission > generation
    rest = [each.uid for each in to_wake(cluster)]
    assert rest
    assert set(rest) == {uid for uid in held(cluster) if uid != first.uid}


def test_a_group_that_has_backed_off_is_woken_then():
    gang = refused(members())
    cluster = seeing(node(), group(), gang, hold_time=10)
    cluster.admit(gang[0], now=0)
    cluster.withdraw("g0")
    cluster.tick(10)
    assert asked(cluster, gang[0], now=10) == []
    assert to_wake(cluster) == []
    generation = cluster.generations.admission
    cluster.tick(10 + BACKOFF)
    assert cluster.generations.admission > generation
    assert [each.uid for each in to_wake(cluster)] == ["g0"]


def test_of_two_gangs_that_a_quota_lets_only_one_start_one_is_woken():
    one, two = refused(members("g")), refused(members("h", priority=1))
    cluster = seeing(node(size={"cpu": 9, "pods": 9}), group("g"), group("h"), quota(most={"cpu": 3}), one, two)
    assert [each.uid for each in to_wake(cluster)] == ["h0"]


def test_with_many_gangs_that_cannot_start_those_of_one_kind_are_looked_at_once(monkeypatch):
    kinds = [members(f"g{number}", namespace="b") for number in range(30)]
    request, constraints = kinds[0][0].request, kinds[0][0].constraints
    gangs = [refused([replace(each, request=request, constraints=constraints) for each in gang]) for gang in kinds]
    groups = [group(f"g{number}", namespace="b") for number in range(30)]
    cluster = seeing(node(size=OVER_TWO), *groups, *gangs)
    looks = []
    find = cluster.gangs.search.find
    monkeypatch.setattr(cluster.gangs.search, "find", lambda *given: looks.append(given) or find(*given))
    assert to_wake(cluster) == []
    assert len(looks) == 1


def test_after_a_start_a_gang_waits_for_what_may_be_in_flight():
    gang = members()
    cluster = seeing(node(size={"cpu": 3, "pods": 9}), group(), gang, pod("o", "b"), settle_time=3)
    cluster.in_flight.suspect(now=0)
    with pytest.raises(Unsettled):
        cluster.admit(gang[0], now=0)
    assert len(cluster.grants) == 0
    cluster.tick(3)
    assert asked(cluster, *gang, now=3) == ["g0", "g1", "g2"]


def test_room_that_a_plan_has_made_for_a_member_is_there_for_it():
    gang = members(priority=1)
    cluster = seeing(node("n1"), node("n2", size={"cpu": 1, "pods": 9}), group(minimum=2), gang[:2])
    see(cluster, pod("o", "b", node="n1", request={"cpu": 4}))
    name = PodName("a", "g0", "g0")
    cluster.upsert_reservation(Reservation("r", name, "n1", (PodName("b", "o", "o"),), 0.0))
    assert asked(cluster, gang[1]) == []
    cluster.delete_pod("o")
    assert asked(cluster, gang[1]) == ["g1"]
    assert asked(cluster, gang[0], offered=("n1",)) == ["g0"]


def state_of(cluster):
    """What a question about a gang may leave behind."""
    table = cluster.table
    return dict(cluster.ledger.entries), cluster.generations.admission, table.used.tolist(), set(table.expected)


def test_looking_at_a_gang_changes_nothing():
    apart = Constraints(anti_affinity=(term(HOSTNAME, app="g"),))
    gang = refused(members(constraints=apart, labels={"app": "g"}))
    gang[1] = replace(gang[1], nominated_node="n2")
    cluster = seeing(node("n1"), node("n2"), node("n3"), group(), quota(most={"cpu": 3}), gang)
    before = state_of(cluster)
    assert verdict_on(cluster, "a", "g0").outcome == "admissible"
    assert [each.uid for each in to_wake(cluster)] == ["g0"]
    assert state_of(cluster) == before


def test_a_large_gang_that_could_not_start_is_not_tried_again_at_once_unless_woken(monkeypatch):
    gang = refused(members(count=100))
    cluster = seeing(node(size={"cpu": 99, "pods": 500}), group(minimum=100), gang)
    looks = []
    find = cluster.gangs.search.find
    monkeypatch.setattr(cluster.gangs.search, "find", lambda *given: looks.append(given) or find(*given))
    for now in (0.0, 0.5):
        cluster.generations.admission += 1
        assert asked(cluster, gang[0], now=now) == []
    assert len(looks) == 1
    cluster.generations.admission += 1
    assert asked(cluster, gang[0], now=1.0) == []
    assert len(looks) == 2
    see(cluster, node("n2"))
    [first] = to_wake(cluster)
    assert asked(cluster, first, now=1.1) == [first.uid]


def test_a_gang_that_is_not_complete_keeps_no_room_of_its_queue_from_others():
    gang, others = members(count=2), [pod(f"o{number}", "b") for number in range(4)]
    cluster = seeing(node(), queue("default"), queue("q"), group(), gang, others)
    cluster.upsert_namespace(Namespace("b", "q"))
    divided(cluster)
    assert asked(cluster, *others) == ["o0", "o1", "o2", "o3"]
    for each in others:
        cluster.withdraw(each.uid)
    last = members(start=2, count=1)[0]
    see(cluster, last)
    divided(cluster)
    assert asked(cluster, *others) == ["o0", "o1"]
    for each in others:
        cluster.withdraw(each.uid)
    cluster.delete_pod(last.uid)
    divided(cluster)
    assert asked(cluster, *others) == ["o0", "o1", "o2", "o3"]
    for each in others:
        cluster.withdraw(each.uid)
    cluster.upsert_group(group(minimum=2))
    divided(cluster)
    assert asked(cluster, *others) == ["o0", "o1"]


def test_a_grant_given_before_a_member_asked_did_not_come_to_nothing():
    gang = members()
    cluster = seeing(node(), group(), gang)
    assert asked(cluster, gang[0], now=0) == ["g0"]
    assert asked(cluster, gang[1], now=5) == ["g1"]
    cluster.tick(34)
    assert "g1" in cluster.grants


def test_nor_did_one_that_was_not_asked_for_in_time_and_nobody_is_expected_any_more():
    gang = members()
    cluster = seeing(node(), group(), gang, hold_time=10)
    cluster.admit(gang[0], now=0)
    cluster.withdraw("g0")
    cluster.tick(10)
    assert not cluster.table.expected
    cluster.tick(10 + BACKOFF)
    assert asked(cluster, *gang, now=20) == ["g0", "g1", "g2"]
    cluster.tick(49)
    assert "g1" in cluster.grants


def test_it_takes_as_many_also_where_no_rule_applies_yet():
    cluster = seeing(group(), members("g", 1, priority=2_000_000_000), node())
    (member,) = cluster.pods.values()
    before = cluster.gangs.takes_to_start(member)
    see(cluster, quota())
    assert before == cluster.gangs.takes_to_start(member) == 3
