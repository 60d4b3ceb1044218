"""The table of nodes and pods: it changes by small steps, and its answers change with it."""

from policy.nodes.tolerations import ALL
from policy.objects.constraints import Constraints, HostPort, NodeTerm, Requirement, Taint, Toleration
from tests.unit.given import pod
from tests.unit.given_nodes import HOSTNAME, node, on, spread, table_of, term, wanting, where, where_suitable, zoned

WEB = {"app": "web"}


def amounts_of(table, array) -> dict[str, dict[str, int]]:
    return {
        name: {resource: int(array[row, column]) for resource, column in table.columns.items() if array[row, column]}
        for name, row in table.rows.items()
    }


def test_rows_show_what_nodes_have_and_pods_use():
    table = table_of(node("n1", size={"gpu": 2}), node("n2"), pod("a", request={"cpu": 5, "tape": 1}, node="n1"))
    assert table.names == ["n1", "n2"]
    assert table.rows == {"n1": 0, "n2": 1}
    assert amounts_of(table, table.allocatable) == {
        "n1": {"cpu": 4000, "pods": 10, "gpu": 2},
        "n2": {"cpu": 4000, "pods": 10},
    }
    assert amounts_of(table, table.used) == {"n1": {"cpu": 5000, "pods": 1}, "n2": {}}
    assert amounts_of(table, table.free)["n1"] == {"cpu": -1000, "pods": 9, "gpu": 2}


def test_a_resource_takes_a_column_in_the_table_only_once_a_node_has_it():
    table = table_of(node("n1"), *(pod(f"p{i}", request={"cpu": 1, f"r{i}": i}, node="n1") for i in range(1, 100)))
    assert table.columns.keys() == table.totals().keys() == {"cpu", "pods"}
    table.upsert_node(node("n2", size={"r7": 1}))
    assert amounts_of(table, table.used) == {"n1": {"cpu": 99_000, "pods": 99, "r7": 7}, "n2": {}}
    for i in range(1, 100):
        table.remove(f"p{i}")
    assert table.site("n1").used == {}
    assert amounts_of(table, table.used) == {"n1": {}, "n2": {}}


def test_pods_seen_before_their_node_count_when_it_comes():
    table = table_of(pod("a", request={"cpu": 3}, node="n1"))
    assert table.names == []
    assert set(table.pods_on("n1")) == {"a"}
    table.upsert_node(node("n1"))
    assert amounts_of(table, table.used) == {"n1": {"cpu": 3000, "pods": 1}}
    assert where(table, pod("p", request={"cpu": 2})) == set()


def test_pods_of_a_node_that_is_gone_count_again_when_it_comes_back():
    table = table_of(node("n1"), node("n2"), pod("a", request={"cpu": 3}, node="n1"), pod("b", node="n2"))
    table.delete_node("n1")
    assert (table.names, table.rows) == (["n2"], {"n2": 0})
    assert amounts_of(table, table.used) == {"n2": {"cpu": 1000, "pods": 1}}
    table.upsert_node(node("n1"))
    assert amounts_of(table, table.used)["n1"] == {"cpu": 3000, "pods": 1}
    assert table.node("n1") == node("n1")


def test_pods_on_nodes_that_are_unknown_are_nowhere():
    table = table_of(
        *zoned(n1="a"),
        on("ghost", labels=WEB, constraints=Constraints(host_ports=(HostPort(80),), anti_affinity=(term(app="x"),))),
    )
    assert where(table, wanting(affinity=(term(app="web"),))) == set()
    assert where(table, wanting(labels={"app": "x"}, host_ports=(HostPort(80),))) == {"n1"}
    assert where(table, wanting(labels=WEB, spread=(spread(),))) == {"n1"}


def test_the_last_row_takes_the_place_of_one_that_is_gone():
    table = table_of(*(node(f"n{i}", size={"cpu": i}) for i in range(4)), pod("a", node="n3"))
    table.delete_node("n1")
    assert table.names == ["n0", "n3", "n2"]
    assert {name: row for row, name in enumerate(table.names)} == table.rows
    assert amounts_of(table, table.allocatable)["n3"]["cpu"] == 3000
    table.upsert_node(node("n9", size={"cpu": 0}))
    assert amounts_of(table, table.allocatable)["n9"] == {"pods": 10}
    assert amounts_of(table, table.used)["n9"] == {}


