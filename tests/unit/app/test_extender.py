"""The verbs, through the whole HTTP application: who passes, what is counted, and what goes wrong."""

import asyncio
import json
from itertools import count

import pytest
from prometheus_client import REGISTRY

from app.actuators.protocol import ActionFailed
from app.actuators.recording import RecordingActuator
from app.extender import wire
from app.extender.endpoints import Extender
from app.extender.verbs import Verb
from app.problems import Problem
from app.sources.manifests import ManifestSource
from app.store.resource_claims import RESOURCE_CLAIMS
from policy.objects.pod import Pod
from policy.preemption.plans import Plan
from policy.preemption.reclaim import reservation_of
from tests.unit.app.given import Clock, client_of, empty_store, node, pod, pod_group, quota, refused, see, store_with

MAX = "ElasticQuota max exceeded: cpu"
PROBLEM = "application/problem+json"


def counted(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0


def results(verb, result):
    return counted("quotaward_extender_requests_total", verb=verb, result=result)


def filtering(item, *nodes):
    return {"Pod": item, "NodeNames": list(nodes or ("n1", "n2"))}


def preempting(item, victims, violations=0):
    meta = {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations} for name, uids in victims.items()
    }
    return {"Pod": item, "NodeNameToMetaVictims": meta}


def binding(name, to="n1", **changes):
    return {"PodName": name, "PodNamespace": "a", "PodUID": f"a/{name}", "Node": to} | changes


@pytest.fixture
def store():
    """Room for one pod of one core in namespace a; the pods p and q wait."""
    return store_with(node("n1"), node("n2"), quota("a", max={"cpu": 1}), pod("p"), pod("q"))


@pytest.fixture
def client(store):
    return client_of(store)


@pytest.fixture
def observing(store):
    return client_of(store, observe=True)


def test_an_admitted_pod_passes_everywhere_and_holds_a_grant(store, client):
    before = results("filter", "admitted")
    assert client.ask("filter", filtering(pod("p"))) == {"NodeNames": ["n1", "n2"]}
    assert "a/p" in store.cluster.grants
    assert results("filter", "admitted") == before + 1


def test_the_first_claim_of_a_cluster_is_waited_for_unless_claims_are_done_without(store, client):
    asked = filtering(pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    assert client.request("POST", "/extender/filter", json=asked).status_code == 503
    assert "a/p" not in store.cluster.grants
    store.complete(RESOURCE_CLAIMS, without=True)
    assert client.ask("filter", asked) == {"NodeNames": ["n1", "n2"]}
    store.complete(RESOURCE_CLAIMS)
    assert client.request("POST", "/extender/filter", json=asked).status_code == 503


def test_in_a_folder_without_claims_pods_count_without_them(store):
    asked = filtering(pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    extender = Extender(store, RecordingActuator(store), of_folder=True)
    assert json.loads(extender.filter(json.dumps(asked).encode())[1]) == {"NodeNames": ["n1", "n2"]}


def test_a_refused_pod_passes_nowhere_and_is_counted_by_rule(store, client):
    before = counted("quotaward_refusals_total", rule="elastic-quota-max"), results("filter", "refused")
    client.ask("filter", filtering(pod("p")))
    answer = client.ask("filter", filtering(pod("q")))
    assert answer == {"NodeNames": [], "FailedAndUnresolvableNodes": {"n1": MAX, "n2": MAX}}
    assert "a/q" not in store.cluster.grants
    after = counted("quotaward_refusals_total", rule="elastic-quota-max"), results("filter", "refused")
    assert after == (before[0] + 1, before[1] + 1)


def test_with_whole_nodes_they_come_back_untouched(client):
    nodes = {"metadata": {}, "items": [node("n2") | {"futureField": [1.50]}, node("n1")]}
    assert client.ask("filter", {"Pod": pod("p"), "Nodes": nodes, "NodeNames": None}) == {"Nodes": nodes}
    answer = client.ask("filter", {"Pod": pod("q"), "Nodes": nodes})
    assert answer == {"Nodes": {"items": []}, "FailedAndUnresolvableNodes": {"n2": MAX, "n1": MAX}}


def test_the_same_question_has_the_same_answer(client):
    for _ in range(3):
        assert client.ask("filter", filtering(pod("p")))["NodeNames"] == ["n1", "n2"]
        assert client.ask("filter", filtering(pod("q")))["NodeNames"] == []


def test_a_pod_that_the_watch_has_not_shown_yet_is_judged_by_the_request(client):
    assert client.ask("filter", filtering(pod("unseen", requests={"cpu": 2})))["NodeNames"] == []
    assert client.ask("filter", filtering(pod("unseen too")))["NodeNames"] == ["n1", "n2"]


def test_no_node_is_preferred(client):
    assert client.ask("prioritize", filtering(pod("p"))) == []


def test_victims_are_of_the_quota_that_they_make_room_in():
    low, other = pod("low", nodeName="n1"), pod("low", "b", nodeName="n1")
    store = store_with(node("n1", cpu="2", pods="9"), quota("a", max={"cpu": 1}), low, other)
    answer = client_of(store).ask("preempt", preempting(pod("high", priority=5), {"n1": ["b/low"]}))
    assert answer == {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "a/low"}], "NumPDBViolations": 0}}}


