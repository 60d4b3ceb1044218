"""Where a pod fits: room, the node's own conditions, ports. As kube-scheduler's plugins decide it."""

import pytest

from policy.nodes.fit import fits, fits_if_empty_on, fits_on, lacking_on, undecidable
from policy.objects.constraints import Constraints, HostPort, NodeTerm, Requirement, Taint, Toleration
from policy.objects.quantity import LARGEST
from tests.unit.given import pod
from tests.unit.given_nodes import node, on, table_of, wanting, where, where_suitable

GPU = "nvidia.com/gpu"


# Room


@pytest.mark.parametrize(("cores", "fitting"), [(1, True), (1.5, True), (1.501, False), (4, False)])
def test_a_pod_fits_where_what_it_requests_is_free(cores, fitting):
    table = table_of(node(), pod("a", request={"cpu": 2}, node="n1"), pod("b", request={"cpu": 0.5}, node="n1"))
    assert bool(where(table, pod("p", request={"cpu": cores}))) == fitting


def test_every_place_for_a_pod_may_be_taken_however_little_the_pods_request():
    table = table_of(node(size={"pods": 2}), on("n1", "a"))
    assert where(table, pod("p", request={})) == {"n1"}
    table.add(on("n1", "b"))
    assert where(table, pod("p", request={})) == set()
    assert where_suitable(table, pod("p", request={})) == {"n1"}


def test_a_node_that_names_no_places_takes_no_pod():
    assert where_suitable(table_of(node(size={"pods": 0})), pod("p", request={})) == set()


def test_a_node_has_none_of_a_resource_that_it_does_not_name():
    table = table_of(node("plain"), node("gpus", size={GPU: 1}))
    assert where(table, pod("p", request={GPU: 1})) == {"gpus"}
    assert where_suitable(table, pod("p", request={GPU: 2})) == set()


def test_who_serves_what_no_node_lists_cannot_be_judged():
    said = "no node lists example.com/new; who serves it cannot be judged from here"
    asks = pod("p", request={"cpu": 3, "example.com/new": 1})
    table = table_of(node(), pod("other", node="n1"))
    assert undecidable(table, asks) == said
    assert where(table, asks) == {"n1"}, "the rest of its request is judged"
    assert where(table, pod("p", request={"cpu": 4, "example.com/new": 1})) == set()
    table.upsert_node(node("n2", size={"example.com/new": 2}, unschedulable=True))
    assert undecidable(table, asks) == ""
    assert where(table, asks) == set()
    table.upsert_node(node("n2", size={"example.com/new": 0}))
    assert undecidable(table, asks) == said
    table.upsert_node(node("n2", size={"example.com/new": 2}))
    assert where(table, asks) == {"n2"}
    table.delete_node("n2")
    assert undecidable(table, asks) == said


def test_nobody_has_a_resource_of_nodes_that_no_node_has_named():
    assert undecidable(table_of(node()), pod("p", request={"hugepages-2Mi": 1})) == ""
    assert where(table_of(node()), pod("p", request={"hugepages-2Mi": 1})) == set()


def test_a_pod_is_not_kept_out_by_a_resource_that_it_does_not_request():
    overfull = table_of(node(size={GPU: 1}), pod("a", request={"cpu": 9, GPU: 3}, node="n1"))
    assert where(overfull, pod("p", request={"cpu": 0})) == {"n1"}
    assert where(overfull, pod("p", request={"cpu": 0, GPU: 0})) == {"n1"}
    assert where(overfull, pod("p", request={"cpu": 0.001})) == set()


def test_a_pod_on_its_way_out_holds_its_room_until_it_is_gone():
    table = table_of(node(), pod("a", request={"cpu": 4}, node="n1", terminating=True))
    assert where(table, pod("p")) == set()
    assert where(table, pod("p"), without=["a"]) == {"n1"}


def test_only_what_the_pods_gone_have_on_this_node_is_free():
    table = table_of(
        node("n1"), node("n2"), *(pod(f"{n}{i}", request={"cpu": 2}, node=n) for n in ("n1", "n2") for i in (1, 2))
    )
    assert where(table, pod("p", request={"cpu": 2})) == set()
    assert where(table, pod("p", request={"cpu": 2}), without={"n11"}) == {"n1"}
    assert where(table, pod("p", request={"cpu": 4}), without=("n11", "n21", "n22", "nobody")) == {"n2"}


