"""Which queue stands below which, and what each deserves there."""

import itertools

import pytest

from policy.objects.queue import ROOT
from policy.quota.queue_tree import MOST_LEVELS
from tests.unit.given import amounts
from tests.unit.given_queues import divisions, queue, tree_of

TABLE = [  # what queues say, what leaves ask for, and what is deserved of 16 cpu, in millicores
    (
        (queue("A"), queue("B"), queue("a1", 3, parent="A"), queue("a2", parent="A"), queue("b1", parent="B")),
        {"a1": 16, "a2": 16, "b1": 16},
        {"A": 8000, "a1": 6000, "a2": 2000, "B": 8000, "b1": 8000},
    ),
    (
        (queue("A"), queue("B"), queue("a1", 3, parent="A"), queue("a2", parent="A"), queue("b1", parent="B")),
        {"a1": 16, "a2": 16, "b1": 2},
        {"A": 14000, "a1": 10500, "a2": 3500, "B": 2000, "b1": 2000},
    ),
    (
        (
            *(queue("A"), queue("B"), queue("a1", 3, parent="A")),
            *(queue("a2", kept={"cpu": 4}, parent="A"), queue("b1", parent="B")),
        ),
        {"a1": 16, "a2": 16, "b1": 16},
        {"A": 8000, "a1": 4000, "a2": 4000, "B": 8000, "b1": 8000},
    ),
    (
        (
            *(queue("A", most={"cpu": 6}), queue("B"), queue("a1", 3, parent="A")),
            *(queue("a2", parent="A"), queue("b1", parent="B")),
        ),
        {"a1": 16, "a2": 16, "b1": 16},
        {"A": 6000, "a1": 4500, "a2": 1500, "B": 10000, "b1": 10000},
    ),
    (
        (
            *(queue("A", kept={"cpu": 10}), queue("B"), queue("a1", parent="A")),
            *(queue("a2", parent="A"), queue("b1", parent="B")),
        ),
        {"a1": 1, "a2": 2, "b1": 16},
        {"A": 10000, "a1": 1000, "a2": 2000, "B": 6000, "b1": 6000},
    ),
    (
        (
            *(queue("A", 2), queue("B"), queue("a", parent="A"), queue("b", parent="A")),
            *(queue("x", parent="a"), queue("y", 2, parent="a")),
        ),
        {"x": 16, "y": 16, "b": 16, "B": 16},
        {"A": 10667, "a": 5334, "x": 1778, "y": 3556, "b": 5333, "B": 5333},
    ),
    (
        (queue("A"), queue("B"), queue("a1", kept={"cpu": 9}, parent="A"), queue("a2", parent="A")),
        {"a1": 16, "a2": 16, "B": 16},
        {"A": 9000, "a1": 9000, "a2": 0, "B": 7000},
    ),
]


@pytest.mark.parametrize(("queues", "asked", "expected"), TABLE)
def test_the_table(queues, asked, expected):
    assert part(queues, asked) == expected


def part(queues, asked, total=16):
    requests = {name: amounts(cpu=amount) for name, amount in asked.items()}
    found = divisions(amounts(cpu=total), {each.name: each for each in queues}, requests)
    return {name: division.deserved.get("cpu", 0) for name, division in found.items()}


def test_guarantees_that_do_not_fit_into_the_parent_are_scaled_down_there():
    queues = (
        *(queue("A", most={"cpu": 6}), queue("B", kept={"cpu": 4})),
        *(queue("a1", kept={"cpu": 8}, parent="A"), queue("a2", kept={"cpu": 4}, parent="A")),
    )
    found = divisions(amounts(cpu=16), {each.name: each for each in queues}, {})
    kept = {name: each.guarantee.get("cpu", 0) for name, each in found.items()}
    assert kept == {"A": 6000, "a1": 4000, "a2": 2000, "B": 4000}


