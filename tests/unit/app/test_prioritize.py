"""Borrowers where borrowers are, all others elsewhere: what is lent is taken back from few nodes."""

import json

import pytest

from app.actuators.recording import RecordingActuator
from app.extender import wire
from app.extender.endpoints import Extender
from app.main import application
from app.readiness import Readiness
from app.settings import Settings
from tests.unit.app.given import Client, namespace, node, pod, queue, quota, see, store_with

NODES = ("n1", "n2", "n3")


def scores(store, item, apart=1, nodes=NODES):
    extender = Extender(store, RecordingActuator(store), apart=apart)
    client = Client(application(Readiness(store), extender, Settings()))
    answer = client.ask("prioritize", {"Pod": item, "NodeNames": list(nodes)})
    return {each["Host"]: each["Score"] for each in answer}


@pytest.fixture
def store():
    """Namespace a has borrowed one core, and is on n1; b is within its min, and on n2; c has no quota, and is on n3."""
    return store_with(
        *(node(name) for name in NODES),
        quota("a", min={"cpu": 1}, max={"cpu": 9}),
        quota("b", min={"cpu": 3}, max={"cpu": 9}),
        *(pod(f"r{number}", nodeName="n1") for number in range(2)),
        pod("r", "b", nodeName="n2"),
        pod("r", "c", nodeName="n3"),
    )


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (pod("new"), {"n1": 1}),
        (pod("new", "b"), {"n2": 1, "n3": 1}),
        (pod("new", "b", requests={"cpu": "3"}), {"n1": 1}),
        (pod("new", requests={"memory": "1"}), {"n2": 1, "n3": 1}),
        (pod("new", "c"), {}),
    ],
    ids=["borrows", "within min", "would borrow", "nothing of what is lent", "without a quota"],
)
def test_borrowers_prefer_nodes_with_borrowers_and_guaranteed_pods_those_without(store, item, expected):
    assert scores(store, item) == expected


def test_what_the_pod_itself_was_granted_is_not_counted_twice(store):
    last = pod("new", "b", requests={"cpu": "2"})
    assert scores(store, last) == {"n2": 1, "n3": 1}
    Client(application(Readiness(store), Extender(store, RecordingActuator(store)), Settings())).ask(
        "filter", {"Pod": last, "NodeNames": list(NODES)}
    )
    assert scores(store, last) == {"n2": 1, "n3": 1}


def test_there_is_no_preference_where_all_are_alike_or_it_is_turned_off(store):
    assert scores(store, pod("new"), nodes=("n1",)) == {}
    assert scores(store, pod("new", "b"), nodes=("n2", "n3")) == {}
    assert scores(store, pod("new"), apart=0) == {}
    assert scores(store, pod("new"), apart=3) == {"n1": 3}
    store.cluster.delete_pod("a/r0")
    assert scores(store, pod("new", "b")) == {}, "nobody borrows any more"


def test_a_node_that_the_borrowers_have_left_is_like_the_others(store):
    for number in range(2):
        see(store, pod(f"r{number}", nodeName="n3"))
    assert scores(store, pod("new")) == {"n3": 1}


def test_who_is_in_a_queue_beyond_what_it_deserves_is_a_borrower():
    annotation = "scheduling.volcano.sh/queue-name"
    spaces = [namespace(name, **{annotation: name}) for name in "ab"]
    store = store_with(
        *(node(name) for name in NODES),
        *spaces,
        queue("a", weight=1, guarantee={"resource": {"cpu": "1", "pods": "10"}}),
        queue("b", weight=5, guarantee={"resource": {"cpu": "10", "memory": "9Gi", "pods": "90"}}),
        *(pod(f"r{number}", nodeName="n1") for number in range(3)),
        pod("r", "b", nodeName="n2"),
    )
    for _ in store.cluster.divide_steps():
        pass
    assert store.cluster.ledger.queues.over_deserved == {"a"}
    assert scores(store, pod("new")) == {"n1": 1}
    assert scores(store, pod("new", "b")) == {"n2": 1, "n3": 1}
    store.cluster.delete_queue("a")
    assert scores(store, pod("new", "b")) == {}


@pytest.mark.parametrize("names", [("n1",), ("n1", "n2"), ('n"1', "n2"), ('n","2', "n\\"), ("nö",)])
def test_scores_name_every_host_whatever_it_is_called(names):
    expected = [{"Host": name, "Score": 7} for name in names]
    assert json.loads(wire.scores(names, 7)) == expected
    assert json.loads(wire.scores([], 7)) == []