def test_what_a_node_is_short_of_is_named():
    table = table_of(node(size={"pods": 1, GPU: 1}), pod("a", request={"cpu": 3, GPU: 1}, node="n1"))
    asker = pod("p", request={"cpu": 1, GPU: 1, "tape": 1, "disc": 0})
    assert lacking_on(table, asker, "n1", ()) == {GPU: 1, "tape": 1, "pods": 1}
    assert lacking_on(table, asker, "n1", {"a"}) == {"tape": 1}
    assert lacking_on(table, pod("p", request={"cpu": 4}), "n1", {"a"}) == {}


def test_a_pod_gone_that_is_named_twice_frees_its_room_once():
    table = table_of(node(), pod("a", request={"cpu": 2}, node="n1"), pod("b", request={"cpu": 2}, node="n1"))
    assert where(table, pod("p", request={"cpu": 3}), without=["a", "a"]) == set()


def test_amounts_that_no_row_can_hold_are_as_good_as_the_largest():
    beyond = LARGEST // 100  # cores, so that it is too much in thousandths
    table = table_of(node("n1", size={"cpu": LARGEST}), node("n2", size={"cpu": LARGEST}))
    table.add(pod("a", request={"cpu": LARGEST}, node="n1"))
    table.add(pod("b", request={"cpu": LARGEST}, node="n1"))
    assert table.used.max() == LARGEST
    assert table.allocatable.max() == LARGEST
    assert where(table, pod("p", request={"cpu": 1})) == {"n2"}
    assert where_suitable(table, pod("p", request={"cpu": beyond})) == set()
    assert where(table, pod("p", request={"cpu": beyond})) == set()
    table.remove("b")
    table.remove("a")
    assert where(table, pod("p", request={"cpu": 1})) == {"n1", "n2"}


def test_a_pod_does_not_stand_in_its_own_way():
    standing = pod("p", request={"cpu": 3}, node="n1")
    table = table_of(node("n1"), node("n2", size={"cpu": 2}), standing)
    assert where(table, standing) == {"n1"}
    assert where(table, standing, without={"p"}) == {"n1"}
    table.add(pod("q", request={"cpu": 2}), "n2")
    assert where(table, pod("q", request={"cpu": 2})) == {"n2"}


def test_a_pod_that_is_expected_takes_room_from_all_but_more_important_pods():
    table = table_of(node())
    table.add(pod("nominated", request={"cpu": 4}, priority=5), "n1")
    assert where(table, pod("p", priority=4)) == set()
    assert where(table, pod("q", priority=5)) == set()
    assert where(table, pod("r", priority=6)) == {"n1"}
    assert where(table, pod("p", priority=4), without={"nominated"}) == {"n1"}


def test_an_unknown_node_fits_nothing():
    table = table_of(on("unknown"))
    assert not fits_on(table, pod("p"), "unknown", ())
    assert not fits_on(table, pod("p"), "nowhere", ())
    assert not fits_if_empty_on(table, pod("p"), "unknown")
    assert fits(table, pod("p")).tolist() == []


# Node selector and required node affinity


def requires(*terms: NodeTerm, **selector: str):
    return wanting(node_selector=tuple(selector.items()), node_terms=terms or None)


@pytest.mark.parametrize(
    ("requirement", "fitting"),
    [
        (Requirement("disk", "In", ("ssd", "tape")), {"ssd"}),
        (Requirement("disk", "In", ("tape",)), set()),
        (Requirement("disk", "NotIn", ("ssd", "tape")), {"hdd", "none"}),
        (Requirement("disk", "Exists"), {"ssd", "hdd"}),
        (Requirement("disk", "DoesNotExist"), {"none"}),
        (Requirement("rank", "Gt", ("7",)), {"hdd"}),
        (Requirement("rank", "Lt", ("8",)), {"ssd"}),
        (Requirement("age", "Gt", ("1764288000000000000",)), {"hdd"}),
        (Requirement("rank", "Gt", ("many",)), set()),
        (Requirement("size", "Gt", ("-1",)), set()),
        (Requirement("rank", "Near", ("7",)), set()),
        (Requirement("rank", "Gt", ()), set()),
    ],
)
def test_a_required_node_affinity_on_labels(requirement, fitting):
    table = table_of(
        node("ssd", labels={"disk": "ssd", "rank": "7", "size": "1_000"}),
        node("hdd", labels={"disk": "hdd", "rank": "8", "size": "9" * 19, "age": "1764288000000000001"}),
        node("none", labels={"size": "٣"}),
    )
    assert where(table, requires(NodeTerm((requirement,)))) == fitting
    assert where_suitable(table, requires(NodeTerm((requirement,)))) == fitting


