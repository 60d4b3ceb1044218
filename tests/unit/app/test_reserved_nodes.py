"""What the scheduler is told while whole nodes are reserved. Seed: reserve action, no new non-BestEffort tasks."""

from functools import partial

import pytest

from policy.objects.reservation import STARVING, PodName, Reservation
from policy.queueing.waking import to_wake
from policy.quota import kept_nodes
from policy.quota.admission import Rules
from tests.unit.app import given
from tests.unit.app.given import client_of, node, pod, pod_group, quota, refused, reserve, see
from tests.unit.app.test_quota_metrics import samples_of, value

store_with = partial(given.store_with, rules=Rules(whole_nodes=True))
GROUP = {"labels": {"scheduling.x-k8s.io/pod-group": "gang"}}
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
KEPT = f"0/1 nodes are available: 1 {kept_nodes.RESERVED.text}."


@pytest.fixture
def store():
    """Node n1 of two is reserved for the pod big."""
    store = store_with(node("n1"), node("n2"), refused(pod("big")), pod("other"))
    reserve(store)
    return store


def passing(store, item, *nodes, **options):
    answer = client_of(store, **options).ask("filter", {"Pod": item, "NodeNames": list(nodes or ("n1", "n2"))})
    assert set(answer.get("FailedAndUnresolvableNodes", {}).values()) <= {kept_nodes.RESERVED.text}
    return answer["NodeNames"]


def test_the_text_is_the_seeds():
    assert kept_nodes.RESERVED.text == "node(s) resource was(were) reserved"


def test_another_pod_passes_on_the_other_nodes_only(store):
    assert passing(store, pod("other")) == ["n2"]
    assert "a/other" in store.cluster.grants


def test_a_pod_for_which_every_node_is_reserved_holds_no_grant(store):
    before = refusals(store)
    assert passing(store, pod("other"), "n1") == []
    assert "a/other" not in store.cluster.grants
    assert refusals(store) == before + 1


def refusals(store):
    found = [each for each in samples_of(store) if each.name == "quotaward_refusals_total"]
    return sum(each.value for each in found if each.labels == {"rule": "node-reserved"})


def test_whole_nodes_are_refused_likewise(store):
    nodes = {"items": [{"metadata": {"name": name}} for name in ("n1", "n2")]}
    answer = client_of(store).ask("filter", {"Pod": pod("other"), "Nodes": nodes})
    assert answer == {
        "Nodes": {"items": nodes["items"][1:]},
        "FailedAndUnresolvableNodes": {"n1": kept_nodes.RESERVED.text},
    }


DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "uid": "d", "controller": True}]}


@pytest.mark.parametrize(
    ("item", "enters"),
    [
        (pod("other"), False),
        (pod("other", requests={"memory": "1"}), False),
        (pod("other", requests={"example.com/x": "1"}), False),
        (pod("other", requests={}), True),
        (pod("other", metadata=DAEMON), True),
        (pod("big"), True),
        (pod("big", "b"), False),
        (pod("other", priority=10**9), False),
    ],
    ids=["another", "memory", "extended", "best effort", "daemon set", "the pod itself", "a namesake", "important"],
)
def test_only_pods_without_requests_of_daemon_sets_and_of_the_job_enter(store, item, enters):
    assert ("n1" in passing(store, item)) == enters


def test_every_member_of_the_job_enters_any_of_its_nodes_but_not_those_of_others():
    members = [refused(pod(name, metadata=GROUP)) for name in ("w1", "w2", "w3")]
    store = store_with(node("n1"), node("n2"), node("n3"), pod_group(minimum=1), *members, refused(pod("big")))
    for name, on in (("w1", "n1"), ("w2", "n2")):
        reserve(store, name, on, job="podgroups.scheduling.x-k8s.io/gang")
    reserve(store, "big", "n3")
    for name in ("w1", "w3"):
        assert passing(store, pod(name, metadata=GROUP), "n1", "n2", "n3") == ["n1", "n2"]
    assert passing(store, pod("big"), "n1", "n2", "n3") == ["n3"]
    namesake = pod("x", "b", metadata=GROUP)
    assert passing(store, namesake, "n1", "n2", "n3") == []


def test_who_observes_lets_everybody_in(store):
    assert passing(store, pod("other"), observe=True) == ["n1", "n2"]


def test_a_node_takes_everybody_again_when_the_pod_is_on_it(store):
    see(store, pod("big", nodeName="n1"))
    assert passing(store, pod("other")) == ["n1", "n2"]


# Scores


def scores(store, item, *nodes, **options):
    arguments = {"Pod": item, "NodeNames": list(nodes or ("n1", "n2"))}
    return {each["Host"]: each["Score"] for each in client_of(store, **options).ask("prioritize", arguments)}


def test_a_jobs_pods_prefer_the_nodes_reserved_for_them_and_others_the_others(store):
    assert scores(store, pod("big")) == {"n1": 10}
    assert scores(store, pod("other")) == {"n2": 10}
    assert scores(store, pod("other", requests={})) == {"n2": 10}


def test_there_is_no_preference_where_nothing_is_reserved(store):
    assert scores(store, pod("other"), "n2") == {}
    assert scores(store, pod("big"), observe=True) == {}
    store.cluster.delete_reservation("starving-big")
    assert scores(store, pod("other")) == {}


# Nobody else's candidate