def test_nobody_is_evicted_for_a_pod_that_is_on_a_node_and_would_grow():
    grown = pod("high", requests={"cpu": 4}, priority=5, nodeName="n1")
    lent = pod("low", "b", requests={"cpu": 1}, nodeName="n1")
    for growing, victims in ((grown, set()), (pod("high", requests={"cpu": 4}, priority=5), {"n1"})):
        bounds = quota("a", min={"cpu": 4}), quota("b", min={"cpu": 0})
        store = store_with(node("n1", cpu="4", pods="9"), *bounds, lent, growing)
        answer = client_of(store).ask("preempt", preempting(grown, {"n1": ["b/low"]}))
        assert (answer.get("NodeNameToMetaVictims") or {}).keys() == victims


def test_after_evictions_in_vain_the_scheduler_evicts_only_own_pods_for_a_while():
    clock = Clock()
    bounds = [quota("a", min={"cpu": 2}), quota("b", min={"cpu": 0})]
    store = store_with(node("n1", cpu="2", pods="9"), *bounds, clock=clock)
    client = client_of(store)

    numbers = count()

    def asks(name, **spec):
        lent = sum(each.namespace == "b" for each in store.cluster.pods.values())
        see(store, *[pod(f"lent{next(numbers)}", "b", nodeName="n1") for _ in range(2 - lent)])
        item = refused(pod(name, priority=5, **spec))
        see(store, item)
        return client.ask("preempt", preempting(item, {"n1": ["b/lent0"]}))

    steps = (("p", 0, 1), ("q", 0, 0), ("q", 9, 0), ("q", 1, 1), ("r", 0, 0), ("r", 19, 0), ("r", 1, 1))
    for name, seconds, victims in steps:
        clock.now += seconds
        answer = asks(name)
        gone = [each["UID"] for each in answer.get("NodeNameToMetaVictims", {}).get("n1", {"Pods": []})["Pods"]]
        assert len(gone) == victims, name
        for uid in [*gone, *([f"a/{name}"] if gone else [])]:
            store.cluster.delete_pod(uid)
    see(store, node("n2", cpu="1", pods="9"), pod("own", nodeName="n2"))
    asks("s")
    offered = preempting(refused(pod("s", priority=5)), {"n1": ["b/lent0"], "n2": ["a/own"]})
    assert client.ask("preempt", offered)["NodeNameToMetaVictims"].keys() == {"n2"}, "its own are its own"


