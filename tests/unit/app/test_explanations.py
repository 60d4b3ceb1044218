"""Reasons for which pods wait: each is named, with a remedy that works, by REST and on the command line."""

import pytest
from typer.testing import CliRunner

from app.cli import app
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import client_of, namespace, node, pod, queue, quota, refused, see, store_with
from tests.unit.app.situations import QUEUE, TOLD, cpus, group, member, running, situations
from tests.unit.app.test_page import Parsed

SITUATIONS = situations()


def admitted(client, change):
    answer = client.request("POST", "/api/v1/whatif", json=change)
    assert answer.status_code == 200, answer.text
    return {each["pod"] for each in answer.json()["admitted"]}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_cause_is_named_and_every_remedy_works(name):
    rule, step, cause, remedy = TOLD[name]
    client = client_of(store_with(*SITUATIONS[name]))
    told = client.get("/api/v1/pods/b/p").json()
    assert (told["verdict"], told["rule"]) == ("refused" if rule else "admissible", rule)
    assert told["next"][0]["step"] == step
    assert cause in told["summary"]
    assert any(remedy in each["text"] for each in told["remedies"]), told["remedies"]
    for each in told["remedies"]:
        assert each["verified"]
        assert "b/p" in admitted(client, each["change"]), each
    with Forwarding(client) as server:
        printed = CliRunner().invoke(app, ["explain", "b/p", "--server", server.url]).output
    assert cause in printed
    assert remedy in printed
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("max", "kubectl delete pod r-1 -n b"),
        ("deserved", """kubectl patch queues.scheduling.volcano.sh b --type merge -p '{"spec":{"weight":2}}'"""),
    ],
)
def test_a_remedy_comes_with_what_to_type(name, command):
    told = client_of(store_with(*SITUATIONS[name])).get("/api/v1/pods/b/p").json()
    assert [command] in [each["commands"] for each in told["remedies"]]


def test_what_kubectl_alone_cannot_do_comes_without_a_command():
    told = client_of(store_with(*SITUATIONS["gang"])).get("/api/v1/pods/b/p").json()
    assert not any(each["commands"] for each in told["remedies"])


def test_who_has_borrowed_is_named_with_the_pods_that_are_over_its_min():
    items = [node("n1", **cpus(9)), quota("a", min={"cpu": 1}), quota("b", min={"cpu": 2}), *running("a", 3)]
    told = client_of(store_with(*items, pod("p", "c"), pod("p", "a"))).get("/api/v1/pods/a/p").json()
    [holder] = told["holders"]
    assert (holder["kind"], holder["name"], holder["over"]) == ("ElasticQuota", "a/quota", "2")
    assert holder["pods"] == ["a/r-2", "a/r-1"]
    assert "ElasticQuota a/quota holds 3 of cpu, 2 over its min of 1: a/r-2, a/r-1." in told["summary"]


IN_GROUP = {"annotations": {"scheduling.k8s.io/group-name": "g"}}


def volcano_group(of, queue_named):
    spec = {"minMember": 1, "queue": queue_named}
    meta = {"name": "g", "namespace": of}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}


def test_a_holder_is_told_to_be_over_the_bound_that_decides():
    items = [node("n1", **cpus(9)), quota("b", min={"cpu": 1}, max={"cpu": 3}), *running("b", 4)]
    told = client_of(store_with(*items, pod("p", "b"))).get("/api/v1/pods/b/p").json()
    assert [(each["boundName"], each["bound"], each["over"]) for each in told["holders"]] == [("max", "3", "1")]
    assert "ElasticQuota b/quota holds 4 of cpu, 1 over its max of 3: b/r-3." in told["summary"]


@pytest.mark.parametrize(
    ("named_by", "who"),
    [
        ([pod("p", "b", metadata={"annotations": {QUEUE: "serch"}})], "its own annotation"),
        ([namespace("b", **{QUEUE: "serch"}), pod("p", "b")], "the annotation of Namespace b"),
        ([volcano_group("b", "serch"), pod("p", "b", metadata=IN_GROUP)], "its PodGroup g"),
    ],
    ids=["pod", "namespace", "group"],
)
def test_of_a_queue_that_is_missing_it_is_told_who_names_it_and_which_are_near(named_by, who):
    client = client_of(store_with(node("n1", **cpus(9)), queue("search"), queue("other"), *named_by))
    told = client.get("/api/v1/pods/b/p").json()
    assert told["rule"] == "queue-closed"
    why = f"Queue is closed: there is no Queue serch, which {who} names"
    assert told["message"] == f"{why}; there is search"
    assert f"b/p is refused by queue-closed: {why}; there is search." in told["summary"]
    assert f"b/p serch {why}" in Parsed(client.get("/").text).words
    answer = client.ask("filter", {"Pod": named_by[-1], "NodeNames": ["n1"]})
    assert list(answer["FailedAndUnresolvableNodes"].values()) == ["Queue is closed"]


