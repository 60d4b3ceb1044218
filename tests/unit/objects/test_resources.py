"""Resource vectors."""

import pytest

from policy.objects.resources import add, largest, subtract, total


def test_adding_changes_the_total_in_place():
    sum_ = {"cpu": 1}
    add(sum_, {"cpu": 2, "memory": 3})
    assert sum_ == {"cpu": 3, "memory": 3}


def test_what_becomes_zero_is_dropped():
    left = {"cpu": 3, "memory": 3}
    subtract(left, {"cpu": 3, "memory": 1})
    assert left == {"memory": 2}


def test_more_than_there_is_can_be_taken_off():
    left = {}
    subtract(left, {"cpu": 3})
    assert left == {"cpu": -3}
    add(left, {"cpu": 3})
    subtract(left, {"cpu": 0})
    assert left == {}


@pytest.mark.parametrize(
    ("parts", "sum_", "maximum"),
    [
        ([], {}, {}),
        ([{"cpu": 1}], {"cpu": 1}, {"cpu": 1}),
        ([{"cpu": 1}, {"memory": 2}], {"cpu": 1, "memory": 2}, {"cpu": 1, "memory": 2}),
        ([{"cpu": 1}, {"cpu": 3}, {"cpu": 2}], {"cpu": 6}, {"cpu": 3}),
    ],
)
def test_vectors_are_added_up_or_compared_resource_by_resource(parts, sum_, maximum):
    before = [dict(part) for part in parts]
    assert total(parts) == sum_
    assert largest(*parts) == maximum
    assert parts == before
