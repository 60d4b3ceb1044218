"""Granted pods on their way: what they may take of many nodes at once is what they may take of each."""

from dataclasses import replace

import pytest

from policy.cluster import assumed
from policy.objects.quantity import LARGEST
from tests.unit.given_jobs import seen, sized, sized_pod

ROWS = {"large": 0, "small": 1}


def on_each(pod, *coming, expected=(), takers=None):
    """The cores that these pods may take of a node of eight and one of two, and both by the question about one node."""
    table = seen(sized("large", 8), sized("small", 2)).table
    for other, node in expected:
        table.add(other, node)
    taken = assumed.at_most_on_each(table, ROWS, coming, pod, {} if takers is None else takers)
    others = [(other, 1) for other in coming if other.uid != pod.uid]
    one_by_one = [assumed.at_most_on(table, node, others, pod).get("cpu", 0) for node in ROWS]
    return (taken["cpu"].tolist() if "cpu" in taken else None), one_by_one


def test_a_pod_counts_on_each_node_that_could_take_it_and_itself_on_none():
    asking, other = sized_pod("asking"), sized_pod("other")
    taken, one_by_one = on_each(asking, asking, other, sized_pod("same"), sized_pod("big", 4))
    assert taken == one_by_one == [6000, 2000]
    assert on_each(asking, asking) == (None, [0, 0])
    assert on_each(sized_pod("asking", 0), other)[0] is None, "nobody asks for cores"


def test_a_pod_counts_once_where_it_is_expected_and_the_table_shows_it():
    asking, other = sized_pod("asking"), sized_pod("other", priority=1)
    taken, one_by_one = on_each(asking, other, sized_pod("same", priority=1), expected=[(other, "large")])
    assert taken == one_by_one == [1000, 2000]
    taken, one_by_one = on_each(sized_pod("asking", priority=2), other, expected=[(other, "large")])
    assert taken == one_by_one == [1000, 1000]


def test_of_very_many_kinds_the_rarest_count_on_each_node():
    kinds = [sized_pod(f"p{number}", 0.1) for number in range(assumed.MOST_KINDS)]
    pairs = [replace(each, uid=f"{each.uid}-{which}") for each in kinds for which in "ab"]
    assert on_each(sized_pod("asking"), sized_pod("big", 4), *pairs)[0] == [8000, 8000]
    assert on_each(sized_pod("asking"), *pairs[2:], sized_pod("big", 4))[0] == [7800, 3800]


@pytest.mark.parametrize("kinds", [assumed.MOST_KINDS, assumed.MOST_KINDS + 5])
def test_no_sum_is_larger_than_arrays_can_hold(kinds):
    node, asking = replace(sized(), allocatable={"cpu": LARGEST, "memory": 2**40, "pods": 10}), sized_pod("asking")
    absurd = [replace(sized_pod(f"p{each}"), request={"cpu": LARGEST - each, "pods": 1}) for each in range(kinds)]
    taken = assumed.at_most_on_each(seen(node).table, {"n1": 0}, absurd, asking, {})
    assert 0.9 * LARGEST < taken["cpu"][0] <= LARGEST


@pytest.mark.parametrize("rare", [False, True], ids=["by node", "among all others"])
def test_who_requests_as_much_as_any_node_can_list_leaves_nothing_there(rare):
    node, asking = replace(sized(), allocatable={"cpu": LARGEST, "pods": 99}), sized_pod("asking")
    absurd = replace(sized_pod("absurd"), request={"cpu": LARGEST, "pods": 1})
    kinds = [sized_pod(f"p{number}", 0.1) for number in range(assumed.MOST_KINDS)] if rare else []
    pairs = [replace(each, uid=f"{each.uid}-{which}") for each in kinds for which in "ab"]
    taken = assumed.at_most_on_each(seen(node).table, {"n1": 0}, [*pairs, absurd], asking, {})
    assert taken["cpu"].tolist() == [LARGEST]


def test_no_more_than_some_kinds_are_remembered():
    takers = {}
    for number in range(2 * assumed._MOST_TAKERS):
        on_each(sized_pod("asking"), sized_pod(f"p{number}"), takers=takers)
        assert 0 < len(takers) <= assumed._MOST_TAKERS
