"""Granted pods on their way: what they may take of each node."""

from dataclasses import replace

from policy.cluster.assumed import MOST_KINDS
from policy.reserve.coming import Coming
from tests.unit.given_jobs import NOW, reserve_all, seen, sized, sized_pod, waiting


def coming(*pods):
    found = Coming(seen(sized(), sized("small", 1)).table)
    for number, each in enumerate(pods):
        found.add(each, NOW + number % 2)
    return found


def cores(found, node="n1", without=()):
    return [(end - NOW, request.get("cpu", 0)) for end, request in found.on(node, without)]


def test_pods_of_one_kind_count_together_where_they_fit():
    large = sized_pod("large", 2)
    found = coming(large, sized_pod("other", 1), replace(large, uid="twin", name="twin"))
    assert cores(found) == [(0, 4000), (1, 1000)]
    assert cores(found, "small") == [(1, 1000)]


def test_pods_that_are_kept_or_expected_there_are_left_out():
    assert cores(coming(sized_pod("p", 2), sized_pod("q", 1)), without=("p",)) == [(0, 0), (1, 1000)]


def test_of_many_kinds_the_last_count_on_each_node_until_the_last_is_gone():
    many = [sized_pod(f"p{number}", 0.1) for number in range(MOST_KINDS)]
    found = coming(*many, sized_pod("large", 2), sized_pod("larger", 2.5))
    assert len(cores(found)) == MOST_KINDS + 1
    assert cores(found, "small")[-1] == (1, 4500)
    assert cores(found, "small", without=("large",))[-1] == (1, 2500)


def test_who_was_kept_from_reserved_nodes_may_come_to_one_reserved_since():
    cluster = seen(sized(), waiting())
    reserve_all(cluster)
    granted = sized_pod("granted", 1)
    cluster.upsert_pod(granted, now=0)
    cluster.grant(granted, 0)
    nodes = cluster.reservations.nodes
    nodes.note_answer(granted, {"n1"})
    assert list(nodes.may_come()) == []
    cluster.upsert_node(sized("n2"))
    cluster.upsert_pod(waiting("next"), now=0)
    reserve_all(cluster)
    assert [pod.uid for pod in nodes.may_come()] == ["granted"]


def test_who_was_kept_from_nodes_may_come_once_nothing_is_reserved():
    cluster = seen(sized("n1", cpu=8), waiting("big", 6))
    reserve_all(cluster)
    [reservation] = cluster.reservations.reserved
    granted, nodes = sized_pod("granted", 1), cluster.reservations.nodes
    cluster.upsert_pod(granted, now=0)
    cluster.grant(granted, 0)
    nodes.note_answer(granted, {"n1"})
    cluster.delete_reservation(reservation.name)
    cluster.upsert_reservation(reservation)
    assert [pod.uid for pod in nodes.may_come()] == ["granted"]