def test_a_node_that_is_unknown_or_empty_leaves_nothing_behind():
    table = table_of(node("n1"), on("n2", "a"))
    table.delete_node("nowhere")
    table.delete_node("n2")
    table.delete_node("n1")
    table.remove("a")
    table.remove("nobody")
    assert table.names == []
    assert table.site("n1") is None
    assert table.site("n2") is None
    assert table.pods_on("n1") == {}


def test_a_pod_seen_twice_counts_once():
    table = table_of(node())
    for _ in range(2):
        table.add(pod("a", node="n1"))
    assert amounts_of(table, table.used) == {"n1": {"cpu": 1000, "pods": 1}}


def test_a_pod_that_changes_is_replaced():
    table = table_of(node("n1"), node("n2"), pod("a", node="n1"))
    table.add(pod("a", request={"cpu": 2}, node="n1"))
    assert amounts_of(table, table.used) == {"n1": {"cpu": 2000, "pods": 1}, "n2": {}}
    table.add(pod("a", request={"cpu": 2}, node="n2"))
    assert amounts_of(table, table.used) == {"n1": {}, "n2": {"cpu": 2000, "pods": 1}}
    assert table.pods_on("n1") == {}


def test_a_pod_that_has_finished_or_is_expected_nowhere_any_more_is_removed():
    table = table_of(node(), pod("a", node="n1"))
    table.add(pod("b"), "n1")
    table.add(pod("a", node="n1", finished=True))
    table.add(pod("b"))
    assert amounts_of(table, table.used) == {"n1": {}}


def test_a_pod_that_was_expected_on_one_node_and_stands_on_another_is_there_only():
    table = table_of(node("n1"), node("n2"))
    table.add(pod("a"), "n1")
    table.add(pod("a", node="n2"), "n1")
    assert amounts_of(table, table.used) == {"n1": {}, "n2": {"cpu": 1000, "pods": 1}}
    assert table.expected == {}


def test_what_is_new_of_a_pod_is_seen_even_if_it_does_not_matter():
    table = table_of(node(), pod("a", node="n1"))
    table.add(pod("a", node="n1", version=7))
    assert table.pods_on("n1")["a"].version == 7


def test_the_table_grows():
    table = table_of(*(node(f"n{i}", size={f"r{i % 20}": i}) for i in range(300)))
    table.add(pod("a", request={f"r{i}": i for i in range(20)}, node="n299"))
    assert amounts_of(table, table.allocatable)["n250"] == {"cpu": 4000, "pods": 10, "r10": 250}
    assert amounts_of(table, table.used)["n299"] == {f"r{i}": i for i in range(1, 20)} | {"pods": 1}
    assert where(table, pod("p", request={"r19": 280})) == {"n299"}
    assert where(table, pod("p", request={"r19": 281})) == set()


def test_the_room_of_all_nodes_is_that_of_a_node_as_it_is_now():
    table = table_of(node(size={"cpu": 1}))
    assert table.room(ALL) == {"cpu": 1000, "pods": 10}
    table.upsert_node(node(size={"cpu": 1, "gpu": 8}))
    assert table.room(ALL) == {"cpu": 1000, "pods": 10, "gpu": 8}


def test_a_node_that_shrinks_or_names_less_has_less():
    table = table_of(node(size={"gpu": 2}))
    assert where(table, pod("p", request={"gpu": 2})) == {"n1"}
    table.upsert_node(node(size={"cpu": 1}))
    assert amounts_of(table, table.allocatable) == {"n1": {"cpu": 1000, "pods": 10}}
    assert where(table, pod("p", request={"gpu": 1})) == set()


def test_answers_change_with_the_labels_taints_and_state_of_nodes():
    table, picky = table_of(node("n1"), node("n2")), wanting(node_selector=(("disk", "ssd"),))
    assert where_suitable(table, picky) == set()
    table.upsert_node(node("n2", labels={"disk": "ssd"}))
    assert where_suitable(table, picky) == {"n2"}
    table.upsert_node(node("n2", labels={"disk": "ssd"}, taints=(Taint("a", "", "NoSchedule"),)))
    assert where_suitable(table, picky) == set()
    table.upsert_node(node("n2", labels={"disk": "ssd"}))
    assert where_suitable(table, picky) == {"n2"}
    table.upsert_node(node("n2", labels={"disk": "ssd"}, unschedulable=True))
    assert where_suitable(table, picky) == set()
    table.upsert_node(node("n2", labels={"disk": "ssd"}))
    table.upsert_node(node("n3", labels={"disk": "ssd"}))
    assert where_suitable(table, picky) == {"n2", "n3"}
    table.delete_node("n2")
    assert where_suitable(table, picky) == {"n3"}


