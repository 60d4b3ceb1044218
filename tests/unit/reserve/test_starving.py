"""Which jobs starve. Seed: reserve action, Job starving."""

from dataclasses import replace

import pytest

from policy.cluster.unschedulable import PATIENCE
from policy.objects.group import Group
from policy.objects.queue import Queue
from policy.reserve.starving import Terms
from tests.unit.given import pod, quota
from tests.unit.given_jobs import (
    GANG,
    NO_ROOM,
    NOW,
    TERMS,
    gang,
    in_turn,
    reserve_all,
    reserved,
    seen,
    sized,
    sized_pod,
    waiting,
    why_not,
)


def starving(cluster, terms=TERMS):
    return [job.title for job in in_turn(cluster, terms, NOW)]


@pytest.mark.parametrize(("age", "starves"), [(3599, False), (3600, False), (3601, True)])
def test_a_pod_starves_when_it_has_waited_for_longer_than_the_threshold(age, starves):
    assert starving(seen(sized(), waiting(age=age))) == ["a/big"] * starves


def test_the_threshold_is_two_days_unless_another_is_set():
    cluster = seen(waiting("old", age=172_801), waiting("young", age=172_799))
    assert starving(cluster, Terms()) == ["a/old"]


@pytest.mark.parametrize(
    "not_waiting",
    [
        {"unschedulable": None},
        {"terminating": True},
        {"gated": True},
        {"node": "n1"},
        {"finished": True},
        {"created": 0.0},
    ],
    ids=str,
)
def test_a_pod_that_the_scheduler_has_not_tried_in_vain_does_not_starve(not_waiting):
    assert starving(seen(sized(), waiting(**not_waiting))) == []


def test_a_pod_that_was_let_through_does_not_starve():
    cluster = seen(sized(), waiting())
    cluster.admit(cluster.pods["big"], now=0)
    assert starving(cluster) == []


@pytest.mark.parametrize(
    ("standing", "starves"),
    [
        ([], True),
        ([{"node": "n1"}], True),
        ([{"node": "n1"}] * 2, False),
        ([{"node": "n1"}, {"node": "n1", "finished": True, "succeeded": True}], False),
        ([{"node": "n1"}, {"node": "n1", "finished": True}], True),
        ([{"node": "n1"}, {"node": "n1", "terminating": True}], True),
    ],
    ids=str,
)
def test_a_group_starves_until_its_minimum_is_on_nodes_or_has_succeeded(standing, starves):
    others = [waiting(f"m{number}", group=GANG, **state) for number, state in enumerate(standing)]
    cluster = seen(sized(), *gang("w1", "w2", minimum=2), *others)
    assert starving(cluster) == ["a/gang"] * starves


def test_a_group_of_which_fewer_wait_than_it_takes_to_start_does_not_starve():
    assert starving(seen(sized(), *gang("w1", minimum=2))) == []


def test_new_pods_in_an_old_group_have_not_waited_for_as_long_as_the_group_is_there():
    group, *_ = gang("w1", age=10**5)
    assert starving(seen(sized(), group, waiting("w1", age=5, group=GANG))) == []


def test_old_pods_in_a_new_group_have_not_waited_as_a_group():
    group = Group("a", GANG, 2, created=NOW - 5)
    assert starving(seen(sized(), group, *(waiting(name, group=GANG) for name in ("w1", "w2")))) == []


def test_a_pod_of_a_group_that_does_not_exist_is_a_job_of_its_own():
    assert starving(seen(sized(), waiting(group=GANG))) == ["a/big"]


def test_jobs_come_in_the_order_of_priority_and_then_of_age():
    young, old, important = waiting("young", age=4000), waiting("old", age=5000), waiting("high", age=4000, priority=9)
    assert starving(seen(young, old, important)) == ["a/high", "a/old", "a/young"]


def test_a_job_that_nodes_are_reserved_for_stays_in_turn_whatever_its_age():
    cluster = seen(sized(), waiting())
    reserve_all(cluster)
    assert [job.title for job in in_turn(cluster, Terms(starving_after=10**6), NOW)] == ["a/big"]


