"""What pods demand of each other's places: (anti-)affinity and spreading, as kube-scheduler's plugins decide it."""

import pytest

from policy.objects.constraints import Constraints, PodTerm, Requirement, Selector, Spread, Taint, Toleration
from tests.unit.given import pod
from tests.unit.given_nodes import HOSTNAME, labelled, node, on, spread, table_of, term, wanting, where, zoned

WEB = {"app": "web"}


# Anti-affinity of the pod


def test_a_pod_keeps_out_of_the_domain_of_pods_that_it_avoids():
    table = table_of(*zoned(n1="a", n2="a", n3="b", n4="-"), on("n1", labels=WEB))
    assert where(table, wanting(anti_affinity=(term(app="web"),))) == {"n3", "n4"}
    assert where(table, wanting(anti_affinity=(term(HOSTNAME, app="web"),))) == {"n2", "n3", "n4"}
    assert where(table, wanting(anti_affinity=(term(app="db"),))) == {"n1", "n2", "n3", "n4"}


def test_every_term_of_anti_affinity_forbids_by_itself():
    table = table_of(*zoned(n1="a", n2="b", n3="c"), on("n1", "w", labels=WEB), on("n2", "d", labels={"app": "db"}))
    assert where(table, wanting(anti_affinity=(term(app="web"), term(app="db")))) == {"n3"}


def test_a_pod_on_a_node_without_the_topology_key_is_avoided_by_nobody():
    table = table_of(*zoned(n1="-", n2="a"), on("n1", labels=WEB))
    assert where(table, wanting(anti_affinity=(term(app="web"),))) == {"n1", "n2"}


def test_a_pod_that_avoids_its_like_is_not_kept_out_by_itself():
    table = table_of(*zoned(n1="a"))
    asker = wanting(labels=WEB, anti_affinity=(term(app="web"),))
    assert where(table, asker) == {"n1"}
    table.add(asker, "n1")
    assert where(table, asker) == {"n1"}


@pytest.mark.parametrize(
    ("namespaces", "fitting"), [(("a",), {"n2"}), (("b",), {"n1"}), (("a", "b"), set()), (None, set())]
)
def test_a_term_speaks_of_pods_of_its_namespaces(namespaces, fitting):
    table = table_of(*zoned(n1="a", n2="b"), on("n1", "one", "a", labels=WEB), on("n2", "two", "b", labels=WEB))
    assert where(table, wanting(anti_affinity=(term(namespaces=namespaces, app="web"),))) == fitting


def test_pods_on_their_way_out_are_still_avoided():
    table = table_of(*zoned(n1="a"), on("n1", labels=WEB, terminating=True))
    assert where(table, wanting(anti_affinity=(term(app="web"),))) == set()


def test_the_domain_is_free_when_all_pods_that_the_pod_avoids_are_gone():
    table = table_of(*zoned(n1="a", n2="a", n3="b"), on("n1", "w1", labels=WEB), on("n2", "w2", labels=WEB))
    asker = wanting(anti_affinity=(term(app="web"),))
    assert where(table, asker, without={"w1"}) == {"n3"}
    assert where(table, asker, without={"w1", "w2"}) == {"n1", "n2", "n3"}


# Anti-affinity of those that are there


def test_pods_keep_those_that_they_avoid_out_of_their_domain():
    hermit = Constraints(anti_affinity=(term(app="web"),))
    table = table_of(*zoned(n1="a", n2="a", n3="b", n4="-"), on("n1", "hermit", constraints=hermit))
    assert where(table, wanting(labels=WEB)) == {"n3", "n4"}
    assert where(table, wanting(labels={"app": "db"})) == {"n1", "n2", "n3", "n4"}
    assert where(table, pod("p", "b", labels=WEB)) == {"n1", "n2", "n3", "n4"}
    assert where(table, wanting(labels=WEB), without={"hermit"}) == {"n1", "n2", "n3", "n4"}


def test_pods_of_all_namespaces_can_be_kept_away():
    hermit = Constraints(anti_affinity=(term(namespaces=None, app="web"),))
    table = table_of(*zoned(n1="a", n2="b"), on("n1", "hermit", constraints=hermit))
    assert where(table, pod("p", "somewhere", labels=WEB)) == {"n2"}


def test_pods_that_keep_others_away_do_so_until_the_last_is_gone():
    hermit = Constraints(anti_affinity=(term(app="web"),))
    table = table_of(*zoned(n1="a"), on("n1", "h1", constraints=hermit), on("n1", "h2", constraints=hermit))
    table.remove("h1")
    assert where(table, wanting(labels=WEB)) == set()
    table.remove("h2")
    assert where(table, wanting(labels=WEB)) == {"n1"}


