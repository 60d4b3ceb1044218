"""Bodies recorded from a real kube-scheduler, sent byte for byte, and answers as its decoder wants them."""

import pytest

from tests.wire.cluster import NODES, immovable, pending, proposed_victims
from tests.wire.recordings import recording

OVER_MAX = "ElasticQuota max exceeded: cpu"
FILTER_KEYS = {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}


def answer_of(response):
    """The decoded body of a good answer."""
    assert (response.status, response.headers.get_content_type()) == (200, "application/json")
    return response.json


def filtered(response):
    """A filter answer without what says nothing; its keys are those that Go's decoder knows, letter for letter."""
    answer = answer_of(response)
    assert set(answer) <= FILTER_KEYS
    return {key: value for key, value in answer.items() if value and not (key == "Nodes" and not value["items"])}


def proposed(response):
    """Nodes and victims of a preempt answer; its keys are those that Go's decoder knows, letter for letter."""
    answer = answer_of(response)
    assert set(answer) <= {"NodeNameToMetaVictims"}
    victims = answer.get("NodeNameToMetaVictims") or {}
    for told in victims.values():
        assert set(told) == {"Pods", "NumPDBViolations"}
        assert all(set(pod) == {"UID"} for pod in told["Pods"])
    return {node: ([pod["UID"] for pod in told["Pods"]], told["NumPDBViolations"]) for node, told in victims.items()}


@pytest.fixture(scope="module")
def refusing(serve):
    """A quota of 500m of cpu in both namespaces: every recorded pod is over it. Both nodes are full."""
    return serve(
        {
            "nodes": NODES,
            "elasticQuotas": {"a": {"max": {"cpu": "500m"}}, "b": {"max": {"cpu": "500m"}}},
            "pods": [
                *(pending(name) for name in ("filter.node-names", "filter.full-nodes", "preempt.full-victims")),
                pending("preempt.meta-victims"),
                *proposed_victims("preempt.meta-victims"),
            ],
        }
    )


@pytest.fixture(scope="module")
def full(serve):
    """Half of each node is used by a victim of the full recording, half by a pod that stays."""
    budget = {"selector": {"app": "x"}, "disruptionsAllowed": 0}  # as when the request was recorded
    pods = [pending("preempt.full-victims"), *proposed_victims("preempt.full-victims"), *immovable("n1", "n2")]
    return serve({"nodes": NODES, "pdbs": {"b/x": budget}, "pods": pods})


@pytest.fixture(scope="module")
def full_with_known_uids(serve):
    pods = [pending("preempt.meta-victims"), *proposed_victims("preempt.meta-victims"), *immovable("n1")]
    return serve({"nodes": NODES, "pods": pods})


def test_filter_echoes_the_node_names_in_their_order(server):
    sent = recording("filter.node-names")
    assert filtered(sent.send(server)) == {"NodeNames": ["n1", "n2"]}
    sent.request["NodeNames"].reverse()
    assert filtered(sent.send(server)) == {"NodeNames": ["n2", "n1"]}


def test_filter_echoes_whole_nodes_untouched(server):
    sent = recording("filter.full-nodes")
    assert filtered(sent.send(server)) == {"Nodes": sent.request["Nodes"]}


def test_filter_echoes_nodes_that_it_has_never_heard_of(server):
    sent = recording("filter.node-names")
    sent.request["NodeNames"] = ["new-1", "n1", "new-2"]  # the watch may be behind the scheduler's
    assert filtered(sent.send(server)) == {"NodeNames": ["new-1", "n1", "new-2"]}


def test_filter_echoes_many_names_unchanged(server):
    sent = recording("filter.node-names")
    sent.request["NodeNames"] = [f"node-{number}.eu-west-1.compute.example" for number in range(5000)]
    assert filtered(sent.send(server)) == {"NodeNames": sent.request["NodeNames"]}


def test_filter_echoes_names_that_go_escapes(server):
    sent = recording("filter.node-names")
    sent.request["NodeNames"] = ["a<b>&c", "käse", 'quo"te\\', "line\u2028end"]
    assert filtered(sent.send(server)) == {"NodeNames": sent.request["NodeNames"]}


def test_a_refusal_names_every_node_as_unresolvable(refusing):
    unresolvable = {"FailedAndUnresolvableNodes": {"n1": OVER_MAX, "n2": OVER_MAX}}
    assert filtered(recording("filter.node-names").send(refusing)) == unresolvable
    assert filtered(recording("filter.full-nodes").send(refusing)) == unresolvable


def test_a_refusal_is_the_same_text_each_time(refusing):
    sent = recording("filter.node-names")
    assert len({sent.send(refusing).content for _ in range(5)}) == 1


@pytest.mark.parametrize("name", ["prioritize.node-names", "prioritize.full-nodes"])
def test_prioritize_answers_an_empty_list_where_nothing_is_preferred(server, name):
    assert answer_of(recording(name).send(server)) == []


