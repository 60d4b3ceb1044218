"""How much of what pods demand of other pods is judged, and who pays where that is too much."""

from dataclasses import replace

import pytest

from policy.nodes import pod_demands
from policy.nodes.fit import undecidable
from policy.objects.constraints import TOO_MANY_OF_NAMESPACE, Constraints, PodTerm, Requirement, Selector, Spread
from tests.unit.given import pod
from tests.unit.given_nodes import node, table_of, term, where

SENTENCE = f"Where the pod fits cannot be decided here: {TOO_MANY_OF_NAMESPACE}"
THREE_KINDS = 3 * 4


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """A namespace may have three kinds of pods with a term on one label of its own pods, of four steps each."""
    monkeypatch.setattr(pod_demands, "MOST_IN_NAMESPACE", THREE_KINDS)


def apart(number, namespace="a", created=None, **rest):
    """A pod of a kind of its own, as old as its number says, that keeps away from one application."""
    constraints = Constraints(anti_affinity=(term(app=f"web-{number}", namespaces=(namespace,)),))
    born = float(number if created is None else created)
    return pod(f"{namespace}-{number}", namespace, request={"cpu": 0}, created=born, constraints=constraints, **rest)


def waiting(*pods):
    table = table_of(node())
    for each in pods:
        table.wait(each)
    return table


def unjudged(table):
    return {uid for uids in table.demanding.unjudged().values() for uid in uids}


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (3, 0, 4, 2, 1)], ids=str)
def test_the_newest_of_a_namespace_exceed_its_budget_whatever_the_order_of_events(order):
    table = waiting(*(apart(number) for number in order))
    assert unjudged(table) == {"a-3", "a-4"}
    assert undecidable(table, apart(4)) == SENTENCE
    assert undecidable(table, apart(2)) == ""


def test_those_of_another_namespace_are_judged_as_before():
    table = waiting(*(apart(number) for number in range(9)), *(apart(number, "b", created=99) for number in range(3)))
    assert {uid[0] for uid in unjudged(table)} == {"a"}


def test_where_older_ones_go_the_next_are_judged():
    table = waiting(*(apart(number) for number in range(5)))
    table.wait_no_more("a-1")
    assert unjudged(table) == {"a-4"}
    table.wait_no_more("a-0")
    assert unjudged(table) == set()


def test_pods_with_the_same_demands_count_once():
    assert unjudged(waiting(*(replace(apart(0), uid=f"u{number}") for number in range(50)))) == set()


def test_a_pod_that_is_not_seen_yet_is_judged_where_there_is_room():
    table = waiting(apart(0), apart(1))
    assert undecidable(table, apart(2)) == ""
    table.wait(apart(3))
    assert undecidable(table, apart(4)) == SENTENCE
    assert undecidable(table, replace(apart(3), uid="alike")) == ""


@pytest.mark.parametrize(
    ("constraints", "cost"),
    [
        (Constraints(anti_affinity=(term(app="x"),)), 4),
        (Constraints(anti_affinity=(term(app="x", namespaces=("a", "b")),)), 50),
        (Constraints(anti_affinity=(term(app="x", namespaces=None),)), 30),
        (Constraints(affinity=(term(app="x", namespaces=None),)), 3),
        (Constraints(spread=(Spread("zone", 1, term(app="x").selector),)), 3),
        (Constraints(affinity=(PodTerm(None, "zone", None),)), 1),
        (Constraints(node_selector=(("zone", "a"),)), 0),
    ],
)
def test_terms_that_others_have_to_be_asked_about_count_ten_times(monkeypatch, constraints, cost):
    asker = pod("p", constraints=constraints)
    monkeypatch.setattr(pod_demands, "MOST_IN_NAMESPACE", cost)
    assert unjudged(waiting(asker)) == set()
    monkeypatch.setattr(pod_demands, "MOST_IN_NAMESPACE", cost - 1)
    assert unjudged(waiting(asker)) == ({"p"} if cost else set())


def test_what_is_not_judged_keeps_nobody_away_and_forbids_nothing():
    table = table_of(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}))
    web = pod("web", request={"cpu": 0}, labels={"app": "web-3"})
    for number in range(3):
        table.wait(apart(number))
    table.add(replace(apart(3), node="n1"))
    assert where(table, web) == {"n1", "n2"}
    table.add(replace(web, node="n2"))
    assert where(table, replace(apart(3), uid="alike")) == {"n1", "n2"}
    table.wait_no_more("a-0")
    assert where(table, web) == {"n2"}
    assert where(table, replace(apart(3), uid="alike")) == {"n1"}


def test_a_pod_is_asked_about_the_terms_alone_that_may_select_it(monkeypatch):
    monkeypatch.setattr(pod_demands, "MOST_IN_NAMESPACE", 10**6)
    table = table_of(node(labels={"zone": "a"}))
    for number in range(100):
        table.add(replace(apart(number, "evil"), node="n1"))
        everywhere = PodTerm(Selector((Requirement("app", "In", (f"x{number}",)),)), "zone", None)
        table.add(pod(f"e{number}", "evil", node="n1", constraints=Constraints(anti_affinity=(everywhere,))))
    asked = []
    monkeypatch.setattr(pod_demands, "matches", lambda *given: asked.append(given) or True)
    assert list(table.demanding.keeping_away(pod("p", labels={"app": "web-5", "tier": "x1"}))) == []
    assert asked == []
    assert len(list(table.demanding.keeping_away(pod("p", labels={"app": "x5"})))) == 1
    assert len(list(table.demanding.keeping_away(pod("p", "evil", labels={"app": "web-5"})))) == 1
