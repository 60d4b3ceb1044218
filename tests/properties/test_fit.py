"""Where a pod fits, in clusters that nobody thought of: compared with the scheduler's filters, one by one."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policy.nodes.fit import fits, fits_if_empty, fits_if_empty_on, fits_on
from policy.nodes.table import NodeTable
from policy.objects.constraints import UNCONSTRAINED, Constraints
from policy.objects.node import Node
from policy.objects.pod import Pod
from tests.properties.by_chance import node_of, pod_of
from tests.properties.scheduler_filters import Cluster, is_wanted, places
from tests.worlds.objects import NODES

OFTEN = settings(max_examples=4 * settings().max_examples)
ELSEWHERE = "unknown"  # a node that pods are on, but that is not there (any more)


def some(*values):
    return st.sampled_from(values)


numbers = st.integers(0, 2**20)
pods = numbers.map(lambda number: pod_of("p", number))
nodes = st.dictionaries(some(*NODES), numbers, min_size=1)
places_of_pods = st.lists(st.tuples(numbers, some(*NODES, ELSEWHERE)), max_size=6)


@st.composite
def clusters(draw, *, nominated: bool = False) -> Cluster:
    standing = [(pod_of(f"s{i}", number), at) for i, (number, at) in enumerate(draw(places_of_pods))]
    coming = [(pod_of(f"c{i}", number), at) for i, (number, at) in enumerate(draw(places_of_pods) if nominated else ())]
    return Cluster(
        {name: node_of(name, number) for name, number in draw(nodes).items()},
        [(replace(pod, node=name), name) for pod, name in standing],
        coming,
    )


def table_of(cluster: Cluster) -> NodeTable:
    table = NodeTable()
    for node in cluster.nodes.values():
        table.upsert_node(node)
    for pod, _ in cluster.standing:
        table.add(pod)
    for pod, name in cluster.nominated:
        table.add(pod, name)
    return table


def named(table: NodeTable, mask) -> set[str]:
    return {name for name, answer in zip(table.names, mask, strict=True) if answer}


@OFTEN
@given(clusters(), pods)
def test_a_pod_fits_exactly_where_the_scheduler_would_place_it(cluster, pod):
    table = table_of(cluster)
    expected = {name for name in cluster.nodes if places(cluster, pod, name)}
    assert named(table, fits(table, pod)) == expected
    assert {name for name in cluster.nodes if fits_on(table, pod, name, ())} == expected


@OFTEN
@given(clusters(), pods, st.data())
def test_with_some_pods_gone_it_fits_where_the_scheduler_would_place_it_then(cluster, pod, data):
    table = table_of(cluster)
    gone = data.draw(st.sets(some("s0", "s1", "s2", "s3", "s4", "s5")))
    later = cluster.without(gone)
    expected = {name for name in cluster.nodes if places(later, pod, name)}
    assert {name for name in cluster.nodes if fits_on(table, pod, name, gone)} == expected
    assert {name for name in cluster.nodes if fits_on(table, pod, name, list(gone) * 2)} == expected


@OFTEN
@given(clusters(nominated=True), pods, st.sets(some("s0", "s1", "c0", "c1")))
def test_with_pods_nominated_it_fits_only_where_the_scheduler_would_place_it(cluster, pod, gone):
    table = table_of(cluster)
    for without in (set(), gone):
        later = cluster.without(without)
        chosen = {name for name in cluster.nodes if fits_on(table, pod, name, without)}
        assert chosen <= {name for name in cluster.nodes if places(later, pod, name)}
        assert named(table_of(later), fits(table_of(later), pod)) == chosen
    assert named(table, fits(table, pod)) == {name for name in cluster.nodes if fits_on(table, pod, name, ())}


@OFTEN
@given(clusters(nominated=True))
def test_a_pod_that_is_in_the_table_fits_as_if_it_were_not(cluster):
    table = table_of(cluster)
    for pod, _ in cluster.standing + cluster.nominated:
        rest = table_of(cluster.without({pod.uid}))
        assert named(table, fits(table, pod)) == named(rest, fits(rest, pod))
        assert all(fits_on(table, pod, name, ()) == fits_on(rest, pod, name, ()) for name in NODES)


@OFTEN
@given(clusters(nominated=True), pods)
def test_a_node_is_suitable_by_its_own_conditions_and_size_alone(cluster, pod):
    table = table_of(cluster)
    expected = {
        name
        for name, node in cluster.nodes.items()
        if is_wanted(node, pod) and all(node.allocatable.get(key, 0) >= amount for key, amount in pod.request.items())
    }
    assert named(table, fits_if_empty(table, pod)) == expected
    assert {name for name in NODES if fits_if_empty_on(table, pod, name)} == expected
    assert named(table, fits(table, pod)) <= expected


AMOUNTS = st.integers(0, 12) | st.integers(0, 2**80) | some(2**63 - 1, 2**63, 2**63 - 2)


@OFTEN
@given(
    st.lists(st.dictionaries(some("cpu", "gpu", "tape"), AMOUNTS), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.dictionaries(some("cpu", "gpu"), AMOUNTS)), max_size=6),
    st.dictionaries(some("cpu", "gpu", "disc"), AMOUNTS),
    st.sets(st.integers(0, 5)),
)
@example([{"cpu": 2**70}], [], {"cpu": 2**63}, set())
@example([{"cpu": 2**70}], [(0, {"cpu": 2**63})], {"cpu": 1}, {0})
def test_there_is_room_where_what_is_there_exceeds_what_is_used(sizes, used, request, gone):
    """The largest amount that Kubernetes knows is 2^63 - 1: nobody has more, and nobody who asks for more gets it."""
    table, pod, largest = NodeTable(), Pod("p", "x", "p", request), 2**63 - 1
    for row, size in enumerate(sizes):
        table.upsert_node(Node(f"n{row}", size))
    for number, (row, amounts) in enumerate(used):
        table.add(Pod(f"s{number}", "x", "s", amounts, node=f"n{row}"))

    def expected(without: set[int]) -> set[str]:
        return {
            f"n{row}"
            for row, size in enumerate(sizes)
            if all(
                amount == 0
                or amount
                + sum(
                    given.get(key, 0) for number, (at, given) in enumerate(used) if at == row and number not in without
                )
                <= min(size.get(key, 0), largest)
                for key, amount in request.items()
            )
        }

    assert named(table, fits(table, pod)) == expected(set())
    uids = [f"s{number}" for number in gone]
    assert {name for name in table.names if fits_on(table, pod, name, uids)} == expected(gone)


@OFTEN
@given(clusters(nominated=True), pods, st.data())
def test_one_pod_more_that_is_gone_never_takes_room_away(cluster, pod, data):
    table, pod = table_of(cluster), replace(pod, constraints=UNCONSTRAINED)
    for other, _ in cluster.standing + cluster.nominated:  # room alone: nobody keeps anybody away
        table.add(
            replace(other, constraints=UNCONSTRAINED),
            next(n for p, n in cluster.nominated + cluster.standing if p is other),
        )
    order = data.draw(st.permutations([other.uid for other, _ in cluster.standing + cluster.nominated]))
    for name in cluster.nodes:
        answers = [fits_on(table, pod, name, order[:number]) for number in range(len(order) + 1)]
        assert answers == sorted(answers)


NAMESPACES = {"s0": "a", "s1": "a", "s2": "b"}
"""A pod never changes its namespace, whatever else of it changes."""
seen_nodes = st.builds(node_of, some(*NODES), numbers)
seen_pods = st.builds(
    lambda uid, number: replace(pod_of(uid, number), namespace=NAMESPACES[uid]), some(*NAMESPACES), numbers
)
changes = st.one_of(
    st.tuples(some("node"), seen_nodes),
    st.tuples(some("delete"), some(*NODES)),
    st.tuples(some("stand"), st.tuples(seen_pods, some(*NODES))),
    st.tuples(some("expect"), st.tuples(seen_pods, some(*NODES, ""))),
    st.tuples(some("finish"), seen_pods),
    st.tuples(some("remove"), some("s0", "s1", "s2")),
)


@OFTEN
@given(st.lists(changes, max_size=14), pods, numbers.map(lambda number: pod_of("q", number)))
def test_a_table_that_has_changed_step_by_step_is_as_one_that_is_built_anew(steps, pod, other):
    table, known, stands, expected = NodeTable(), {}, {}, {}
    table.hosts_of({pod.namespace})
    for kind, what in steps:
        match kind:
            case "node":
                table.upsert_node(what)
                known[what.name] = what
            case "delete":
                table.delete_node(what)
                known.pop(what, None)
            case "remove":
                table.remove(what)
                stands.pop(what, None)
                expected.pop(what, None)
            case _:
                seen, name = what if kind in ("stand", "expect") else (replace(what, finished=True), "n1")
                stands.pop(seen.uid, None)
                expected.pop(seen.uid, None)
                if kind == "expect":
                    table.add(seen, name or None)
                    if name:
                        expected[seen.uid] = (seen, name)
                else:
                    table.add(replace(seen, node=name))
                    if kind == "stand":
                        stands[seen.uid] = (replace(seen, node=name), name)
        anew = table_of(Cluster(known, list(stands.values()), list(expected.values())))
        assert_alike(table, anew, pod, other)


def assert_alike(table: NodeTable, anew: NodeTable, *askers: Pod) -> None:
    assert sorted(table.names) == sorted(anew.names)
    assert {name: row for row, name in enumerate(table.names)} == table.rows
    for array in ("allocatable", "used", "free"):
        assert amounts_of(table, array, anew.columns) == amounts_of(anew, array, anew.columns)
    assert all(table.pods_on(name) == anew.pods_on(name) for name in NODES)
    assert set(table.expected) == set(anew.expected)
    for namespaces in ({pod.namespace for pod in askers[:1]}, {pod.namespace for pod in askers[1:]}):
        there = {name for name in NODES if {pod.namespace for pod in anew.pods_on(name).values()} & namespaces}
        assert table.hosts_of(namespaces) & set(NODES) == there
    for pod in askers:
        assert named(table, fits(table, pod)) == named(anew, fits(anew, pod))
        assert named(table, fits_if_empty(table, pod)) == named(anew, fits_if_empty(anew, pod))
        assert all(fits_on(table, pod, name, ("s1",)) == fits_on(anew, pod, name, ("s1",)) for name in NODES)


def amounts_of(table: NodeTable, array: str, resources: Iterable[str]) -> dict[tuple[str, str], int]:
    """Of these resources, which some node has: there may be columns left of what nodes had before."""
    amounts = getattr(table, array)
    cells = ((name, key) for name in table.names for key in resources)
    found = {(name, key): int(amounts[table.rows[name], table.columns[key]]) for name, key in cells}
    return {cell: amount for cell, amount in found.items() if amount}


@pytest.mark.parametrize("rule", ["affinity", "anti_affinity", "spread", "host_ports", "node_terms", "tolerations"])
def test_the_pods_that_are_tried_put_every_rule_to_use(rule):
    """Pods that a rule never forbids anything would prove nothing of it."""
    chance, seen = random.Random(rule), set()
    for _ in range(500):
        pod = pod_of("p", chance.randrange(2**20))
        table = table_of(Cluster({name: node_of(name, chance.randrange(2**20)) for name in NODES}, [], []))
        for number in range(4):
            table.add(replace(pod_of(f"s{number}", chance.randrange(2**20)), node=chance.choice(NODES)))
        if getattr(pod.constraints, rule):
            alone = Constraints(**{rule: getattr(pod.constraints, rule)})
            seen.update(fits(table, replace(pod, request={}, constraints=alone)).tolist())
        if len(seen) == 2:
            break
    assert seen == {True, False}
