"""Whose turn it is among queues in a tree, and whose gates are opened in that order."""

import random

from policy.objects.queue import ROOT
from policy.queueing.queue_turns import QueueTurns
from tests.unit.given_gates import gate, ungated, waiting
from tests.unit.given_queues import queue, tree_of, world


def test_the_neediest_child_of_each_family_comes_first_from_the_root_down():
    shares = {"A": 0.5, "a1": 0.9, "a2": 0.1, "B": 0.4, "b1": 1.0, "c": 0.45}
    tree = tree_of({"A": ROOT, "a1": "A", "a2": "A", "B": ROOT, "b1": "B", "c": ROOT})
    turns = QueueTurns(tree, lambda name: (0, shares[name], name))
    for name in ("a1", "c", "b1", "a2"):
        turns.add(name)
    assert [turns.pop() for _ in range(4)] == ["b1", "c", "a2", "a1"]
    assert not turns


def test_turns_are_those_of_a_sort_whatever_changes():
    for seed in range(200):
        dice = random.Random(seed)
        parents = {"A": ROOT, "B": "A", "C": ROOT} | {name: dice.choice((ROOT, "A", "B", "C")) for name in "pqrstu"}
        shares, there = dict.fromkeys(parents, 0.0), set(dice.sample("pqrstu", 4))
        tree = tree_of(parents)
        turns = QueueTurns(tree, lambda name, shares=shares: (0, shares[name], name))
        for name in there:
            turns.add(name)
        for _ in range(30):
            if not there:
                break
            order = {name: [(shares[each], each) for each in (*reversed([*tree.above(name)]), name)] for name in there}
            expected = min(there, key=lambda name, order=order: order[name])
            assert turns.pop() == expected, seed
            there.discard(expected)
            for each in (expected, *tree.above(expected)):
                shares[each] += dice.random()
            if dice.random() < 0.8:
                there.add(expected)
                turns.add(expected)


def test_gates_are_opened_by_department_first():
    queues = queue("A"), queue("B"), *(queue(f"a{number}", parent="A") for number in range(3)), queue("b", parent="B")
    cluster = world(*queues, cpu=8)
    for name in ("a0", "a1", "a2", "b"):
        gate(cluster, f"{name}:{name}")
        for each in waiting(name, 8):
            cluster.upsert_pod(each, now=0)
    out = [uid.partition("-")[0] for uid in ungated(cluster)]
    assert out[:4] == ["a0", "b", "a1", "b"]
    assert sum(name == "b" for name in out) == 4