def test_a_namespace_that_mistypes_its_queue_is_told_which_it_may_mean():
    items = [node("n1", **cpus(9)), queue("search"), namespace("b", **{QUEUE: "serch"}), pod("p", "b")]
    client = client_of(store_with(*items))
    remedy = client.get("/api/v1/pods/b/p").json()["remedies"][0]
    assert remedy["text"].startswith(f"set the annotation {QUEUE} of Namespace b to search, if ")
    assert remedy["verified"]
    patch = f'{{"metadata":{{"annotations":{{"{QUEUE}":"search"}}}}}}'
    assert remedy["commands"] == [f"kubectl patch namespaces b --type merge -p '{patch}'"]
    assert "b/p" in admitted(client, remedy["change"])


PATCHED = f"""kubectl patch pods p -n b --type merge -p '{{"metadata":{{"annotations":{{"{QUEUE}":"search"}}}}}}'"""


@pytest.mark.parametrize(
    ("named_by", "what", "command"),
    [
        ([pod("p", "b", metadata={"annotations": {QUEUE: "serch"}})], f"the annotation {QUEUE} of Pod b/p", PATCHED),
        ([volcano_group("b", "serch"), pod("p", "b", metadata=IN_GROUP)], "spec.queue of PodGroup b/g", None),
    ],
    ids=["pod", "group"],
)
def test_a_pod_or_group_that_mistypes_its_queue_is_told_what_it_may_mean(named_by, what, command):
    client = client_of(store_with(node("n1", **cpus(9)), queue("search"), *named_by))
    first, second = client.get("/api/v1/pods/b/p").json()["remedies"]
    assert first["text"] == f"set {what} to search, if that is the queue that is meant"
    assert first["commands"] == ([command] if command else [])
    assert "b/p" in admitted(client, first["change"])
    assert second["text"] == "create Queue serch"


def test_a_resource_that_no_node_lists_is_not_judged_and_no_node_is_suggested():
    asks = {"cpu": "1", "example.com/gpu": "1"}
    said = "0/1 nodes are available: 1 Insufficient example.com/gpu."
    items = [node("n1", **cpus(9)), quota("b", min={"cpu": 1}), refused(pod("p", "b", requests=asks), said)]
    told = client_of(store_with(*items)).get("/api/v1/pods/b/p").json()
    text = "no node lists example.com/gpu; who serves it cannot be judged from here"
    assert [(each["step"], each["text"]) for each in told["next"]] == [
        ("undecidable", f"nobody is evicted for it: {text}")
    ]
    assert told["remedies"] == []


def test_of_a_queue_that_is_closed_its_state_is_told():
    closed = queue("q") | {"status": {"state": "Closed"}}
    items = [node("n1", **cpus(9)), closed, namespace("b", **{QUEUE: "q"}), pod("p", "b")]
    assert client_of(store_with(*items)).get("/api/v1/pods/b/p").json()["message"] == (
        "Queue is closed: Queue q is Closed"
    )


def test_a_name_of_any_length_is_told_in_part():
    item = pod("p", "b", metadata={"annotations": {QUEUE: "x" * 100_000}})
    told = client_of(store_with(queue("q"), item)).get("/api/v1/pods/b/p").json()
    assert len(told["message"]) < 200


def test_who_goes_first_on_a_nominated_node_is_named_where_that_decides():
    first = pod("first", "a", priority=1, requests={"cpu": "2"}) | {"status": {"nominatedNodeName": "n1"}}
    items = [node("n1"), quota("a", max={"cpu": 2}), first]
    told = client_of(store_with(*items, pod("p", "a", requests={"cpu": "2"}))).get("/api/v1/pods/a/p").json()
    assert told["numbers"]["cpu"] == {"request": "2", "used": "0", "max": "2", "ahead": "2"}
    [holder] = told["holders"]
    assert (holder["used"], holder["ahead"], holder["first"]) == ("0", "2", ["a/first"])
    assert "cpu: request 2, used 0, ahead 2, max 2." in told["summary"]
    assert (
        "holds 0 of cpu, within its max of 2; 2 more of it is kept for pods that go first: a/first." in told["summary"]
    )


def test_who_is_nominated_to_a_node_that_is_gone_is_said_to_count_for_nothing():
    ghost = pod("ghost", "a", priority=1, requests={"cpu": "2"}) | {"status": {"nominatedNodeName": "gone"}}
    items = [node("n1"), quota("a", max={"cpu": 2}), ghost, pod("waits", "a", requests={"cpu": "2"})]
    answer = client_of(store_with(*items)).get("/api/v1/pods/a/waits").json()
    assert answer["verdict"] == "admissible"
    assert [each["inVain"] for each in answer["holders"]] == [["a/ghost"]]
    assert "a/ghost counts for nothing, as its nominated node cannot take it" in answer["summary"]