def quarrel(*more):
    """Namespace b, which would get back what a has borrowed, on nodes of four cores."""
    bounds = [quota("a", min={"cpu": 2}, max={"cpu": 8}), quota("b", min={"cpu": 6}, max={"cpu": 8})]
    return store_with(*bounds, refused(pod("big", "c", requests={"cpu": "4"})), *more)


def test_preempt_offers_nobody_on_a_node_that_is_reserved_for_another():
    running = [pod(f"r{number}", nodeName=f"n{1 + number % 2}") for number in range(8)]
    store = quarrel(node("n1"), node("n2"), *running)
    arguments = {"Pod": pod("owner", "b"), "NodeNameToMetaVictims": {n: {"Pods": [{"UID": "x"}]} for n in ("n1", "n2")}}
    assert set(client_of(store).ask("preempt", arguments)["NodeNameToMetaVictims"]) == {"n1", "n2"}
    reserve(store, namespace="c")
    assert set(client_of(store).ask("preempt", arguments)["NodeNameToMetaVictims"]) == {"n2"}


def evictions(store):
    store.clock.now += 5
    return [each["node"] for each in client_of(store).get("/api/v1/plan").json()["evictions"]]


def test_reclaim_makes_no_room_on_a_node_that_is_reserved_for_another():
    running = [pod(f"r{number}", nodeName="n1") for number in range(4)]
    store = quarrel(node("n1"), *running, refused(pod("owner", "b")))
    assert evictions(store) == ["n1"]
    reserve(store, namespace="c")
    assert evictions(store) == []


def test_reclaim_does_not_count_on_room_that_is_reserved_for_another():
    running = [pod(f"r{number}", nodeName="n1") for number in range(4)]
    store = quarrel(node("n1"), node("n2"), *running, refused(pod("owner", "b")))
    assert evictions(store) == []
    reserve(store, namespace="c", on="n2")
    assert evictions(store) == ["n1"]


def test_reclaim_does_not_wait_for_room_on_a_node_reserved_for_another():
    going = pod("r0", nodeName="n1", metadata={"deletionTimestamp": "2027-01-15T08:00:00Z"})
    running = [going, *(pod(f"r{number}", nodeName=f"n{1 + number % 2}") for number in range(1, 8))]
    store = quarrel(node("n1"), node("n2"), *running, refused(pod("owner", "b")))
    assert evictions(store) == []
    reserve(store, namespace="c")
    assert evictions(store) == ["n2"]


# Waking


def test_who_was_refused_is_woken_when_the_node_is_reserved_no_longer():
    store = store_with(node("n1"), refused(pod("big"), NO_ROOM), refused(pod("other"), KEPT))
    reserve(store)
    assert to_wake(store.cluster) == []
    generation = store.cluster.generations.admission
    store.cluster.delete_reservation("starving-big")
    assert store.cluster.generations.admission > generation
    assert [each.name for each in to_wake(store.cluster)] == ["other"]


def test_pods_that_were_kept_out_are_looked_at_once_for_all_that_is_lifted():
    store = store_with(
        node("n1"), refused(pod("big"), NO_ROOM), refused(pod("other"), KEPT), refused(pod("poor"), NO_ROOM)
    )
    cluster, helped = store.cluster, []
    reserve(store)
    cluster.tick(0)
    for each in ("one", "two"):
        who = PodName("a", "big", f"a/{each}")
        cluster.upsert_reservation(Reservation(f"starving-{each}", who, "n1", (), 0.0, STARVING, job="pods/big"))
    cluster.hints.help = helped.append
    for each in ("starving-one", "starving-two"):
        cluster.delete_reservation(each)
    cluster.tick(0)
    cluster.tick(0)
    assert helped == [["a/other"]]


def test_who_was_refused_counts_as_pending_by_that_rule():
    store = store_with(node("n1"), refused(pod("other"), KEPT))
    assert value(samples_of(store), "quotaward_pending_pods", rule="node-reserved") == 1


@pytest.mark.parametrize(
    ("reserved", "rule", "message"),
    [
        (True, "node-reserved", kept_nodes.RESERVED.text),
        (False, "node-held", "node(s) held for a pod that is being given room"),
    ],
    ids=["reserved", "held"],
)
def test_a_pod_kept_from_all_nodes_is_among_the_decisions_with_the_rule(store, reserved, rule, message):
    if not reserved:
        store.cluster.delete_reservation("starving-big")
        see(store, node("n1", cpu="1", pods="9"))
        who = PodName("a", "big", "a/big")
        store.cluster.upsert_reservation(Reservation("reclaim-big", who, "n1", (), 0.0))
    client = client_of(store)
    client.ask("filter", {"Pod": pod("other"), "NodeNames": ["n1"]})
    [decision] = client.get("/api/v1/decisions").json()["items"]
    assert (decision["verdict"], decision["rule"], decision["message"]) == ("refused", rule, message)


@pytest.mark.parametrize(("node_name", "bound"), [("n1", False), ("n2", True)])
def test_a_binding_whose_grant_is_gone_is_decided_as_in_filter(store, node_name, bound):
    question = {"PodName": "other", "PodNamespace": "a", "PodUID": "a/other", "Node": node_name}
    error = client_of(store).ask("bind", question).get("Error", "")
    assert (error == "") is bound
    assert bound or kept_nodes.RESERVED.text in error
