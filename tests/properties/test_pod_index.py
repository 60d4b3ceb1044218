"""Whom a selector selects, and who keeps whom away, kept by difference: as if all pods were gone over each time."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from policy.nodes import pod_demands
from policy.nodes.table import NodeTable
from policy.objects.constraints import UNCONSTRAINED, PodTerm, Requirement, Selector, matches, steps
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING

OFTEN = settings(max_examples=2 * settings().max_examples)
UIDS, NODES, KEYS, VALUES, NAMESPACES = ("u1", "u2", "u3", "u4"), ("n1", "n2", "n3"), "ab", "xyz", "pq"


def some(*values):
    return st.sampled_from(values)


labels = st.dictionaries(some(*KEYS), some(*VALUES))
requirements = st.builds(
    lambda key, operator, values: Requirement(key, operator, tuple(sorted(values)) if operator.endswith("In") else ()),
    some(*KEYS),
    some("In", "NotIn", "Exists", "DoesNotExist"),
    st.sets(some(*VALUES), min_size=1, max_size=2),
)
selectors = st.none() | st.lists(requirements, max_size=3).map(lambda each: Selector(tuple(each)))
reaches = st.none() | st.frozensets(some(*NAMESPACES), min_size=1)
terms = st.builds(PodTerm, selectors, some("host", "nowhere"), reaches)
apart = st.lists(terms, max_size=2).map(lambda each: replace(UNCONSTRAINED, anti_affinity=tuple(each)))
pods = st.builds(
    lambda uid, labels, constraints, terminating, created: Pod(
        uid,
        NAMESPACES[UIDS.index(uid) % 2],
        uid,
        NOTHING,
        labels=labels,
        constraints=constraints,
        terminating=terminating,
        created=float(created),
    ),
    some(*UIDS),
    labels,
    apart,
    st.booleans(),
    st.integers(0, 3),
)
changes = st.lists(
    st.one_of(
        st.tuples(some("node", "no node"), some(*NODES)),
        st.tuples(some("stand", "expect"), st.tuples(pods, some(*NODES))),
        st.tuples(some("wait"), pods),
        st.tuples(some("remove", "wait no more"), some(*UIDS)),
    ),
    max_size=25,
)


class World:
    """A table, and the same written down as plainly as possible."""

    def __init__(self):
        self.table, self.nodes, self.placed, self.waiting = NodeTable(), set(), {}, {}

    def change(self, kind, what):
        table = self.table
        match kind:
            case "node":
                table.upsert_node(Node(what, NOTHING, {"host": what}))
                self.nodes.add(what)
            case "no node":
                table.delete_node(what)
                self.nodes.discard(what)
            case "stand" | "expect":
                pod, name = what
                pod = replace(pod, node=name) if kind == "stand" else pod
                table.add(pod, name)
                self.placed[pod.uid] = (pod, name)
            case "wait":
                table.wait(what)
                self.waiting[what.uid] = what
            case "remove":
                table.remove(what)
                self.placed.pop(what, None)
            case _:
                table.wait_no_more(what)
                self.waiting.pop(what, None)

    @property
    def known(self):
        return [pod for pod, name in self.placed.values() if name in self.nodes]


def world_of(steps):
    world = World()
    for step in steps:
        world.change(*step)
    return world


@OFTEN
@given(changes, st.lists(st.tuples(selectors, reaches), min_size=1, max_size=4))
def test_a_selector_selects_whom_it_selects_of_all_pods_one_by_one(steps, questions):
    world = World()
    for step in [*steps, ("remove", "nobody")]:
        world.change(*step)
        index = world.table.index
        for selector, reach in questions:
            chosen = index.selected(selector, reach)
            found = {uid for uid, slot in index.slots.items() if chosen[slot]}
            fellows = [pod for pod in world.known if reach is None or pod.namespace in reach]
            assert found == {pod.uid for pod in fellows if matches(selector, pod.labels)}
            assert int(chosen.sum()) == len(found)
        for pod, name in world.placed.values():
            slot = index.slots[pod.uid]
            assert index.stands[slot] == bool(pod.node)
            assert index.terminating[slot] == pod.terminating
            assert index.rows[slot] == world.table.rows.get(name, -1)


@OFTEN
@given(changes, labels, some(*NAMESPACES))
def test_a_pod_is_kept_away_by_the_terms_that_select_it_of_all_pods_one_by_one(steps, labels, namespace):
    world = world_of(steps)
    asker = Pod("asker", namespace, "asker", NOTHING, labels=labels)
    found = Counter(
        (term, uid)
        for term, kinds in world.table.demanding.keeping_away(asker)
        for kind in kinds
        for uid in kind.placed
    )
    expected = {
        (term, pod.uid)
        for pod, _ in world.placed.values()
        for term in pod.constraints.anti_affinity
        if (term.namespaces is None or namespace in term.namespaces) and matches(term.selector, labels)
    }
    assert found == Counter(expected)
    keys = {
        requirement.key
        for pod, _ in world.placed.values()
        for term in pod.constraints.anti_affinity
        if term.selector and (term.namespaces is None or namespace in term.namespaces)
        for requirement in term.selector.requirements
    }
    assert world.table.demanding.keys_about(namespace) == keys


@OFTEN
@given(changes, st.integers(0, 120))
def test_the_oldest_kinds_that_a_namespace_has_room_for_are_judged(steps_taken, most):
    """What is kept by difference is a prefix of the kinds by age, as long as the budget allows, and no longer."""
    before, pod_demands.MOST_IN_NAMESPACE = pod_demands.MOST_IN_NAMESPACE, most
    try:
        world = world_of(steps_taken)
    finally:
        pod_demands.MOST_IN_NAMESPACE = before
    here = {pod.uid: pod for pod in world.waiting.values()}
    of_kinds = [*here.values(), *(pod for pod, _ in world.placed.values())]
    for namespace in NAMESPACES:
        known = world.table.demanding._namespaces.get(namespace)
        demands = {pod.constraints.anti_affinity for pod in of_kinds if pod.namespace == namespace} - {()}
        kinds = known.kinds if known else []
        assert {kind.apart for kind in kinds} == demands
        assert [kind.since for kind in kinds] == sorted(kind.since for kind in kinds)
        left, judged = most, []
        for kind in kinds:
            left -= sum(steps(t) * (1 if t.namespaces == frozenset((namespace,)) else 10) for t in kind.apart)
            judged.append(left >= 0)
        assert [kind.judged for kind in kinds] == judged
    for pod in here.values():
        beyond = pod.uid in world.table.demanding.unjudged().get(pod.namespace, ())
        assert beyond != world.table.demanding.is_judged(pod)