@pytest.mark.parametrize("asked", [True, False])
def test_the_scheduler_gets_no_victims_that_leave_those_of_a_plan_within_min(asked):
    """Namespace b uses 3.5 of min 2; a plan takes one core, and then the pod of 1.5 may go, but not before."""
    large, small = pod("large", "b", {"cpu": "1500m"}, nodeName="n1"), pod("small", "b", nodeName="n2")
    nodes = node("n1", cpu="1500m", pods=9), node("n2", cpu=2, pods=9)
    bounds = quota("a", min={"cpu": 9}), quota("b", min={"cpu": 2})
    owner, late = refused(pod("owner")), refused(pod("late", requests={"cpu": "1500m"}))
    store = store_with(*nodes, *bounds, large, small, pod("rest", "b", nodeName="n2"), owner, late)
    cluster = store.cluster
    plan = Plan(cluster.pods["a/owner"], "n2", (cluster.pods["b/small"],), 0)
    cluster.upsert_reservation(reservation_of(plan, since=0))
    if asked:
        cluster.leaving.ask_to_go("b/small")
    answer = client_of(store).ask("preempt", preempting(late, {"n1": ["b/large"]}))
    assert bool(answer.get("NodeNameToMetaVictims")) is asked


def critical(namespace="kube-system"):
    return pod("cni", namespace, priority=2_000_001_000)


@pytest.mark.parametrize("namespace", ["kube-system", "free"])
def test_for_a_pod_that_no_rule_applies_to_the_scheduler_has_its_way(namespace):
    runs = pod("runs", nodeName="n1"), pod("dns", "kube-system", nodeName="n1", priority=2_000_000_000)
    client = client_of(store_with(node("n1", cpu="2", pods="9"), quota("a", min={"cpu": 2}), *runs))
    request = preempting(critical(namespace), {"n1": ["kube-system/dns", "a/runs"], "n2": []}, violations=1)
    victims = {"Pods": [{"UID": "kube-system/dns"}, {"UID": "a/runs"}], "NumPDBViolations": 1}
    assert client.ask("preempt", request) == {"NodeNameToMetaVictims": {"n1": victims}}


@pytest.mark.parametrize("namespace", ["kube-system", "free"])
def test_but_where_budgets_are_to_be_respected_it_may_not_violate_one(namespace):
    store = store_with(node("n1"))
    extender = Extender(store, RecordingActuator(store), respect_budgets=True)
    for violations, proposed in ((0, ["a/x"]), (1, [])):
        request = preempting(critical(namespace), {"n1": ["a/x"]}, violations=violations)
        answer = json.loads(extender.preempt(json.dumps(request).encode())[1])
        given = answer.get("NodeNameToMetaVictims", {}).get("n1", {"Pods": []})["Pods"]
        assert [each["UID"] for each in given] == proposed


def test_what_is_not_known_yet_holds_up_no_critical_pod_of_an_exempt_namespace():
    client = client_of(empty_store())
    assert client.ask("filter", filtering(critical())) == {"NodeNames": ["n1", "n2"]}
    assert client.ask("preempt", preempting(critical(), {"n1": ["x"]}))["NodeNameToMetaVictims"].keys() == {"n1"}
    for item in (critical("free"), pod("p", "kube-system")):
        assert client.request("POST", "/extender/filter", json=filtering(item)).status_code == 503
        assert client.request("POST", "/extender/preempt", json=preempting(item, {"n1": ["x"]})).status_code == 503


def test_a_place_that_is_held_for_a_member_of_a_gang_does_not_bind_a_critical_one():
    member = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    gang = [pod(name, metadata=member, priority=priority) for name, priority in (("x", 0), ("cni", 2_000_001_000))]
    store = store_with(node("n1", cpu="1", pods="9"), node("n2", cpu="1", pods="9"), node("n3", cpu="1", pods="9"))
    see(store, pod_group("g"), *gang)
    client = client_of(store)
    everywhere = ["n1", "n2", "n3"]
    assert len(client.ask("filter", filtering(gang[0], *everywhere))["NodeNames"]) == 1
    assert store.cluster.gangs.node_for("a/cni")
    assert client.ask("filter", filtering(gang[1], *everywhere)) == {"NodeNames": everywhere}


def test_nobody_is_evicted_for_a_pod_that_its_quota_refuses(store, client):
    client.ask("filter", filtering(pod("p")))
    before = dict(store.cluster.ledger.entries)
    assert client.ask("preempt", preempting(pod("q"), {"n1": ["x"]})) == {}
    assert store.cluster.ledger.entries == before