def test_a_pod_that_is_expected_keeps_others_away_and_is_avoided():
    table = table_of(*zoned(n1="a", n2="b"))
    table.add(pod("coming", labels=WEB, constraints=Constraints(anti_affinity=(term(app="db"),))), "n1")
    assert where(table, wanting(labels={"app": "db"})) == {"n2"}
    assert where(table, wanting(anti_affinity=(term(app="web"),))) == {"n2"}


# Affinity


def test_a_pod_goes_to_the_domain_of_its_mates():
    table = table_of(*zoned(n1="a", n2="a", n3="b", n4="-"), on("n1", labels=WEB))
    assert where(table, wanting(affinity=(term(app="web"),))) == {"n1", "n2"}
    assert where(table, wanting(affinity=(term(HOSTNAME, app="web"),))) == {"n1"}
    assert where(table, wanting(affinity=(term(namespaces=("b",), app="web"),))) == set()
    assert where(table, wanting(affinity=(term(namespaces=None, app="web"),))) == {"n1", "n2"}


def test_a_pod_without_mates_fits_nowhere_unless_it_is_its_own_mate():
    table = table_of(*zoned(n1="a", n2="b", n3="-"))
    assert where(table, wanting(affinity=(term(app="web"),))) == set()
    assert where(table, wanting(affinity=(term(app="web"),), labels=WEB)) == {"n1", "n2"}
    assert where(table, wanting(affinity=(term(app="web"), term(app="db")), labels=WEB)) == set()


def test_mates_must_be_in_the_namespaces_of_every_term():
    table = table_of(*zoned(n1="a"), on("n1", "mate", "a", labels=WEB))
    near, far = term(app="web"), term(HOSTNAME, namespaces=("b",), app="web")
    assert where(table, wanting(affinity=(near, far), labels=WEB)) == set()
    assert where(table, wanting(affinity=(far,), labels=WEB)) == set()
    assert where(table, wanting(affinity=(near,), labels=WEB)) == {"n1"}


def test_the_second_of_a_kind_goes_where_the_first_is():
    table = table_of(*zoned(n1="a", n2="b"), on("n2", "first", labels=WEB))
    second = wanting(affinity=(term(app="web"),), labels=WEB)
    assert where(table, second) == {"n2"}
    assert where(table, second, without={"first"}) == {"n1", "n2"}


def test_mates_on_nodes_without_the_topology_key_are_none():
    table = table_of(*zoned(n1="a", n2="-"), on("n2", labels=WEB))
    assert where(table, wanting(affinity=(term(app="web"),))) == set()
    assert where(table, wanting(affinity=(term(app="web"),), labels=WEB)) == {"n1"}


def test_a_mate_that_lacks_one_of_the_keys_still_keeps_the_pod_from_being_the_first():
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "a", "rack": "1"})]
    table = table_of(*nodes, on("n1", "mate", labels=WEB))
    asker = wanting(affinity=(term("zone", app="web"), term("rack", app="web")), labels=WEB)
    assert where(table, asker) == set()
    assert where(table, asker, without={"mate"}) == {"n2"}


def test_one_pod_must_match_all_terms():
    terms = (term(app="web"), term(HOSTNAME, tier="front"))
    table = table_of(*zoned(n1="a", n2="a"), on("n1", "one", labels=WEB), on("n1", "two", labels={"tier": "front"}))
    assert where(table, wanting(affinity=terms)) == set()
    table.add(on("n1", "both", labels=WEB | {"tier": "front"}))
    assert where(table, wanting(affinity=terms)) == {"n1"}


def test_different_mates_may_satisfy_different_terms():
    both = WEB | {"tier": "front"}
    nodes = [
        node("n1", labels={"zone": "a", "rack": "1"}),
        node("n2", labels={"zone": "b", "rack": "2"}),
        node("n3", labels={"zone": "a", "rack": "2"}),
    ]
    table = table_of(*nodes, on("n1", "one", labels=both), on("n2", "two", labels=both))
    asker = wanting(affinity=(term("zone", app="web"), term("rack", tier="front")))
    assert where(table, asker) == {"n1", "n2", "n3"}
    assert where(table, asker, without={"two"}) == {"n1"}


def test_a_pod_does_not_fit_any_more_when_the_pod_that_it_needs_is_gone():
    table = table_of(*zoned(n1="a"), on("n1", "needed", labels=WEB))
    asker = wanting(affinity=(term(app="web"),))
    assert where(table, asker) == {"n1"}
    assert where(table, asker, without={"needed"}) == set()


def test_a_mate_on_its_way_out_is_a_mate():
    table = table_of(*zoned(n1="a"), on("n1", labels=WEB, terminating=True))
    assert where(table, wanting(affinity=(term(app="web"),))) == {"n1"}


