"""What the scheduler is told about members of gangs, and about others while room is held for these."""

import pytest

from policy.quota import kept_nodes
from policy.quota.gang_minimum import RULE
from tests.unit.app.given import client_of, node, pod, pod_group, see, store_with
from tests.unit.app.test_extender import binding, counted, filtering, preempting

GROUP = pod_group("g")


def member(name, **spec):
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    metadata = {"name": name, "namespace": "a", "uid": f"a/{name}", "labels": labels}
    return pod(name, requests={"cpu": 3}, metadata=metadata, **spec)


@pytest.fixture
def store():
    """A gang of two, of which one member fits on each of two nodes of four cores."""
    return store_with(node("n1"), node("n2"), GROUP, member("m0"), member("m1"))


@pytest.fixture
def client(store):
    return client_of(store)


def test_members_pass_one_after_the_other_each_on_its_node(store, client):
    assert client.ask("filter", filtering(member("m0"), "n2", "n1"))["NodeNames"] == ["n1"]
    answer = client.ask("filter", filtering(member("m1")))
    assert answer == {"NodeNames": ["n2"], "FailedAndUnresolvableNodes": {"n1": kept_nodes.HELD.text}}


def test_with_whole_nodes_too(client):
    nodes = {"items": [node("n1"), node("n2")]}
    client.ask("filter", filtering(member("m0"), "n1"))
    answer = client.ask("filter", {"Pod": member("m1"), "Nodes": nodes})
    assert [each["metadata"]["name"] for each in answer["Nodes"]["items"]] == ["n2"]


def test_a_member_whose_gang_cannot_start_is_refused_everywhere_and_counted(store, client):
    see(store, pod("o", "b", requests={"cpu": 2}, nodeName="n1"))
    before = counted("quotaward_refusals_total", rule="gang-minimum")
    answer = client.ask("filter", filtering(member("m0")))
    assert answer == {"NodeNames": [], "FailedAndUnresolvableNodes": {"n1": RULE.text, "n2": RULE.text}}
    assert counted("quotaward_refusals_total", rule="gang-minimum") == before + 1
    assert len(store.cluster.grants) == 0
    assert client.ask("preempt", preempting(member("m0", priority=5), {"n1": ["b/o"]})) == {}


def test_others_pass_where_they_leave_what_is_held(client):
    client.ask("filter", filtering(member("m0"), "n1"))
    large, small = pod("large", "b", requests={"cpu": 2}), pod("small", "b")
    answer = client.ask("filter", filtering(large))
    assert answer == {
        "NodeNames": [],
        "FailedAndUnresolvableNodes": {"n1": kept_nodes.HELD.text, "n2": kept_nodes.HELD.text},
    }
    assert client.ask("filter", filtering(small))["NodeNames"] == ["n1", "n2"]


def test_a_member_that_room_is_held_for_goes_there_also_when_its_group_is_gone(store, client):
    client.ask("filter", filtering(member("m0"), "n1"))
    [group] = store.cluster.membership.groups
    store.cluster.delete_group(*group)
    held = store.cluster.gangs.node_for("a/m1")
    assert held
    assert client.ask("filter", filtering(member("m1")))["NodeNames"] == [held]


def test_a_member_is_bound_where_the_scheduler_has_chosen(store, client):
    assert client.ask("bind", binding("m0", to="n2")) == {}
    assert store.cluster.pods["a/m0"].node == "n2"
    assert store.cluster.gangs.node_for("a/m1") == "n1"


def test_observing_nobody_is_refused_for_the_sake_of_a_gang_and_it_is_counted(store):
    see(store, pod("o", "b", requests={"cpu": 2}, nodeName="n1"))
    observing, before = client_of(store, observe=True), counted("quotaward_refusals_total", rule="gang-minimum")
    assert observing.ask("filter", filtering(member("m0")))["NodeNames"] == ["n1", "n2"]
    assert counted("quotaward_refusals_total", rule="gang-minimum") == before + 1


def test_observing_nobody_is_kept_to_a_node(store):
    observing = client_of(store, observe=True)
    for name in ("m0", "m1"):
        assert observing.ask("filter", filtering(member(name)))["NodeNames"] == ["n1", "n2"]
    assert observing.ask("filter", filtering(pod("o", "b", requests={"cpu": 4})))["NodeNames"] == ["n1", "n2"]


def test_the_explanation_of_a_member_tells_of_its_gang(store, client):
    see(store, pod("o", "b", requests={"cpu": 2}, nodeName="n1"))
    told = client.get("/api/v1/pods/a/m0").json()
    assert (told["verdict"], told["rule"]) == ("refused", "gang-minimum")
    assert told["numbers"]["members"] == {"minimum": "2", "ready": "0", "pending": "2"}
    assert [each["step"] for each in told["next"]] == ["gang-waiting"]
    assert "add a node of 4 cpu" in told["remedies"][0]["text"]


def test_a_gang_that_is_too_large_is_suggested_no_more_than_it_takes():
    sizes = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    members = [member(f"m{number}") for number in range(6)]
    store = store_with(node("n1", **sizes), node("n2", **sizes), pod_group("g", minimum=6), *members)
    told = [each["text"] for each in client_of(store).get("/api/v1/pods/a/m0").json()["remedies"]]
    assert told[0].startswith("add a node of 8 cpu, ")
    assert told[1] == "lower the minimum of PodGroup a/g from 6 to 4"
