"""Whether nodes have room for all pods of several shapes together."""

import pytest

from policy.nodes.room_for_all import has_room
from policy.objects.constraints import Constraints
from tests.unit.given import pod
from tests.unit.given_nodes import node, table_of


def of(cpu: int, **rest):
    """A pod of so many cores."""
    return pod(f"{cpu}-cores", request={"cpu": cpu, "pods": 1}, **rest)


def sized(*cores: int):
    """A table of nodes with so many cores each."""
    return table_of(*(node(f"n{at}", size={"cpu": each, "pods": 99}) for at, each in enumerate(cores)))


@pytest.mark.parametrize(
    ("cores", "wanted", "fits"),
    [
        ((4,), [(1, 4)], True),
        ((4,), [(1, 5)], False),
        ((3, 3), [(2, 3)], False),
        ((4,), [(3, 1), (1, 1)], True),
        ((4,), [(3, 1), (1, 2)], False),
        ((4, 2), [(1, 2), (4, 1)], True),
        ((2, 4), [(1, 2), (4, 1)], True),
        ((8, 8), [(2, 2), (6, 2)], True),
        ((8, 8), [(2, 3), (6, 2)], False),
        ((4,), [(1, 4), (4, 0)], True),
        ((4,), [], True),
    ],
)
def test_all_have_room_at_the_same_time_or_there_is_none(cores, wanted, fits):
    assert has_room(sized(*cores), [(of(cpu), count) for cpu, count in wanted]) is fits


def test_the_table_stays_as_it_is():
    table = sized(4, 4)
    before = table.free.copy()
    assert has_room(table, [(of(3), 2), (of(1), 2)])
    assert (table.free == before).all()


def test_each_shape_has_its_own_nodes():
    table = table_of(
        node("n1", size={"cpu": 4, "pods": 9}, labels={"zone": "a"}), node("n2", size={"cpu": 4, "pods": 9})
    )
    there = Constraints(node_selector=(("zone", "a"),))
    assert has_room(table, [(of(2, constraints=there), 2), (of(4), 1)])
    assert not has_room(table, [(of(2, constraints=there), 3), (of(1), 1)])


def test_the_largest_come_first_where_the_scarcest_would_take_their_places():
    table = table_of(
        node("n1", size={"cpu": 4, "gpu": 1, "pods": 9}),
        node("n2", size={"cpu": 5, "gpu": 1, "pods": 9}),
        node("n3", size={"cpu": 4, "pods": 9}),
        node("n4", size={"cpu": 0, "gpu": 99, "pods": 9}),
    )
    assert has_room(table, [(pod("s", request={"cpu": 1, "gpu": 1, "pods": 1}), 1), (of(4), 3)])


def test_a_shape_that_requests_what_no_node_has_has_no_room():
    table = sized(4)
    assert not has_room(table, [(of(1), 1), (pod("p", request={"hugepages-2Mi": 1, "pods": 1}), 1)])