def test_nobody_relies_on_a_pod_that_is_only_expected():
    table = table_of(*zoned(n1="a", n2="b"))
    table.add(pod("coming", labels=WEB), "n1")
    assert where(table, wanting(affinity=(term(app="web"),))) == set()
    assert where(table, wanting(affinity=(term(app="web"),), labels=WEB)) == {"n1"}
    table.add(on("n2", "there", labels=WEB))
    assert where(table, wanting(affinity=(term(app="web"),), labels=WEB)) == {"n2"}


def test_a_term_without_a_selector_selects_nobody():
    nobody = PodTerm(None, "zone", frozenset("a"))
    table = table_of(*zoned(n1="a"), on("n1", labels=WEB, constraints=Constraints(anti_affinity=(nobody,))))
    assert where(table, wanting(anti_affinity=(nobody,))) == {"n1"}
    assert where(table, wanting(affinity=(nobody,))) == set()


@pytest.mark.parametrize(
    ("requirement", "fitting"),
    [
        (Requirement("app", "NotIn", ("web",)), {"n2"}),
        (Requirement("app", "Exists"), {"n1"}),
        (Requirement("app", "DoesNotExist"), {"n2"}),
    ],
)
def test_selectors_of_pods_know_every_operator(requirement, fitting):
    table = table_of(*zoned(n1="a", n2="b"), on("n1", "one", labels=WEB), on("n2", "two"))
    assert where(table, wanting(affinity=(PodTerm(Selector((requirement,)), "zone", frozenset("a")),))) == fitting


# Spreading


def webs(**counts: int) -> list:
    """So many pods of the app on each node."""
    return [on(name, f"{name}-{number}", labels=WEB) for name, count in counts.items() for number in range(count)]


@pytest.mark.parametrize(
    ("counts", "most", "fitting"),
    [
        ({}, 1, {"n1", "n2", "n3"}),
        ({"n1": 1}, 1, {"n3"}),
        ({"n1": 1, "n3": 1}, 1, {"n1", "n2", "n3"}),
        ({"n1": 1, "n2": 1}, 1, {"n3"}),
        ({"n1": 1, "n2": 1}, 2, {"n3"}),
        ({"n1": 1, "n2": 1}, 3, {"n1", "n2", "n3"}),
        ({"n3": 3, "n1": 1}, 2, {"n1", "n2"}),
    ],
)
def test_no_domain_rises_above_the_least_by_more_than_the_skew(counts, most, fitting):
    table = table_of(*zoned(n1="a", n2="a", n3="b", n4="-"), *webs(**counts))
    assert where(table, wanting(labels=WEB, spread=(spread(most=most),))) == fitting


def test_a_pod_that_would_not_be_counted_itself_adds_nothing():
    table = table_of(*zoned(n1="a", n2="b"), *webs(n1=1))
    assert where(table, wanting(spread=(spread(),))) == {"n1", "n2"}
    table.add(on("n1", "more", labels=WEB))
    assert where(table, wanting(spread=(spread(),))) == {"n2"}


def test_only_living_pods_of_the_same_namespace_are_counted():
    table = table_of(*zoned(n1="a", n2="b"))
    table.add(on("n1", "foreign", "b", labels=WEB))
    table.add(on("n1", "dying", labels=WEB, terminating=True))
    table.add(on("n1", "different", labels={"app": "db"}))
    assert where(table, wanting(labels=WEB, spread=(spread(),))) == {"n1", "n2"}


def test_all_constraints_must_hold():
    table = table_of(*zoned(n1="a", n2="a", n3="b"), *webs(n1=1, n3=1))
    both = (spread(), spread(HOSTNAME))
    assert where(table, wanting(labels=WEB, spread=both)) == {"n2"}


def test_nodes_that_lack_the_key_of_any_constraint_count_for_none():
    nodes = [
        node("n1", labels={"zone": "a"}),
        node("n2", labels={"zone": "b"}),
        node("n3", labels={"zone": "b", "rack": "1"}),
    ]
    table = table_of(*nodes, *webs(n2=5))
    asker = wanting(labels=WEB, spread=(spread(), spread("rack", 9)))
    assert where(table, asker) == {"n3"}


def test_the_level_is_zero_while_there_are_fewer_domains_than_wanted():
    table = table_of(*zoned(n1="a", n2="b"), *webs(n1=1, n2=1))
    assert where(table, wanting(labels=WEB, spread=(spread(min_domains=2),))) == {"n1", "n2"}
    assert where(table, wanting(labels=WEB, spread=(spread(min_domains=3),))) == set()
    assert where(table, wanting(labels=WEB, spread=(spread(most=2, min_domains=3),))) == {"n1", "n2"}