@pytest.mark.parametrize(
    ("requirement", "fitting"),
    [
        (Requirement("metadata.name", "In", ("n2",)), {"n2"}),
        (Requirement("metadata.name", "In", ("n9",)), set()),
        (Requirement("metadata.name", "NotIn", ("n2",)), {"n1", "n3"}),
        (Requirement("metadata.uid", "In", ("n2",)), set()),
        (Requirement("metadata.uid", "NotIn", ("n2",)), {"n1", "n2", "n3"}),
    ],
)
def test_a_required_node_affinity_on_the_name(requirement, fitting):
    table = table_of(node("n0"), node("n1"), node("n2"), node("n3"))
    table.delete_node("n0")
    assert where(table, requires(NodeTerm(fields=(requirement,)))) == fitting


def test_one_term_is_enough_but_all_of_it_must_hold():
    table = table_of(
        node("n1", labels={"disk": "ssd", "zone": "a"}),
        node("n2", labels={"disk": "ssd", "zone": "b"}),
        node("n3", labels={"disk": "hdd", "zone": "b"}),
    )
    ssd, in_a = Requirement("disk", "In", ("ssd",)), Requirement("zone", "In", ("a",))
    third = NodeTerm((), (Requirement("metadata.name", "In", ("n3",)),))
    assert where(table, requires(NodeTerm((ssd, in_a)))) == {"n1"}
    assert where(table, requires(NodeTerm((ssd, in_a)), third)) == {"n1", "n3"}
    assert where(table, requires(NodeTerm((ssd,), (Requirement("metadata.name", "In", ("n3",)),)))) == set()


def test_an_empty_term_matches_nothing_and_no_terms_match_nothing():
    table = table_of(node())
    assert where(table, requires(NodeTerm())) == set()
    assert where(table, wanting(node_terms=())) == set()
    assert where(table, wanting(node_terms=None)) == {"n1"}


def test_the_node_selector_and_the_affinity_must_both_hold():
    table = table_of(node("n1", labels={"disk": "ssd"}), node("n2", labels={"disk": "ssd", "zone": "a"}), node("n3"))
    assert where(table, requires(disk="ssd")) == {"n1", "n2"}
    assert where(table, requires(disk="ssd", zone="a")) == {"n2"}
    assert where(table, requires(NodeTerm((Requirement("zone", "DoesNotExist"),)), disk="ssd")) == {"n1"}


def test_where_a_pod_stands_already_does_not_bind_it():
    table = table_of(node("n1"), node("n2"), on("n1", "p"))
    assert where(table, on("n1", "p")) == {"n1", "n2"}
    assert where_suitable(table, on("n1", "p")) == {"n1", "n2"}


# Taints