def test_a_granted_pod_is_bound(store, client):
    client.ask("filter", filtering(pod("p")))
    assert client.ask("bind", binding("p")) == {}
    assert store.cluster.pods["a/p"].node == "n1"
    assert store.cluster.ledger.account("a").assigned == {"cpu": 1000, "pods": 1}


def test_a_binding_is_checked_once_more_when_its_grant_is_gone(store, client):
    assert client.ask("bind", binding("q")) == {}  # there is room, so it gets a grant on the way
    before = results("bind", "refused")
    assert client.ask("bind", binding("p")) == {"Error": MAX}
    assert results("bind", "refused") == before + 1
    assert store.cluster.pods["a/p"].node == ""


@pytest.mark.parametrize(
    "changes",
    [{"PodUID": "unknown"}, {"PodName": "q"}, {"PodNamespace": "b"}, {"Node": "unknown"}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_cannot_be_bound_is_said_in_the_answer(store, client, changes):
    assert "known" in client.ask("bind", binding("p", **changes))["Error"]
    assert store.cluster.pods["a/p"].node == ""


def test_a_pod_is_bound_once(client):
    client.ask("bind", binding("p"))
    assert "already" in client.ask("bind", binding("p", to="n2"))["Error"]


class Failing(RecordingActuator):
    """Raises instead of binding."""

    def __init__(self, error):
        self.error = error

    async def bind(self, pod, node):
        raise self.error


def test_a_binding_that_fails_leaves_the_grant_to_its_time(store):
    client = client_of(store, actuator=Failing(ActionFailed("the API server answered 500")))
    client.ask("filter", filtering(pod("p")))
    assert client.ask("bind", binding("p")) == {"Error": "the API server answered 500"}
    assert "a/p" in store.cluster.grants


def test_an_error_of_our_own_is_a_problem_document_and_changes_nothing_for_others(store):
    client = client_of(store, actuator=Failing(RuntimeError("secret")))
    answer = client.request("POST", "/extender/bind", json=binding("p"))
    assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM)
    assert "secret" not in answer.text
    assert client.ask("prioritize", filtering(pod("q"))) == []


# observe mode: what would have been refused is counted, and nobody is kept from anything


def test_observing_lets_everybody_pass_and_counts_whom_it_would_have_refused(store, observing):
    before = counted("quotaward_refusals_total", rule="elastic-quota-max"), results("filter", "would-refuse")
    for name in "pq":
        assert observing.ask("filter", filtering(pod(name))) == {"NodeNames": ["n1", "n2"]}
    after = counted("quotaward_refusals_total", rule="elastic-quota-max"), results("filter", "would-refuse")
    assert after == (before[0] + 1, before[1] + 1)
    assert store.cluster.ledger.account("a").used == {"cpu": 2000, "pods": 2}


@pytest.mark.parametrize("mode", ["meta", "full"])
def test_observing_leaves_the_victims_to_the_scheduler(observing, mode):
    observing.ask("filter", filtering(pod("p")))
    request = preempting(pod("q"), {"n1": ["a/x"], "n2": []}, violations=2)
    if mode == "full":
        meta = request.pop("NodeNameToMetaVictims")
        request["NodeNameToVictims"] = meta | {"n1": meta["n1"] | {"Pods": [pod("x", nodeName="n1")]}}
    answer = observing.ask("preempt", request)
    assert answer == {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "a/x"}], "NumPDBViolations": 2}}}


def test_observing_binds_anybody(store, observing):
    for name in "pq":
        assert observing.ask("bind", binding(name)) == {}
    assert {item.node for item in store.cluster.pods.values()} == {"n1"}


def test_observing_passes_even_a_quota_that_cannot_be_read(observing, store):
    see(store, quota("b", max={"cpu": "x"}))
    assert observing.ask("filter", filtering(pod("p", "b")))["NodeNames"] == ["n1", "n2"]


def unsettled():
    """A store that has just started: pods p and q may both have been admitted by an earlier process."""
    return store_with(node("n1"), quota("a", max={"cpu": 1}), pod("p"), pod("q"), settle_time=3)