def test_a_child_may_use_what_its_parent_may_less_guarantees_of_siblings():
    queues = (
        *(queue("A", most={"cpu": 12}), queue("B", kept={"cpu": 6})),
        *(queue("a1", parent="A"), queue("a2", kept={"cpu": 3}, parent="A")),
    )
    found = divisions(amounts(cpu=16), {each.name: each for each in queues}, {})
    most = {name: each.real_capability["cpu"] for name, each in found.items()}
    assert most == {"A": 10000, "a1": 7000, "a2": 10000, "B": 13000}


def test_what_is_asked_of_a_queue_with_children_itself_counts_for_nothing():
    assert part((queue("A"), queue("a", parent="A"), queue("B")), {"A": 16, "a": 2, "B": 16}) == {
        "A": 2000,
        "a": 2000,
        "B": 14000,
    }


def test_whoever_names_no_parent_or_the_root_stands_below_the_root():
    tree = tree_of({"a": ROOT, "b": "a"})
    assert tree.children_of(ROOT) == ["a"]
    assert tree.children_of("a") == ["b"]
    assert list(tree.above("b")) == ["a"]
    assert not tree.invalid


BROKEN = [
    ({"a": "nobody"}, {"a"}),
    ({"a": "nobody", "b": "a", "c": ROOT}, {"a", "b"}),
    ({"a": "a"}, {"a"}),
    ({"a": "b", "b": "a", "c": "b", "d": ROOT}, {"a", "b", "c"}),
    ({str(level): str(level - 1) if level else ROOT for level in range(MOST_LEVELS)}, set()),
    ({str(level): str(level - 1) if level else ROOT for level in range(MOST_LEVELS + 2)}, {"8", "9"}),
    ({str(at): str((at + 1) % 30) for at in range(30)}, {str(at) for at in range(30)}),
]


@pytest.mark.parametrize(("parents", "invalid"), BROKEN)
def test_without_a_way_to_the_root_a_queue_is_invalid_and_right_below_it(parents, invalid):
    orders = [list(parents), list(reversed(parents)), sorted(parents, key=hash)]
    for order in orders:
        tree = tree_of({name: parents[name] for name in order})
        assert tree.invalid.keys() == invalid
        assert invalid <= set(tree.children_of(ROOT))
        assert not any(tree.has_children(name) for name in invalid)


def test_a_change_concerns_no_queue_that_is_too_deep_for_it():
    names = [str(number) for number in range(200)]
    tree = tree_of({})
    for name in reversed(names):
        assert len(tree.put(name, str(int(name) - 1) if name != "0" else ROOT)) <= MOST_LEVELS + 1
    assert tree.invalid.keys() == set(names[MOST_LEVELS:])
    assert len(tree.put("0", "199")) <= MOST_LEVELS + 2
    assert tree.invalid.keys() == set(names)
    tree.put("0", ROOT)
    tree.put("100", ROOT)
    assert tree.invalid.keys() == {*names[MOST_LEVELS:100], *names[100 + MOST_LEVELS :]}


@pytest.mark.slow
def test_in_whatever_order_queues_come_and_go_the_tree_is_what_they_say():
    steps = [("a", ROOT), ("b", "a"), ("c", "b"), ("b", "c"), ("a", None), ("b", "a"), ("a", "c"), ("c", ROOT)]
    seen = set()  # beginnings: what many orders have in common is looked at once
    for order in itertools.permutations(steps):
        tree, said = tree_of({}), {}
        for taken, (name, parent) in enumerate(order, start=1):
            before = None if order[:taken] in seen else places(tree, said)
            changed = tree.put(name, parent)
            said = {each: above for each, above in {**said, name: parent}.items() if above is not None}
            if before is None:
                continue
            seen.add(order[:taken])
            anew = tree_of(said)
            assert places(tree, said) == places(anew, said)
            assert tree.invalid == anew.invalid
            assert tree.shape == anew.shape
            after = places(tree, said)
            assert {each for each in before | after if before.get(each) != after.get(each)} <= changed


def places(tree, names):
    return {each: (list(tree.above(each)), tree.has_children(each), tree.invalid.get(each, "")) for each in names}
