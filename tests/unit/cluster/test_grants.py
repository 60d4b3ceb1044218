"""Grants end by themselves, and sooner for a pod that is never placed."""

from dataclasses import replace

import pytest

from policy.cluster.grants import SAME_ATTEMPT, SHORTEST, Grants
from policy.objects.pod import Unschedulable
from tests.unit.given import pod

BEFORE = Unschedulable("Unschedulable", "0/1 nodes are available")
OTHER = Unschedulable("SchedulerError", "binding rejected")


def lifetime(grants: Grants, now: float, asked: float = 30) -> float:
    """How long a grant given now lasts, to the quarter of a second."""
    grants.give(pod("p"), now, asked)
    at = now
    while not grants.expire(at):
        at += 0.25
    return at - now


def test_a_grant_ends_at_its_deadline():
    grants = Grants()
    grants.give(pod("p"), 100, 30)
    assert grants.expire(129.9) == []
    assert "p" in grants
    assert grants.expire(130) == ["p"]
    assert "p" not in grants
    assert grants.expire(1000) == []


def test_a_grant_that_is_given_again_lasts_from_then_on():
    grants = Grants()
    grants.give(pod("p"), 0, 30)
    grants.give(pod("p"), SAME_ATTEMPT / 2, 30)
    assert grants.expire(30) == []
    assert len(grants) == 1
    assert grants.expire(30 + SAME_ATTEMPT / 2) == ["p"]


def test_a_grant_that_is_taken_back_does_not_expire():
    grants = Grants()
    grants.give(pod("p"), 0, 30)
    grants.release("p")
    grants.release("p")
    assert grants.expire(30) == []
    assert len(grants) == 0


def test_grants_of_a_pod_that_is_never_placed_become_shorter():
    grants = Grants()
    assert [lifetime(grants, now=100 * attempt) for attempt in range(7)] == [30, 15, 7.5, 3.75, 2, 1, 1]


def test_a_pod_that_is_asked_for_again_later_was_not_placed():
    grants = Grants()
    grants.give(pod("p"), 0, 30)
    grants.give(pod("p"), SAME_ATTEMPT, 30)
    grants.give(pod("p"), SAME_ATTEMPT + 1.5, 30)
    assert grants.expire(SAME_ATTEMPT + 1.5 + 15) == ["p"]


def test_no_grant_is_shorter_than_a_binding_takes():
    grants = Grants()
    assert lifetime(grants, now=0, asked=0) == SHORTEST
    assert min(lifetime(grants, now=100 * attempt) for attempt in range(1, 50)) == SHORTEST


@pytest.mark.parametrize(("method", "next_lifetime"), [("forget", 30), ("release", 15)])
def test_failures_are_forgotten_with_the_pod(method, next_lifetime):
    grants = Grants()
    lifetime(grants, now=0)
    getattr(grants, method)("p")
    assert lifetime(grants, now=100) == next_lifetime


def test_one_pod_does_not_shorten_the_grants_of_another():
    grants = Grants()
    grants.give(pod("q"), 0, 30)
    grants.expire(30)
    assert lifetime(grants, now=100) == 30


@pytest.mark.parametrize(
    ("granted", "seen", "in_vain"),
    [
        ((None, 5), (None, 6), False),
        ((None, 5), (OTHER, 6), True),
        ((BEFORE, 5), (BEFORE, 6), False),
        ((BEFORE, 5), (replace(BEFORE, reason="SchedulerError"), 6), True),
        ((BEFORE, 5), (OTHER, 6), True),
        ((BEFORE, 5), (None, 6), False),
        ((BEFORE, 5), (OTHER, 5), False),
        ((BEFORE, 5), (OTHER, 4), False),
        ((BEFORE, 0), (OTHER, 0), True),
    ],
)
def test_a_grant_is_in_vain_when_the_scheduler_says_something_new(granted, seen, in_vain):
    grants = Grants()
    grants.give(pod("p", unschedulable=granted[0], version=granted[1]), 0, 30)
    assert grants.came_to_nothing(pod("p", unschedulable=seen[0], version=seen[1])) is in_vain


def test_without_a_grant_nothing_is_in_vain():
    assert not Grants().came_to_nothing(pod("p", unschedulable=OTHER))
    assert not Grants().is_older(pod("p", version=1))
