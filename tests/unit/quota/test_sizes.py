"""Whether any of what waits fits into what is left, and the smallest of it."""

import pytest

from policy.quota.sizes import LOOKED_AT, WaitingRequests


def waiting(*requests):
    result = WaitingRequests()
    for request in requests:
        result.change(request, 1)
    return result


@pytest.mark.parametrize(
    ("requests", "room", "fits"),
    [
        ([], {"cpu": 9}, False),
        ([{"cpu": 2}], {"cpu": 2}, True),
        ([{"cpu": 2}], {"cpu": 1}, False),
        ([{"cpu": 2, "gpu": 1}], {"cpu": 9}, False),
        ([{"cpu": 2, "gpu": 1}, {"cpu": 3}], {"cpu": 9}, True),
        ([{"cpu": 1, "memory": 9}, {"cpu": 9, "memory": 1}], {"cpu": 1, "memory": 1}, False),
    ],
    ids=str,
)
def test_one_fits_where_all_that_it_requests_is_there(requests, room, fits):
    assert waiting(*requests).any_fits(room) == fits


def test_what_waits_no_more_fits_nowhere():
    known = waiting({"cpu": 1}, {"cpu": 1}, {"cpu": 5})
    assert known.any_fits({"cpu": 1})
    known.change({"cpu": 1}, -1)
    assert known.any_fits({"cpu": 1})
    known.change({"cpu": 1}, -1)
    assert not known.any_fits({"cpu": 1})
    assert known.smallest("cpu") == 5


def test_of_too_many_different_ones_some_other_may_fit():
    different = [{"cpu": n, "memory": 100 - n} for n in range(1, LOOKED_AT + 1)]
    assert not waiting(*different).any_fits({"cpu": 50, "memory": 40})
    assert waiting(*different, {"cpu": 99, "memory": 1}).any_fits({"cpu": 50, "memory": 40})


def test_a_resource_that_nobody_waits_for_any_more_leaves_nothing_behind():
    waiting = WaitingRequests()
    waiting.change({"example.com/invented": 1, "cpu": 1}, 1)
    waiting.change({"cpu": 1}, 1)
    waiting.change({"example.com/invented": 1, "cpu": 1}, -1)
    assert vars(waiting)["_sizes"].keys() == vars(waiting)["_asking"].keys() == {"cpu"}