def test_answers_change_with_the_pods_that_they_depend_on():
    table, asker = table_of(*zoned(n1="a", n2="b")), wanting(affinity=(term(app="web"),))
    assert where(table, asker) == set()
    table.add(on("n1", "first", labels=WEB))
    assert where(table, asker) == {"n1"}
    table.remove("first")
    table.add(on("n1", "web"))
    assert where(table, asker) == set()
    table.add(on("n1", "web", labels=WEB))
    assert where(table, asker) == {"n1"}
    table.add(on("n2", "web", labels=WEB))
    assert where(table, asker) == {"n2"}
    table.upsert_node(node("n1", labels={"zone": "b"}))
    assert where(table, asker) == {"n1", "n2"}
    table.remove("web")
    assert where(table, asker) == set()


def test_answers_change_with_what_pods_demand_of_others():
    table, asker = table_of(node(), on("n1")), wanting(labels=WEB, host_ports=(HostPort(80),))
    for constraints in (
        Constraints(host_ports=(HostPort(80),)),
        Constraints(anti_affinity=(term(HOSTNAME, app="web"),)),
    ):
        table.add(on("n1", constraints=constraints))
        assert where(table, asker) == set()
        table.add(on("n1"))
        assert where(table, asker) == {"n1"}


def test_answers_change_with_how_important_a_pod_is_that_is_expected():
    table, asker = table_of(node()), pod("p", priority=1)
    for priority, fitting in ((0, {"n1"}), (1, set()), (0, {"n1"})):
        table.add(pod("coming", request={"cpu": 4}, priority=priority), "n1")
        assert where(table, asker) == fitting


def test_a_pod_that_starts_to_leave_is_not_counted_by_spreading_any_more():
    table, asker = table_of(*zoned(n1="a", n2="b"), on("n1", labels=WEB)), wanting(labels=WEB, spread=(spread(),))
    assert where(table, asker) == {"n2"}
    table.add(on("n1", labels=WEB, terminating=True))
    assert where(table, asker) == {"n1", "n2"}


def test_a_pod_that_asks_again_with_other_wishes_is_answered_anew():
    table = table_of(node("n1"), node("n2"))
    assert where(table, wanting(node_selector=((HOSTNAME, "n1"),))) == {"n1"}
    assert where(table, wanting(node_selector=((HOSTNAME, "n2"),))) == {"n2"}
    assert where(table, pod("p", request={"cpu": 9})) == set()


def test_a_pod_with_the_same_port_or_term_twice_leaves_cleanly():
    ports = (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"))
    twice = Constraints(host_ports=ports, anti_affinity=(term(app="web"), term(app="web")))
    table = table_of(*zoned(n1="a"), on("n1", "a", constraints=twice))
    asker = wanting(labels=WEB, host_ports=(HostPort(80),))
    assert where(table, asker) == set()
    table.remove("a")
    assert where(table, asker) == {"n1"}


def test_what_was_worked_out_does_not_pile_up():
    table = table_of(node(), node("n2", taints=(Taint("t", "9", "NoSchedule"),)))
    for number in range(2000):
        tolerations = (Toleration("t", "Equal", str(number % 900)),)
        choice = Constraints(node_selector=(), tolerations=tolerations)
        assert where(table, pod(f"p{number}", constraints=choice)) == ({"n1", "n2"} if number % 900 == 9 else {"n1"})
    assert len(table.memo) <= 256
    assert len(table.attributes.memo) <= 600


def test_requirements_are_judged_on_names_in_whatever_row():
    table = table_of(*(node(f"n{i}") for i in range(5)))
    table.delete_node("n0")
    chosen = Requirement(HOSTNAME, "In", ("n4", "n2"))
    assert where(table, wanting(affinity=())) == {"n1", "n2", "n3", "n4"}
    assert where(table, wanting(node_terms=(NodeTerm((chosen,)),))) == {"n2", "n4"}