# Higher priorities first


def urgent(**rest):
    return sized_pod("urgent", 1, priority=9, **rest)


@pytest.mark.parametrize(
    ("other", "goes_first"),
    [
        (urgent(), True),
        (urgent(unschedulable=NO_ROOM), True),
        (replace(urgent(), priority=0), False),
        (replace(urgent(), request=waiting().request), False),
        (urgent(more={"example.com/nobody-has": 1}), False),
        (urgent(gated=True), False),
        (urgent(terminating=True), False),
        (urgent(node="n1"), False),
        (urgent(created=NOW - 3600), False),
    ],
    ids=[
        "never tried",
        "tried",
        "same priority",
        "no room",
        "no node has it",
        "gated",
        "going",
        "bound",
        "nobody tries it",
    ],
)
def test_nothing_is_reserved_while_a_job_of_higher_priority_could_be_scheduled(other, goes_first):
    cluster = seen(sized(), sized_pod("runs", 1, node="n1"), waiting(), other)
    assert why_not(cluster) == ("OthersGoFirst" if goes_first else "")


def test_a_job_of_higher_priority_that_its_quota_refuses_does_not_go_first():
    cluster = seen(sized(), waiting(), replace(urgent(), namespace="b"))
    assert why_not(cluster) == "OthersGoFirst"
    cluster.upsert_quota(quota("b", most={"cpu": 0}))
    assert why_not(cluster) == ""


@pytest.mark.parametrize(("room", "goes_first"), [(3, True), (2, False)])
def test_a_group_of_higher_priority_goes_first_only_if_all_that_it_lacks_have_room(room, goes_first):
    members = gang("m1", "m2", "m3", cpu=1, age=60, priority=9)
    cluster = seen(sized(cpu=3), waiting(), *members, *([sized_pod("r", 3 - room, node="n1")] if room < 3 else []))
    assert why_not(cluster) == ("OthersGoFirst" if goes_first else "")


def test_what_is_reserved_stays_so_when_a_job_of_higher_priority_comes():
    cluster = seen(sized(), waiting())
    reserve_all(cluster)
    cluster.upsert_pod(urgent(), now=0)
    reserve_all(cluster)
    assert reserved(cluster) == {"big": "n1"}


# Rules of quotas


def test_nothing_is_reserved_for_a_job_that_its_quota_would_refuse():
    cluster = seen(sized(), waiting())
    cluster.upsert_quota(quota("a", most={"cpu": 2}))
    assert why_not(cluster) == "Refused"


def test_the_members_of_a_group_have_to_be_within_the_quota_together():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2"))
    cluster.upsert_quota(quota("a", most={"cpu": 5}))
    assert why_not(cluster, "a/gang") == "Refused"
    cluster.upsert_quota(quota("a", most={"cpu": 6}))
    assert why_not(cluster, "a/gang") == ""


def test_to_look_whether_quotas_allow_it_changes_nothing():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2"), pod("other", "a", node="n1"))
    cluster.upsert_quota(quota("a", most={"cpu": 5}))
    before = dict(cluster.ledger.entries), dict(cluster.ledger.account("a").used), cluster.generations.admission
    why_not(cluster, "a/gang")
    assert (cluster.ledger.entries, cluster.ledger.account("a").used, cluster.generations.admission) == before


def test_a_pod_that_a_node_is_reserved_for_keeps_its_claim_on_its_queue():
    cluster = seen(sized(), waiting(queue="q"))
    cluster.upsert_queue(Queue("q"))
    for _ in cluster.divide_steps():
        pass

    def claims():
        return cluster.ledger.entries["big"].claims

    assert claims()
    cluster.tick(0)
    cluster.tick(PATIENCE + 1)
    assert not claims(), "the scheduler has tried it in vain for too long"
    reserve_all(cluster)
    assert claims()
    cluster.delete_reservation("starving-big")
    assert not claims()
