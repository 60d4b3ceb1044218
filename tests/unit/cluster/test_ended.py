"""Estimates of how long pods run, by pods like them that have ended. See docs/time.md."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.cluster.ended import AT_MOST, ENOUGH, KINDS, LASTS, NAMESPACES
from tests.unit.given import pod

NOW = 10_000_000.0
RUNS = replace(pod("run", "a", owner="Job"), node="n1", started=NOW - 50)


def ended(seconds, uid="", **fields):
    done = {"owner": "Job", "finished": True, "succeeded": True, "finished_at": NOW - 1, "started": NOW - 1 - seconds}
    return pod(uid or f"{seconds}-{fields}", **{"namespace": "a"} | done | fields)


def estimated(*pods, of=RUNS, now=NOW):
    cluster = Cluster()
    for each in pods:
        cluster.upsert_pod(each, now=0)
        cluster.delete_pod(each.uid)
    end = cluster.ended.estimate(of, now)
    return None if end is None else end - of.started


HUNDREDS = [ended(seconds) for seconds in (100, 200, 300, 400, 500)]


def test_a_pod_ends_after_the_median_of_those_that_have_ended():
    assert estimated(*HUNDREDS) == 300
    assert estimated(*HUNDREDS, ended(600)) == 350
    assert estimated(*HUNDREDS, of=replace(RUNS, started=0.0)) == NOW + 300


def test_of_few_pods_nothing_is_estimated():
    assert len(HUNDREDS) == ENOUGH
    assert estimated(*HUNDREDS[1:]) is None


def test_only_those_count_that_ran_for_as_long_as_the_pod_has():
    longer = [ended(seconds) for seconds in (600, 700, 800)]
    assert estimated(*HUNDREDS, *longer, of=replace(RUNS, started=NOW - 350)) == 600
    assert estimated(*HUNDREDS, *longer, of=replace(RUNS, started=NOW - 450)) is None


@pytest.mark.parametrize(
    "other", [{"namespace": "b"}, {"owner": "ReplicaSet"}, {"request": {"cpu": 2}}, {"succeeded": False}]
)
def test_pods_of_another_kind_say_nothing_nor_do_those_that_failed(other):
    assert estimated(*HUNDREDS[1:], ended(100, **other)) is None


def test_a_pod_that_ended_long_ago_says_nothing():
    assert estimated(*HUNDREDS, of=replace(RUNS, started=0.0), now=NOW + LASTS) is None


def test_a_pod_counts_once_however_often_it_is_seen():
    again = [replace(HUNDREDS[0], labels={"seen": str(number)}) for number in range(9)]
    cluster = Cluster()
    for each in again:
        cluster.upsert_pod(each, now=0)
    assert cluster.ended.estimate(RUNS, NOW) is None


def test_the_last_pods_and_kinds_are_remembered_and_no_more():
    assert estimated(*HUNDREDS, *[ended(900, f"u{number}") for number in range(AT_MOST)]) == 900
    others = [ended(1, f"k{number}", request={"cpu": 2 + number}) for number in range(KINDS)]
    assert estimated(*HUNDREDS, *others[1:]) == 300
    assert estimated(*HUNDREDS, *others) is None
    elsewhere = [ended(1, f"n{number}", namespace=f"n{number}") for number in range(NAMESPACES)]
    assert estimated(*HUNDREDS, *elsewhere[1:]) == 300
    assert estimated(*HUNDREDS, *elsewhere) is None
