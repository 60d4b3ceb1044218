"""Which queue a pod is in."""

import pytest

from policy.objects.group import Group
from policy.objects.membership import Membership, Namespace
from tests.unit.given import pod

CHOICES = [  # the namespace's own queue, what it allows, the group's queue, the pod's own choice, default: expected
    (None, (), None, "", False, ""),
    (None, (), None, "", True, "default"),
    ("own", (), None, "", True, "own"),
    ("own", (), "groups", "", True, "own"),
    ("own", ("groups",), "groups", "", True, "groups"),
    ("own", (), None, "mine", True, "own"),
    ("own", ("mine",), None, "mine", True, "mine"),
    ("own", ("mine",), "groups", "mine", True, "mine"),
    ("own", ("other",), "other", "mine", True, "other"),
    (None, (), "groups", "", True, "groups"),
    (None, (), "groups", "mine", True, "mine"),
    ("", ("mine",), None, "other", True, "other"),
    (None, (), "", "", True, "default"),
]


@pytest.mark.parametrize(("own", "allowed", "groups", "mine", "default", "expected"), CHOICES)
def test_a_pod_is_in_the_queue(own, allowed, groups, mine, default, expected):
    known = Membership()
    known.has_default = default
    if own is not None:
        known.namespaces["a"] = Namespace("a", own, frozenset(allowed))
    if groups is not None:
        known.groups["a", "g"] = Group("a", "g", queue=groups)
    assert known.queue_of(pod("p", "a", queue=mine, group="g")) == expected


def test_the_highest_weight_of_a_namespace_counts():
    known = Membership()
    known.weights = {("a", "x"): 2, ("a", "y"): 5, ("b", "x"): 1}
    assert known.weight_by_namespace() == {"a": 5, "b": 1}