def test_domains_the_pod_may_not_enter_count_only_if_node_affinity_is_ignored():
    table = table_of(*zoned(n1="a", n2="b", n3="c"), *webs(n1=1, n2=1))
    only = {"labels": WEB, "node_selector": ((HOSTNAME, "n1"),)}
    assert where(table, wanting(spread=(spread(),), **only)) == {"n1"}
    assert where(table, wanting(spread=(spread(honor_node_affinity=False),), **only)) == set()


def test_pods_on_nodes_it_may_not_enter_count_only_if_node_affinity_is_ignored():
    table = table_of(*zoned(n1="a", n2="a", n3="b"), *webs(n2=1))
    not_n2 = {"labels": WEB, "node_selector": (("rank", "1"),)}
    for name, zone in (("n1", "a"), ("n3", "b")):
        table.upsert_node(node(name, labels={"zone": zone, "rank": "1"}))
    assert where(table, wanting(spread=(spread(),), **not_n2)) == {"n1", "n3"}
    assert where(table, wanting(spread=(spread(honor_node_affinity=False),), **not_n2)) == {"n3"}


def test_domains_with_taints_count_unless_the_rule_honours_taints():
    tainted = node("n2", labels={"zone": "b"}, taints=(Taint("gpu", "", "NoSchedule"),))
    table = table_of(node("n1", labels={"zone": "a"}), tainted, *webs(n1=1))
    assert where(table, wanting(labels=WEB, spread=(spread(),))) == set()
    assert where(table, wanting(labels=WEB, spread=(spread(honor_taints=True),))) == {"n1"}
    tolerating = wanting(labels=WEB, spread=(spread(honor_taints=True),), tolerations=(Toleration("", "Exists"),))
    assert where(table, tolerating) == {"n2"}


def test_unschedulable_nodes_without_a_taint_count():
    table = table_of(
        node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}, unschedulable=True), *webs(n1=1)
    )
    assert where(table, wanting(labels=WEB, spread=(spread(honor_taints=True),))) == set()


def test_an_empty_selector_counts_nobody_but_the_pod():
    table = table_of(*zoned(n1="a", n2="b"), *webs(n1=5))
    assert where(table, wanting(labels=WEB, spread=(Spread("zone", 1, Selector()),))) == {"n1", "n2"}
    assert where(table, wanting(labels=WEB, spread=(Spread("zone", 0, Selector()),))) == set()
    assert where(table, wanting(labels=WEB, spread=(Spread("zone", 0, None),))) == {"n1", "n2"}


def test_pods_gone_lower_their_domain_and_the_level():
    table = table_of(*zoned(n1="a", n2="b"), *webs(n1=2, n2=1))
    asker = wanting(labels=WEB, spread=(spread(),))
    assert where(table, asker) == {"n2"}
    assert where(table, asker, without={"n1-0"}) == {"n1", "n2"}
    assert where(table, asker, without={"n1-0", "n1-1"}) == {"n1"}
    assert where(table, asker, without={"n2-0"}) == {"n2"}
    assert where(table, asker, without={"n1-0", "n2-0"}) == {"n2"}


def test_a_pod_that_is_expected_fills_its_domain_but_does_not_raise_the_level():
    table = table_of(*zoned(n1="a", n2="b"), *webs(n1=1))
    table.add(pod("coming", labels=WEB), "n2")
    assert where(table, wanting(labels=WEB, spread=(spread(),))) == set()
    table.add(on("n2", "coming", labels=WEB))
    assert where(table, wanting(labels=WEB, spread=(spread(),))) == {"n1", "n2"}


def test_a_pod_is_not_counted_against_itself():
    table = table_of(*zoned(n1="a", n2="b"), *webs(n1=1))
    itself = on("n1", "n1-0", labels=WEB, constraints=Constraints(spread=(spread(),)))
    assert where(table, itself) == {"n1", "n2"}


def test_an_empty_value_of_a_label_is_a_domain():
    table = table_of(node("n1", labels={"zone": ""}), node("n2", labels={"zone": "b"}), on("n1", labels=WEB))
    assert where(table, wanting(labels=WEB, spread=(spread(),))) == {"n2"}
    assert where(table, wanting(affinity=(term(app="web"),))) == {"n1"}


def test_labels_select_by_all_their_requirements():
    table = table_of(*zoned(n1="a", n2="b"), on("n1", labels=WEB), on("n2", "both", labels=WEB | {"tier": "front"}))
    both = PodTerm(labelled(app="web", tier="front"), "zone", frozenset("a"))
    assert where(table, wanting(affinity=(both,))) == {"n2"}