def test_what_cannot_be_decided_right_after_a_start_has_to_be_asked_again():
    answer = client_of(unsettled()).request("POST", "/extender/filter", json=filtering(pod("p")))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "not settled" in answer.json()["detail"]


def test_observing_keeps_nobody_waiting_right_after_a_start():
    client = client_of(unsettled(), observe=True)
    assert client.ask("filter", filtering(pod("p")))["NodeNames"] == ["n1", "n2"]


def test_a_verb_is_called_by_post_alone(client):
    for method in ("GET", "PUT", "DELETE"):
        answer = client.request(method, "/extender/filter")
        assert (answer.status_code, answer.headers["allow"], answer.headers["content-type"]) == (405, "POST", PROBLEM)


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("filter", {}, "Pod"),
        ("filter", {"Pod": None, "NodeNames": []}, "Pod"),
        ("filter", {"Pod": {}, "NodeNames": []}, "metadata"),
        ("filter", {"Pod": {"metadata": {"name": "p"}}, "NodeNames": []}, "Pod.metadata.uid"),
        ("filter", {"Pod": pod("p")}, "NodeNames"),
        ("filter", {"Pod": pod("p"), "NodeNames": {}}, "NodeNames"),
        ("filter", {"Pod": pod("p"), "Nodes": []}, "Nodes"),
        ("filter", filtering(pod("p", requests={"cpu": "x"})), "Pod.spec.containers[0].resources.requests.cpu"),
        ("filter", filtering(pod("p", priority="high")), "Pod.spec.priority"),
        ("preempt", {"Pod": pod("p"), "NodeNameToMetaVictims": {"n1": {"Pods": [{}]}}}, "UID"),
        ("bind", {"PodName": "p", "PodNamespace": "a", "Node": "n1"}, "PodUID"),
        ("bind", binding("p", Node=5), "Node"),
    ],
)
def test_a_malformed_request_is_told_which_field_is_at_fault(client, verb, body, field):
    answer = client.request("POST", f"/extender/{verb}", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROBLEM)
    problem = answer.json()
    assert field in problem.get("field", "") or f"`{field}`" in problem["detail"]


def test_a_request_that_is_not_json_leaves_the_ledger_alone(store, client):
    for body in (b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000):
        assert client.request("POST", "/extender/filter", content=body).status_code == 400
    assert store.cluster.ledger.entries == {}


def test_a_node_list_that_is_damaged_is_told_so_when_it_has_to_be_read(store, client):
    client.ask("filter", filtering(pod("p")))
    answer = client.request("POST", "/extender/filter", json=filtering(pod("q")) | {"NodeNames": ["n1", 2]})
    assert (answer.status_code, answer.json()["field"]) == (400, "NodeNames[1]")


