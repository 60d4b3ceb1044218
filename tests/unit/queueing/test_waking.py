"""Which refused pods are woken."""

from dataclasses import replace

from policy.objects.group import Group
from policy.objects.queue import Queue
from policy.queueing.waking import to_wake
from policy.quota.elastic_quota import BORROWING, MAX
from policy.quota.rule import Rule
from tests.unit.given import LARGE, cluster_of, pod, quota, refused_for
from tests.unit.given_gangs import NOT_YET, group, members, see, seeing
from tests.unit.given_nodes import node


def waiting(uid: str, rule: Rule = MAX, **rest):
    """A pod that one of our rules refused."""
    return pod(uid, unschedulable=refused_for(rule), **rest)


def uids(cluster) -> list[str]:
    return [each.uid for each in to_wake(cluster)]


def test_nobody_is_woken_for_what_is_still_refused():
    cluster = cluster_of(quota(most={"cpu": 2}), pod("p", node="n", request={"cpu": 2}), waiting("q"))
    assert uids(cluster) == []


def test_a_raised_max_wakes_who_fits():
    cluster = cluster_of(quota(most={"cpu": 2}), pod("p", node="n", request={"cpu": 2}), waiting("q"))
    cluster.upsert_quota(quota(most={"cpu": 3}))
    assert uids(cluster) == ["q"]


def test_no_more_are_woken_than_fit_together():
    cluster = cluster_of(quota(most={"cpu": 3}), *(waiting(f"w{i}") for i in range(9)))
    assert uids(cluster) == ["w0", "w1", "w2"]


def test_they_are_woken_by_priority_and_then_creation_and_then_name():
    cluster = cluster_of(
        quota(most={"cpu": 5}),
        waiting("late", created=9),
        waiting("low", priority=-1, created=1),
        waiting("high", priority=5, created=9),
        waiting("d", created=2),
        waiting("c", created=2),
        waiting("last", priority=-2, created=0),
    )
    assert uids(cluster) == ["high", "c", "d", "late", "low"]


def test_a_smaller_one_behind_one_that_does_not_fit_is_woken():
    cluster = cluster_of(quota(most={"cpu": 2}), waiting("big", priority=5, request={"cpu": 3}), waiting("small"))
    assert uids(cluster) == ["small"]


def test_only_those_that_our_rules_refused_are_woken():
    cluster = cluster_of(quota(most={"cpu": 9}), pod("p"), waiting("terminating", terminating=True), waiting("q"))
    assert uids(cluster) == ["q"]


def test_who_was_woken_and_granted_is_not_woken_again():
    cluster = cluster_of(quota(most={"cpu": 9}), waiting("p"))
    assert cluster.admit(waiting("p"), now=0) is None
    assert uids(cluster) == []


def test_a_grant_that_ends_unused_wakes_again():
    cluster = cluster_of(quota(most={"cpu": 1}), waiting("p"), waiting("q", priority=-1))
    cluster.admit(waiting("p"), now=0)
    generation = cluster.generations.admission
    cluster.tick(30)
    assert cluster.generations.admission > generation
    assert uids(cluster) == ["p"]


def test_what_a_started_gang_lacks_is_woken_before_others_of_its_queue():
    runs = [pod(f"g{at}", group="g", node="n", queue="q") for at in range(2)]
    lacks = waiting("g2", group="g", queue="q", created=9)
    cluster = cluster_of(LARGE, quota("a"), *runs, lacks, waiting("other", namespace="b", queue="q", priority=1))
    cluster.upsert_queue(Queue("q"))
    cluster.upsert_group(Group("a", "g", 3))
    for _ in cluster.divide_steps():
        pass
    assert uids(cluster) == ["g2", "other"]
    cluster.upsert_group(Group("a", "g", 2))
    assert uids(cluster) == ["other", "g2"]


def test_others_of_the_same_shape_are_woken_while_a_gang_backs_off():
    size = pod("p").request  # equal requests are one object
    one, two = ([replace(each, request=size) for each in members(name)] for name in "gh")
    cluster = seeing(node(size={"cpu": 3, "pods": 9}), group("g"), group("h"), one, two, hold_time=10)
    cluster.admit(one[0], now=0)
    cluster.withdraw("g0")  # it was not placed
    see(cluster, [replace(each, unschedulable=NOT_YET) for each in one + two], now=9)
    cluster.tick(10)
    assert cluster.gangs.backs_off_until(("a", "g"))
    assert uids(cluster) == ["h0"]


def test_what_is_kept_for_a_nominated_pod_is_not_promised_to_others():
    cluster = cluster_of(LARGE, quota(most={"cpu": 1}), pod("p", nominated_node="n", priority=1), waiting("q"))
    assert uids(cluster) == []
    cluster = cluster_of(LARGE, quota(most={"cpu": 1}), waiting("p", nominated_node="n", priority=1), waiting("q"))
    assert uids(cluster) == ["p"]


def test_an_owner_is_woken_even_when_others_have_borrowed_everything():
    cluster = cluster_of(
        quota("a", least={"cpu": 1}),
        quota("b", least={"cpu": 1}),
        pod("p", "b", node="n", request={"cpu": 2}),
        waiting("q", BORROWING),
        waiting("r", BORROWING, namespace="b"),
    )
    assert uids(cluster) == ["q"]


def test_looking_for_whom_to_wake_changes_nothing():
    cluster = cluster_of(LARGE, quota(most={"cpu": 2}), waiting("p", nominated_node="n"), waiting("q"), waiting("r"))
    before = dict(cluster.ledger.entries), cluster.generations.admission, len(cluster.grants)
    assert uids(cluster) == uids(cluster) == ["p", "q"]
    assert (dict(cluster.ledger.entries), cluster.generations.admission, len(cluster.grants)) == before


def test_looking_for_whom_to_wake_forgets_nothing_that_may_be_in_flight():
    cluster = cluster_of(quota(most={"cpu": 1}), waiting("p"), waiting("q"))
    cluster.in_flight.suspect(now=0)
    before = dict(cluster.ledger.entries)
    to_wake(cluster)
    assert dict(cluster.ledger.entries) == before


def test_nobody_is_woken_for_what_may_be_in_flight():
    cluster = cluster_of(quota(most={"cpu": 1}), pod("p"), waiting("q"), settle_time=3)
    cluster.in_flight.suspect(now=0)
    assert uids(cluster) == []
    cluster.tick(60)
    assert uids(cluster) == ["q"]


def test_looking_for_whom_to_wake_lets_nobody_in():
    """Were the owner woken and granted, its quota would exceed min and keep nothing for its nominated pod any more."""
    cluster = cluster_of(
        LARGE,
        quota("a", least={"memory": 5}),
        quota("b", least={"cpu": 4, "memory": 1}),
        pod("p", "b", nominated_node="n", request={"cpu": 3}),
        waiting("q", BORROWING, namespace="b", request={"memory": 2}),
    )
    generation = cluster.generations.admission
    assert uids(cluster) == ["q"]
    assert cluster.generations.admission == generation
