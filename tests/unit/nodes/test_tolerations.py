"""Which taints some of many pods tolerate, and what nodes have for such pods."""

import pytest

from policy.cluster.cluster import Cluster
from policy.nodes.tolerations import ALL, MOST_SETS, One, Several, forbidding
from policy.objects.constraints import Constraints, Taint, Toleration
from policy.objects.membership import Namespace
from tests.unit.given import amounts, pod
from tests.unit.given_nodes import node, on, table_of
from tests.unit.given_queues import divided, queue, world

DEDICATED = Taint("dedicated", "a", "NoSchedule")
LEAVING = Taint("leaving", "", "NoExecute")
LIKED_LESS = Taint("slow", "", "PreferNoSchedule")
MINE = Toleration("dedicated", "Equal", "a")
PLENTY = {"cpu": 8, "pods": 500}


def tolerant(uid: str, *tolerations: Toleration, namespace: str = "a", **rest):
    """A pod with these tolerations."""
    return pod(uid, namespace, constraints=Constraints(tolerations=tolerations), **rest)


def dedicated(*taints: Taint, **rest):
    """A second node, with taints."""
    return node("n2", size=PLENTY, taints=taints or (DEDICATED,), **rest)


def several(**pods: tuple[Toleration, ...]) -> Several:
    found = Several()
    for uid, tolerations in pods.items():
        found.put(uid, tolerations)
    return found


@pytest.mark.parametrize(
    ("case", "taints", "expected"),
    [
        ("none", (), True),
        ("one that only makes it less liked", (LIKED_LESS,), True),
        ("one that somebody tolerates", (DEDICATED,), True),
        ("one that nobody does", (LEAVING,), False),
        ("two, each of which somebody tolerates", (DEDICATED, Taint("b", "", "NoSchedule")), False),
    ],
)
def test_a_node_is_for_somebody_if_one_of_them_tolerates_all_of_its_taints(case, taints, expected):
    sets = several(p=(MINE,), q=(Toleration("b", "Exists"),), r=())
    assert sets.tolerates(forbidding(taints)) is expected, case


def test_tolerations_come_and_go_with_the_last_pod_that_has_them():
    sets = several(p=(MINE,), q=(MINE,))
    version = sets.version
    sets.remove("p")
    assert (sets.tolerates((DEDICATED,)), sets.version) == (True, version)
    sets.put("q", ())
    assert not sets.tolerates((DEDICATED,))
    assert sets.version != version


def test_what_every_pod_is_given_by_the_api_server_is_no_set_of_its_own():
    sets, version = Several(), Several().version
    sets.put("p", (Toleration("node.kubernetes.io/unreachable", "Exists", effect="NoExecute"),))
    assert sets.version == version


def test_a_set_of_tolerations_beyond_the_most_counts_as_tolerating_everything():
    sets = several(**{f"p{number}": (Toleration(f"k{number}", "Exists"),) for number in range(MOST_SETS)})
    assert not sets.tolerates((DEDICATED,))
    sets.put("more", (Toleration("other", "Exists"),))
    assert sets.tolerates((DEDICATED,))
    sets.remove("more")
    assert not sets.tolerates((DEDICATED,))


def test_a_node_that_is_not_tolerated_counts_with_what_stands_there_and_has_no_room():
    table = table_of(node(size={"cpu": 4}), dedicated(), on("n2", "q"), pod("p", request={"cpu": 2}, node="n2"))
    table.add(pod("expected"), "n2")
    assert table.capacity(Several()) == amounts(cpu=6, pods=12)
    assert table.capacity(ALL) == amounts(cpu=12, pods=510)
    assert table.room(One(())) == amounts(cpu=4, pods=10)
    assert table.room(One((MINE,))) == amounts(cpu=9, pods=507)
    table.upsert_node(dedicated(LEAVING))
    assert table.capacity(several(p=(MINE,))) == amounts(cpu=6, pods=12)
    table.upsert_node(dedicated(LIKED_LESS))
    assert table.capacity(Several()) == amounts(cpu=12, pods=510)
    table.upsert_node(dedicated(unschedulable=True))
    assert table.capacity(ALL) == amounts(cpu=6, pods=12)
    table.remove("p")
    assert table.capacity(ALL) == amounts(cpu=4, pods=11)
    table.delete_node("n2")
    assert table.capacity(ALL) == amounts(cpu=4, pods=10)
    table.upsert_node(dedicated())
    assert table.capacity(Several()) == {"cpu": 4000, "pods": 11}


def deserved(cluster: Cluster) -> int:
    return divided(cluster).ledger.queues.accounts["q"].division.deserved.get("cpu", 0)


def test_what_a_queue_deserves_follows_who_tolerates_what():
    nodes = node(size={"cpu": 2, "pods": 500}), dedicated()
    cluster = world(*nodes, queue("q"), "a:q", pod("p", request={"cpu": 20}))
    assert deserved(cluster) == 2000
    cluster.upsert_pod(tolerant("other", MINE, namespace="free"), now=0)
    cluster.upsert_pod(tolerant("daemon", MINE, owner="DaemonSet", node="n2"), now=0)
    cluster.upsert_namespace(Namespace("kube-system", "q"))
    dns = tolerant("dns", MINE, namespace="kube-system", priority=2_000_000_000, request={"cpu": 0.001}, node="n2")
    cluster.upsert_pod(dns, now=0)
    assert deserved(cluster) == 3001  # so much is used on the other node
    cluster.delete_pod("dns")
    assert deserved(cluster) == 3000
    cluster.upsert_pod(tolerant("mine", MINE), now=0)
    assert deserved(cluster) == 10000
    cluster.upsert_node(dedicated(LEAVING))
    assert deserved(cluster) == 3000
    cluster.upsert_node(dedicated())
    assert deserved(cluster) == 10000
    cluster.upsert_pod(tolerant("mine", MINE, node="n2", finished=True), now=0)
    assert deserved(cluster) == 3000


def test_of_what_no_pod_of_a_queue_asks_for_all_nodes_count():
    nodes = node(size={"cpu": 2}), node("n2", size={"gpu": 4}, taints=(DEDICATED,))
    cluster = world(*nodes, queue("q", kept={"gpu": 4}), "a:q", pod("p"))
    division = cluster.ledger.queues.accounts["q"].division
    assert (division.guarantee, division.real_capability["cpu"]) == ({"gpu": 4}, 2000)
    cluster.upsert_pod(pod("gpu", request={"gpu": 1}), now=0)
    divided(cluster)
    assert cluster.ledger.queues.accounts["q"].division.guarantee == {}
    cluster.upsert_pod(tolerant("gpu", MINE, request={"gpu": 1}), now=0)
    divided(cluster)
    assert cluster.ledger.queues.accounts["q"].division.guarantee == {"gpu": 4}