def send(verb, *messages):
    """What the verb as an ASGI application sends when this is received."""
    waiting, sent = list(messages), []

    async def receive():
        return waiting.pop(0)

    async def take(message):
        sent.append(message)

    asyncio.run(verb({"type": "http", "method": "POST"}, receive, take))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def part(body, *, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_comes_in_pieces():
    verb = Verb("filter", lambda body: ("admitted", body), limit=4)
    assert send(verb, part(b"ab", more=True), part(b"", more=True), part(b"cd")) == (200, b"abcd")


def test_a_body_beyond_the_limit_is_refused_however_it_comes():
    verb = Verb("filter", lambda body: ("admitted", body), limit=4)
    assert send(verb, part(b"abcde"))[0] == 413
    assert send(verb, part(b"ab", more=True), part(b"cd", more=True), part(b"e"))[0] == 413


def test_a_client_that_goes_away_is_no_error_of_ours():
    verb = Verb("filter", lambda body: ("admitted", body), limit=4)
    assert send(verb, part(b"ab", more=True), {"type": "http.disconnect"})[0] == 400


def test_a_refused_pod_of_the_watch_is_still_asked_for_as_it_is(store, client):
    see(store, refused(pod("p")))
    assert client.ask("filter", filtering(refused(pod("p"))))["NodeNames"] == ["n1", "n2"]


def turned_down(names):
    args = wire.read_args(b'{"Pod":{"metadata":{}},"NodeNames":%b}' % names.encode())
    return json.loads(wire.none_pass(args, 'it is "so"'))


@pytest.mark.parametrize(
    "names",
    [
        *('["n1"]', '["n1","n2"]', '["n1", "n2"]', '[ "n1" ]', "[]", '["é","n2"]'),
        *('[""]', '["",""]', '[","]', '[",",","]', '["a",",","b"]', '["a,b",":"]'),
        *(r'["\u006e1","n2"]', r'["\",\"","n2"]', r'["\\","n2"]'),
    ],
)
def test_a_refusal_names_every_node_however_the_names_are_written(names):
    failed = dict.fromkeys(json.loads(names), 'it is "so"')
    assert turned_down(names) == {"NodeNames": [], "FailedAndUnresolvableNodes": failed}


@pytest.mark.parametrize(
    "kept", [[], ["n1"], ["n2"], ["n3"], ["n1", "n3"], [f"n{each}" for each in (1, *range(3, 10))]]
)
@pytest.mark.parametrize("read", [False, True], ids=["in the bytes", "read"])
@pytest.mark.parametrize(
    "names",
    [
        *('["n1","n2","n3"]', '["n1", "n2", "n3"]', '[ "n3" , "n1" ]', '["n1",\n\t"n3"\n]', "[]", '["é","n1"]'),
        *('["n11","n2"]', '["n3"]', r'["\u006e1","n2"]', r'["\",\"","n1"]'),
    ],
)
def test_some_nodes_are_refused_however_the_names_are_written(names, read, kept):
    offered = json.loads(names)
    args = wire.read_args(b'{"Pod":{"metadata":{}},"NodeNames":%b}' % names.encode())
    found = wire.Candidates(args)
    assert not read or list(found) == offered
    assert ([each for each in kept if each in found], len(found)) == (sorted(set(kept) & set(offered)), len(offered))
    failed = {each: "no" for each in offered if each in kept}
    reply = json.loads(wire.some_pass(args, found, failed))
    assert reply == {"NodeNames": [each for each in offered if each not in kept], "FailedAndUnresolvableNodes": failed}


@pytest.mark.parametrize("names", ['["a",1,"b"]', '["a",null,"b"]', '["a",["b"],"c"]', '["a",{"b":"c"},"d"]'])
def test_what_is_no_list_of_names_is_no_list_of_refused_nodes_either(names):
    with pytest.raises(Problem):
        turned_down(names)


def test_a_pod_of_a_folder_requests_what_the_api_server_would_have_filled_in(folder):
    limited = pod("p", requests={}, resources={"limits": {"cpu": 4}})
    folder.write("all.yaml", quota("a", max={"cpu": 3}), limited)
    store = empty_store()
    ManifestSource(folder.path, store)
    uid = {"metadata": limited["metadata"] | {"uid": store.cluster.pod("a", "p").uid}}
    question = json.dumps({"Pod": limited | uid, "NodeNames": ["n1"]}).encode()
    assert Extender(store, RecordingActuator(store), of_folder=True).filter(question)[0] == "refused"
    assert Extender(store, RecordingActuator(store)).filter(question)[0] == "admitted"


@pytest.mark.parametrize(("seen", "asked", "passes"), [("5", "5", True), ("5", "6", False), (None, None, False)])
def test_a_pod_that_is_known_in_the_version_of_the_request_is_not_read_again(store, client, seen, asked, passes):
    see(store, pod("p", metadata={"resourceVersion": seen}))
    reply = client.ask("filter", filtering(pod("p", requests={"cpu": "2"}, metadata={"resourceVersion": asked})))
    assert bool(reply["NodeNames"]) == passes


def test_a_decision_keeps_no_pod_that_is_gone(store, client):
    client.ask("filter", filtering(pod("p")))
    [decision] = client.app.state.decisions
    assert not any(isinstance(part, Pod) for part in decision)
    assert (decision.namespace, decision.name) == ("a", "p")