def test_preempt_answers_the_proposed_victims_by_uid(full_with_known_uids):
    sent = recording("preempt.meta-victims")
    assert proposed(sent.send(full_with_known_uids)) == {"n1": (["465d113e-727c-4d21-b030-45e63cf15be2"], 0)}


def test_preempt_answers_whole_victims_by_uid_too(full):
    assert proposed(recording("preempt.full-victims").send(full)) == {
        "n1": (["40196bc9-33b5-44a0-b882-0a46f50cbb1d"], 1),
        "n2": (["104e68a2-5c27-4ca0-b50e-d00e320da614"], 0),
    }


@pytest.mark.parametrize("name", ["preempt.meta-victims", "preempt.full-victims"])
def test_preempt_answers_nothing_at_all_for_a_pod_that_its_quota_refuses(refusing, name):
    assert answer_of(recording(name).send(refusing)) == {}


@pytest.mark.parametrize("nobody", [[], None])
def test_preempt_leaves_out_nodes_without_victims(full_with_known_uids, nobody):
    sent = recording("preempt.meta-victims")
    sent.request["NodeNameToMetaVictims"]["n2"] = {"Pods": nobody, "NumPDBViolations": 0}
    assert proposed(sent.send(full_with_known_uids)) == {"n1": (["465d113e-727c-4d21-b030-45e63cf15be2"], 0)}


@pytest.mark.parametrize("nobody", [[], None])
def test_preempt_leaves_out_whole_nodes_without_victims(full, nobody):
    sent = recording("preempt.full-victims")
    sent.request["NodeNameToVictims"]["n2"] = {"Pods": nobody, "NumPDBViolations": 0}
    assert proposed(sent.send(full)) == {"n1": (["40196bc9-33b5-44a0-b882-0a46f50cbb1d"], 1)}


@pytest.mark.parametrize("nobody", [[], None])
def test_preempt_without_any_victim_has_no_candidate(full_with_known_uids, nobody):
    sent = recording("preempt.meta-victims")
    sent.request["NodeNameToMetaVictims"] = {"n1": {"Pods": nobody, "NumPDBViolations": 0}}
    assert proposed(sent.send(full_with_known_uids)) == {}


def test_preempt_without_candidates_has_no_candidate(full_with_known_uids):
    sent = recording("preempt.meta-victims")
    sent.request["NodeNameToMetaVictims"] = {}
    assert proposed(sent.send(full_with_known_uids)) == {}


def test_bind_binds(serve):
    server = serve({"nodes": NODES, "pods": [pending("filter.full-nodes")]})
    assert server.get("/api/v1/pods/b/w0").json["verdict"] == "admissible"
    assert answer_of(recording("bind").send(server)) in ({}, {"Error": ""})
    assert server.get("/api/v1/pods/b/w0").json["verdict"] == "bound"


@pytest.mark.parametrize(
    "wrong",
    [{"PodName": "nobody"}, {"PodUID": "0c0e403e-8316-49d8-a169-000000000000"}],
    ids=["no such pod", "another pod of that name"],
)
def test_bind_says_why_it_cannot(server, wrong):
    sent = recording("bind")
    sent.request.update(wrong)
    answer = answer_of(sent.send(server))
    assert set(answer) == {"Error"}
    assert answer["Error"]
    assert server.get("/api/v1/pods/b/w0").json["verdict"] == "admissible"


def test_fields_that_nobody_knows_are_ignored(server):
    sent = recording("filter.node-names")
    sent.request["New"] = {"deep": [1, {"er": None}]}
    sent.request["Pod"]["spec"]["fromTheFuture"] = [{"x": -1.5e300}]
    sent.request["Pod"]["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {".": {}}}}]
    assert filtered(sent.send(server)) == {"NodeNames": ["n1", "n2"]}


@pytest.mark.parametrize("resources", [{}, {"requests": {}}, {"requests": None}, None])
def test_a_pod_that_requests_nothing_passes(server, resources):
    sent = recording("filter.node-names")
    sent.request["Pod"]["spec"]["containers"][0]["resources"] = resources
    assert filtered(sent.send(server)) == {"NodeNames": ["n1", "n2"]}


def test_a_pod_that_the_store_has_not_seen_is_judged_by_the_request(refusing):
    sent = recording("filter.node-names")
    sent.request["Pod"]["metadata"] |= {"name": "newer", "uid": "5f3c8a52-3f04-44a4-9f2c-5b7a0a3a8c11"}
    assert filtered(sent.send(refusing)) == {"FailedAndUnresolvableNodes": {"n1": OVER_MAX, "n2": OVER_MAX}}
    sent.request["Pod"]["metadata"]["namespace"] = "free"
    assert filtered(sent.send(refusing)) == {"NodeNames": ["n1", "n2"]}