@pytest.mark.parametrize(
    ("taint", "toleration", "fitting"),
    [
        (Taint("gpu", "yes", "NoSchedule"), None, False),
        (Taint("gpu", "yes", "NoExecute"), None, False),
        (Taint("gpu", "yes", "PreferNoSchedule"), None, True),
        (Taint("gpu", "yes", "NoSchedule"), Toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (Taint("gpu", "yes", "NoSchedule"), Toleration("gpu", "Equal", "yes"), True),
        (Taint("gpu", "yes", "NoSchedule"), Toleration("gpu", "Equal", "no"), False),
        (Taint("gpu", "yes", "NoSchedule"), Toleration("gpu", "Equal"), False),
        (Taint("gpu", "", "NoSchedule"), Toleration("gpu", "Equal"), True),
        (Taint("gpu", "yes", "NoSchedule"), Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Taint("gpu", "yes", "NoSchedule"), Toleration("gpu", "Exists"), True),
        (Taint("gpu", "yes", "NoSchedule"), Toleration("cpu", "Exists"), False),
        (Taint("gpu", "yes", "NoExecute"), Toleration("", "Exists"), True),
        (Taint("gpu", "yes", "NoExecute"), Toleration("", "Exists", "", "NoSchedule"), False),
        (Taint("tier", "7", "NoSchedule"), Toleration("tier", "Gt", "6"), True),
        (Taint("tier", "7", "NoSchedule"), Toleration("tier", "Gt", "7"), False),
        (Taint("tier", "7", "NoSchedule"), Toleration("tier", "Lt", "8"), True),
        (Taint("tier", "7", "NoSchedule"), Toleration("tier", "Lt", "7"), False),
        (Taint("tier", "07", "NoSchedule"), Toleration("tier", "Lt", "8"), False),
        (Taint("tier", "7", "NoSchedule"), Toleration("tier", "Lt", "eight"), False),
        (Taint("tier", "7", "NoSchedule"), Toleration("tier", "About", "7"), False),
    ],
)
def test_a_taint_keeps_out_who_does_not_tolerate_it(taint, toleration, fitting):
    table = table_of(node("n1", taints=(taint,)), node("n2"))
    asker = wanting(tolerations=(toleration,) if toleration else ())
    assert where(table, asker) == where_suitable(table, asker) == ({"n1", "n2"} if fitting else {"n2"})


def test_every_taint_must_be_tolerated():
    table = table_of(node(taints=(Taint("a", "", "NoSchedule"), Taint("b", "", "NoExecute"))))
    a, b = Toleration("a", "Exists"), Toleration("b", "Exists")
    assert where(table, wanting(tolerations=(a,))) == where(table, wanting(tolerations=(b,))) == set()
    assert where(table, wanting(tolerations=(a, b))) == {"n1"}


@pytest.mark.parametrize(
    ("toleration", "fitting"),
    [
        (None, False),
        (Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"), True),
        (Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoExecute"), False),
        (Toleration("", "Exists"), True),
        (Toleration("other", "Exists"), False),
    ],
)
def test_an_unschedulable_node_takes_only_who_tolerates_that(toleration, fitting):
    table = table_of(node(unschedulable=True))
    assert bool(where(table, wanting(tolerations=(toleration,) if toleration else ()))) == fitting


# Ports of the node


@pytest.mark.parametrize(
    ("taken", "wanted", "fitting"),
    [
        (HostPort(80), HostPort(80), False),
        (HostPort(80), HostPort(81), True),
        (HostPort(80), HostPort(80, "UDP"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.1"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80), False),
        (HostPort(80, address="0.0.0.0"), HostPort(80, address="10.0.0.1"), False),
        (HostPort(80, address=""), HostPort(80, address="0.0.0.0"), False),
        (HostPort(80, address="0.0.0.0"), HostPort(80, address=""), False),
    ],
)
def test_a_port_of_the_node_is_taken_once(taken, wanted, fitting):
    free = HostPort(9999)
    table = table_of(
        node("n1"), node("n2"), on("n1", "taker", "elsewhere", constraints=Constraints(host_ports=(free, taken)))
    )
    asker = wanting(host_ports=(HostPort(8888), wanted))
    assert where(table, asker) == ({"n1", "n2"} if fitting else {"n2"})
    assert where(table, asker, without={"taker"}) == where_suitable(table, asker) == {"n1", "n2"}


def test_a_pod_that_is_expected_takes_its_ports():
    table, asker = table_of(node()), wanting(host_ports=(HostPort(80),))
    table.add(pod("nominated", constraints=asker.constraints), "n1")
    assert where(table, asker) == set()


# What is not decided


def test_what_cannot_be_decided_is_named():
    table = table_of(node())
    assert undecidable(table, pod("p")) == ""
    sentence = undecidable(table, wanting(undecidable=("a volume claim", "a resource claim")))
    assert sentence == "Where the pod fits cannot be decided here: a volume claim, a resource claim"
