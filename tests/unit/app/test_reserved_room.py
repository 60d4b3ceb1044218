"""Nodes are reserved for what a starving job needs: others may use the rest of them, and nothing that it needs."""

import pytest

from policy.quota import kept_nodes
from tests.unit.app.given import client_of, node, pod, refused, see, store_with
from tests.unit.app.test_reserved_nodes import reserve

GPU = "nvidia.com/gpu"
EIGHT = {"cpu": "64", "memory": "1Ti", "pods": "110", GPU: "8"}


def gpus(name, number, **rest):
    return pod(name, requests={GPU: str(number)}, **rest)


def told(store, item, name="n1"):
    answer = client_of(store).ask("filter", {"Pod": item, "NodeNames": [name]})
    return answer["NodeNames"] or answer["FailedAndUnresolvableNodes"][name]


def world(used, *more, starving=4):
    """Node n1 with eight GPUs, of which so many are used, and some are reserved for the pod big."""
    running = [gpus(f"r{number}", 1, nodeName="n1") for number in range(used)]
    store = store_with(node("n1", **EIGHT), *running, refused(gpus("big", starving)), *more)
    reserve(store)
    return store


@pytest.mark.parametrize(("used", "enters"), [(8, False), (7, False), (4, False), (3, True), (0, True)])
def test_a_pod_enters_that_takes_nothing_of_what_is_reserved(used, enters):
    store = world(used, gpus("p", 1))
    assert told(store, gpus("p", 1)) == (["n1"] if enters else kept_nodes.RESERVED.text)
    assert ("a/p" in store.cluster.grants) == enters


def test_only_what_a_pod_asks_for_counts():
    store = world(8, pod("p"))
    assert told(store, pod("p")) == ["n1"]


def test_pods_that_were_let_in_and_are_not_there_yet_count():
    store = world(3, gpus("p", 1), gpus("q", 1))
    assert told(store, gpus("p", 1)) == ["n1"]
    assert told(store, gpus("q", 1)) == kept_nodes.RESERVED.text


def test_a_job_that_needs_the_whole_node_has_it_alone():
    assert told(world(0, gpus("p", 1), starving=8), gpus("p", 1)) == kept_nodes.RESERVED.text


def test_reservations_of_several_jobs_add_up():
    store = world(0, refused(gpus("second", 4)), gpus("p", 1))
    reserve(store, "second")
    assert told(store, gpus("p", 1)) == kept_nodes.RESERVED.text
    store.cluster.delete_reservation("starving-second")
    assert told(store, gpus("p", 1)) == ["n1"]


def test_the_pod_that_it_is_reserved_for_enters():
    assert told(world(4), gpus("big", 4)) == ["n1"]


def test_the_answer_follows_what_changes_on_the_node():
    store = world(4, gpus("p", 1))

    def tells(what):
        assert told(store, gpus("p", 1)) == what
        store.cluster.withdraw("a/p")

    tells(kept_nodes.RESERVED.text)
    store.cluster.delete_pod("a/r0")
    tells(["n1"])
    see(store, gpus("r0", 1, nodeName="n1"))
    tells(kept_nodes.RESERVED.text)
    see(store, node("n1", **EIGHT | {GPU: "9"}))
    tells(["n1"])
    store.cluster.delete_node("n1")
    tells(kept_nodes.RESERVED.text)
    see(store, node("n1", **EIGHT))
    tells(kept_nodes.RESERVED.text)
    see(store, node("n1", **EIGHT | {GPU: "9"}))
    tells(["n1"])


def test_who_is_on_its_way_counts_once_a_node_is_large_enough_for_it():
    store = world(0, gpus("on-its-way", 9), gpus("p", 1))
    store.cluster.grant(store.cluster.pods["a/on-its-way"], 0)
    assert told(store, gpus("p", 1)) == ["n1"]
    see(store, node("n1", **EIGHT | {GPU: "13"}))
    assert told(store, gpus("p", 1)) == kept_nodes.RESERVED.text


def test_where_jobs_share_a_node_a_pod_of_one_leaves_what_is_kept_for_the_others():
    store = world(3, refused(gpus("second", 2)), gpus("r8", 1))
    reserve(store, "second")
    assert told(store, gpus("second", 2)) == kept_nodes.RESERVED.text
    assert told(store, gpus("second", 1)) == ["n1"]
    store.cluster.withdraw("a/second")
    assert told(store, gpus("big", 4)) == ["n1"], "it was reserved for that one first"


def test_a_pod_of_lower_priority_that_is_only_expected_there_is_not_counted():
    store = world(3, refused(gpus("q", 1)), gpus("p", 1, priority=5))
    store.cluster.table.add(store.cluster.pods["a/q"], "n1")
    assert told(store, gpus("p", 1, priority=5)) == ["n1"]
    assert told(store, gpus("s", 1)) == kept_nodes.RESERVED.text