def test_who_goes_first_in_another_quota_is_named_where_nothing_is_left_to_borrow():
    first = pod("first", "b", requests={"cpu": "2"}) | {"status": {"nominatedNodeName": "n1"}}
    items = [node("n1"), quota("a", min={"cpu": 0}), quota("b", min={"cpu": 2}), first]
    told = client_of(store_with(*items, pod("p", "a"))).get("/api/v1/pods/a/p").json()
    assert [(each["name"], each["first"]) for each in told["holders"]] == [("b/quota", ["b/first"])]
    assert "poolUsed 0, poolAhead 2, poolMin 2." in told["summary"]


def test_who_should_be_gone_is_told_with_since_when_and_what_ends_it():
    deleted = {"deletionTimestamp": "2026-11-27T10:00:30Z", "name": "old", "namespace": "a", "uid": "old"}
    lost = node("n1") | {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}
    items = [lost, quota("a", max={"cpu": 1}), pod("old", metadata=deleted, nodeName="n1")]
    store = store_with(*items, pod("p", "a"), epoch=lambda: 1795773700.0)  # a minute later
    holds = "a/old is terminating and still holds its quota: it had to be gone by 2026-11-27T10:00:30Z"
    told = client_of(store).get("/api/v1/pods/a/p").json()
    ends = "kubectl delete pod old -n a --force --grace-period=0"
    assert told["terminating"] == [f"{holds}, and its node n1 is unreachable; if it is dead for sure, end it: {ends}"]
    assert told["terminating"][0] in told["summary"]
    assert [each["terminating"] for each in told["holders"]] == [["a/old"]]
    assert client_of(store).get("/api/v1/pods/a/old").json()["terminating"] == told["terminating"]


def test_how_many_are_overdue_is_a_metric():
    deleted = {"deletionTimestamp": "2026-11-27T10:00:30Z", "name": "old", "namespace": "a", "uid": "old"}
    store = store_with(pod("old", metadata=deleted, nodeName="gone"))
    client = client_of(store)
    assert 'quotaward_overdue_pods{namespace="a"} 1.0' in client.get("/metrics").text
    see(store, node("gone"))
    assert 'quotaward_overdue_pods{namespace="a"}' not in client.get("/metrics").text


def test_a_remedy_makes_room_for_those_too_who_go_first():
    first = [refused(pod(f"p{number}", "b")) for number in range(2)]
    bounds = [quota("b", max={"cpu": 1}), quota("c", min={"cpu": 9})]
    items = [node("n1", **cpus(9)), *bounds, *running("b", 1), *first]
    told = client_of(store_with(*items, refused(pod("q", "b")))).get("/api/v1/pods/b/q").json()
    assert told["remedies"][0]["text"] == "raise max of cpu in ElasticQuota b/quota from 1 to at least 4"


def test_when_a_reclaim_starts_is_told_in_seconds():
    items = [node("n1", **cpus(3)), quota("a", min={"cpu": 2}), quota("b", min={"cpu": 1}), *running("a", 3)]
    store = store_with(*items, refused(pod("p", "b"), "0/1 nodes are available: 1 Insufficient cpu."))
    store.clock.now += 0.25
    [step] = client_of(store).get("/api/v1/pods/b/p").json()["next"]
    assert step == {"step": "reclaim-planned", "text": "a/r-2 on node n1 will be evicted for it", "inSeconds": 0.75}


def test_explaining_changes_nothing():
    store = store_with(*SITUATIONS["deserved"])
    before, pods = dict(store.cluster.ledger.entries), dict(store.cluster.pods)
    client_of(store).get("/api/v1/pods/b/p")
    assert store.cluster.ledger.entries == before
    assert store.cluster.pods == pods


def test_where_there_is_no_time_to_try_remedies_the_numbers_suggest_some(monkeypatch):
    store = store_with(*SITUATIONS["max"])
    client = client_of(store)
    monkeypatch.setattr("app.whatif.service.at_leisure", _takes_too_long)
    [first, *_] = client.get("/api/v1/pods/b/p").json()["remedies"]
    assert (first["path"], first["value"], first["verified"], first["change"]) == ("spec.max.cpu", "3", False, None)


async def _takes_too_long(work, deadline=None):
    from app.pause import TimeIsUp  # noqa: PLC0415

    work.close()
    if deadline is not None:
        raise TimeIsUp


def test_a_gang_that_the_queue_of_a_mate_refuses_is_told_what_to_change_there():
    mate = member("mate")
    mate["metadata"]["annotations"] = {QUEUE: "q"}
    items = [node("n1", **cpus(9)), queue("q", capability={"cpu": "500m"}), group("b", 2), mate]
    answer = client_of(store_with(*items, refused(member("p"), "Gang minimum cannot be placed yet"))).get(
        "/api/v1/pods/b/p"
    )
    assert answer.status_code == 200, answer.text
    assert "raise capability of cpu in Queue q" in answer.json()["remedies"][0]["text"]
