"""Bodies that no scheduler sends: each is turned down with a problem document, and the process lives on."""

import copy
import json

import pytest

from tests.cases.serving import go_json
from tests.controlplane.processes import processor_seconds
from tests.wire.raw import RawConnection, head
from tests.wire.recordings import recording

VERBS = ("filter", "prioritize", "preempt", "bind")
MIB = 2**20


def problem_of(response, status=None):
    """The problem document of a 4xx answer, checked for its shape."""
    assert 400 <= response.status < 500, response.content[:500]
    assert status is None or response.status == status
    assert response.headers.get_content_type() == "application/problem+json"
    problem = response.json
    assert problem["status"] == response.status
    assert isinstance(problem["type"], str)
    assert problem["title"]
    assert problem["detail"]
    assert len(response.content) < 4096  # what was sent is not sent back
    return problem


def goes_on(server):
    """The next good call is answered as if nothing had been."""
    assert server.lives(), server.log_tail()
    answer = recording("filter.node-names").send(server)
    assert (answer.status, answer.json["NodeNames"]) == (200, ["n1", "n2"])


def send(server, content, verb="filter"):
    if not isinstance(content, bytes):
        content = go_json(content)
    with RawConnection(server.port) as connection:
        return connection.post(f"/extender/{verb}", content)


def request(name="filter.node-names", **fields):
    return {**recording(name).request, **fields}


def with_requests(requests, name="filter.node-names"):
    body = copy.deepcopy(recording(name).request)
    body["Pod"]["spec"]["containers"][0]["resources"]["requests"] = requests
    return body


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "content",
    [b"", b" ", b"{", b"null", b"[]", b'"text"', b"7", b"<xml/>", b"{}{}", b'{"Pod":', b"\xff\xfe", b"\x00", b"NaN"],
    ids=repr,
)
def test_what_is_not_a_json_object_is_turned_down(server, verb, content):
    problem_of(send(server, content, verb))
    goes_on(server)


@pytest.mark.parametrize("name", ["filter.node-names", "prioritize.full-nodes", "preempt.meta-victims", "bind"])
def test_a_truncated_body_is_turned_down(server, name):
    sent = recording(name)
    for length in (1, len(sent.content) // 2, len(sent.content) - 1):
        problem_of(send(server, sent.content[:length], sent.verb))
    goes_on(server)


@pytest.mark.parametrize("verb", VERBS)
def test_an_empty_object_is_turned_down(server, verb):
    assert problem_of(send(server, b"{}", verb))["field"]
    goes_on(server)


@pytest.mark.parametrize(
    ("name", "fields", "at_fault"),
    [
        ("filter.node-names", {"Pod": []}, "Pod"),
        ("filter.node-names", {"Pod": "w0"}, "Pod"),
        ("filter.node-names", {"Pod": None}, "Pod"),
        ("filter.node-names", {"Pod": {}}, "Pod"),
        ("filter.node-names", {"NodeNames": {"n1": "n2"}}, "NodeNames"),
        ("filter.node-names", {"NodeNames": "n1"}, "NodeNames"),
        ("filter.node-names", {"NodeNames": None}, "NodeNames"),
        ("filter.full-nodes", {"Nodes": ["n1"]}, "Nodes"),
        ("prioritize.node-names", {"NodeNames": {}}, "NodeNames"),
        ("prioritize.node-names", {"NodeNames": None}, "NodeNames"),
        ("prioritize.node-names", {"Pod": None}, "Pod"),
        ("preempt.meta-victims", {"Pod": None}, "Pod"),
        ("preempt.meta-victims", {"NodeNameToMetaVictims": ["n1"]}, "NodeNameToMetaVictims"),
        ("preempt.meta-victims", {"NodeNameToMetaVictims": {"n1": {"Pods": {"UID": "x"}}}}, "NodeNameToMetaVictims"),
        ("preempt.meta-victims", {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": 7}]}}}, "NodeNameToMetaVictims"),
        ("preempt.full-victims", {"NodeNameToVictims": {"n1": {"Pods": ["w1"]}}}, "NodeNameToVictims"),
        ("bind", {"Node": 7}, "Node"),
        ("bind", {"PodName": None}, "PodName"),
        ("bind", {"PodNamespace": ["b"]}, "PodNamespace"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(server, name, fields, at_fault):
    problem = problem_of(send(server, request(name, **fields), recording(name).verb))
    assert at_fault in problem["field"]
    goes_on(server)


@pytest.mark.parametrize("field", ["Pod", "NodeNames"])
def test_a_field_that_is_missing_is_named(server, field):
    body = request()
    del body[field]
    assert field in problem_of(send(server, body))["field"]
    goes_on(server)


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod["metadata"].update(name=["x"]),
        lambda pod: pod["metadata"].update(uid=7),
        lambda pod: pod["metadata"].pop("namespace"),
        lambda pod: pod["metadata"].pop("uid"),
        lambda pod: pod["spec"].update(containers={}),
        lambda pod: pod["spec"].update(containers=[[]]),
        lambda pod: pod["spec"].update(priority="high"),
        lambda pod: pod["spec"]["containers"][0].update(resources=[]),
        lambda pod: pod["spec"]["containers"][0]["resources"].update(requests=["cpu"]),
        lambda pod: pod["spec"]["containers"][0]["resources"].update(requests={"cpu": {}}),
        lambda pod: pod["spec"]["containers"][0]["resources"].update(requests={"cpu": True}),
    ],
)
def test_a_malformed_pod_is_turned_down(server, change):
    body = request()
    change(body["Pod"])
    assert "Pod" in problem_of(send(server, body))["field"]
    goes_on(server)


@pytest.mark.parametrize("resource", ["cpu", "memory", "nvidia.com/gpu"])
@pytest.mark.parametrize(
    "quantity",
    [
        *("abc", "-1", "-1e3", "-1e999999999", "", " 1", "1 Gi", "1gi", "1e", "0x10", "1_000", "\u0661"),
        *("NaN", "Infinity", "1.2.3", "--1", "Ki", "1\x00", ".", "1e1.5", "1Kim"),
        pytest.param("x" * 100_000, id="100,000 letters"),
        pytest.param("-" + "9" * 100_000, id="minus 100,000 digits"),
    ],
)
def test_what_is_no_quantity_is_turned_down(server, resource, quantity):
    before = processor_seconds(server.process.pid)
    problem = problem_of(send(server, with_requests({resource: quantity})))
    assert processor_seconds(server.process.pid) - before < 2
    assert "Pod" in problem["field"]
    assert resource in problem["field"]
    goes_on(server)


def limited(number, **requests):
    """The request for a pod of the namespace whose quota is 1 cpu; for 1 cpu, if nothing else is said."""
    body = with_requests({"cpu": "1", **requests})
    body["Pod"]["metadata"] |= {"name": f"limited-{number}", "namespace": "q", "uid": f"limited-{number}"}
    return body


@pytest.mark.parametrize(
    "quantity",
    [
        *("1e999999999", "99999999999999999999999Ei", "9223372036854775808", f"1e{'9' * 10_000}"),
        pytest.param("9" * 100_000, id="100,000 digits"),
        pytest.param("9" * 100_000 + "Ei", id="100,000 digits of Ei"),
    ],
)
def test_an_absurdly_large_quantity_is_more_than_any_max_and_takes_no_time(server, quantity):
    before = processor_seconds(server.process.pid)
    over = send(server, limited(1, cpu=quantity)).json
    free = send(server, with_requests({"memory": quantity})).json
    assert processor_seconds(server.process.pid) - before < 2
    assert set(over["FailedAndUnresolvableNodes"].values()) == {"ElasticQuota max exceeded: cpu"}
    assert free["NodeNames"] == ["n1", "n2"]
    goes_on(server)


@pytest.mark.parametrize(
    "quantity", ["1e-999999999", "1n", f"1e-{'9' * 10_000}", pytest.param(f"0.{'0' * 100_000}1", id="100,000 decimals")]
)
def test_an_absurdly_small_quantity_takes_no_time(server, quantity):
    before = processor_seconds(server.process.pid)
    assert send(server, with_requests({"cpu": quantity})).json["NodeNames"] == ["n1", "n2"]
    assert processor_seconds(server.process.pid) - before < 2
    goes_on(server)


@pytest.mark.parametrize(
    ("field", "nodes"),
    [
        ("NodeNames", [1, 2]),
        ("NodeNames", ["n1", None]),
        ("NodeNames", ["n1", {"name": "n2"}]),
        ("Nodes", {"items": "n1"}),
        ("Nodes", {"items": [{"metadata": {"name": 1}}]}),
        ("Nodes", {"items": ["n1"]}),
    ],
)
def test_nodes_without_names_are_turned_down_or_handed_back_as_they_came(server, field, nodes):
    both = {"Nodes": None, "NodeNames": None, field: nodes}
    refused = problem_of(send(server, limited(1, cpu="2") | both))  # a refusal has to name them
    assert field in refused["field"]
    admitted = send(server, request() | both)
    assert admitted.json[field] == nodes if admitted.status == 200 else problem_of(admitted)
    goes_on(server)


def test_a_pod_that_is_turned_down_holds_nothing(server):
    problem_of(send(server, limited(1, memory="abc")))
    assert send(server, limited(2)).json["NodeNames"] == ["n1", "n2"]  # the quota's one cpu is still there
    assert not send(server, limited(1)).json.get("NodeNames")


@pytest.mark.parametrize("bracket", ["[]", "{}"])
@pytest.mark.parametrize("place", ["unknown", "Pod", "NodeNames", "Nodes", "Pod.spec", "Pod.metadata.managedFields"])
def test_nesting_a_hundred_thousand_deep_is_turned_down(server, bracket, place):
    depth = 100_000
    deep = "[" * depth + "]" * depth if bracket == "[]" else '{"a":' * depth + "1" + "}" * depth
    body = request()
    *path, last = place.split(".")
    inner = body
    for step in path:
        inner = inner[step]
    inner[last] = "DEEP"
    problem_of(send(server, json.dumps(body).replace('"DEEP"', deep).encode()))
    goes_on(server)


@pytest.mark.parametrize("verb", ["prioritize", "preempt", "bind"])
def test_nesting_is_turned_down_by_every_verb(server, verb):
    name = {"prioritize": "prioritize.node-names", "preempt": "preempt.meta-victims", "bind": "bind"}[verb]
    text = json.dumps(request(name, unknown="DEEP")).replace('"DEEP"', "[" * 100_000 + "]" * 100_000)
    problem_of(send(server, text.encode(), verb))
    goes_on(server)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"], ids=repr)
@pytest.mark.parametrize("text", [b'"rej1"', b'"cpu"', b'"n1"'], ids=repr)
def test_invalid_utf_8_is_turned_down(server, bad, text):
    content = recording("filter.node-names").content
    assert text in content
    problem_of(send(server, content.replace(text, text[:-1] + bad + b'"')))
    goes_on(server)


def test_invalid_utf_8_in_whole_nodes_is_turned_down(server):
    content = recording("filter.full-nodes").content
    problem_of(send(server, content.replace(b'"n2"', b'"n2\xff"')))
    goes_on(server)


def test_a_lone_surrogate_does_no_harm(server):
    content = recording("filter.node-names").content
    for text in (b'"rej1"', b'"n1"', b'"cpu"'):
        answer = send(server, content.replace(text, text[:-1] + b'\\ud800"'))
        assert answer.status == 200 or problem_of(answer)
        goes_on(server)


def test_of_duplicate_keys_the_last_counts_as_in_go(server):
    content = recording("filter.node-names").content
    answer = send(server, content[:-1] + b',"NodeNames":["n2"]}')
    assert answer.json["NodeNames"] == ["n2"] if answer.status == 200 else problem_of(answer)
    goes_on(server)


@pytest.mark.parametrize("verb", VERBS)
def test_a_body_over_the_limit_is_too_large(server, verb):
    body = go_json(request(unknown="x" * 40 * MIB))
    with RawConnection(server.port) as connection:
        problem_of(connection.post(f"/extender/{verb}", body), 413)
    goes_on(server)


@pytest.mark.parametrize("verb", VERBS)
def test_a_body_over_the_limit_in_chunks_is_too_large(server, verb):
    body = go_json(request(unknown="x" * 40 * MIB))
    with RawConnection(server.port) as connection:
        problem_of(connection.post_chunked(f"/extender/{verb}", body), 413)
    goes_on(server)


def test_a_body_of_many_megabytes_within_the_limit_is_answered(server):
    answer = send(server, request(unknown="x" * 20 * MIB))
    assert (answer.status, answer.json["NodeNames"]) == (200, ["n1", "n2"])


def test_a_body_in_chunks_is_a_body(server):
    with RawConnection(server.port) as connection:
        answer = connection.post_chunked("/extender/filter", recording("filter.node-names").content, chunk=7)
    assert (answer.status, answer.json["NodeNames"]) == (200, ["n1", "n2"])


def test_a_client_that_hangs_up_half_way_does_no_harm(server):
    content = recording("filter.node-names").content
    for _ in range(20):
        with RawConnection(server.port) as connection:
            connection._send(head("/extender/filter", f"Content-Length: {len(content)}"), content[:100])
    goes_on(server)


def test_a_clients_connection_survives_its_errors(server):
    good = recording("filter.node-names").content
    bad = [b"", b"{", go_json(request(Pod=[])), go_json(with_requests({"cpu": "abc"})), good[:-5], b"[" * 100_000]
    with RawConnection(server.port) as connection:
        for content in bad:
            problem_of(connection.post("/extender/filter", content))
            assert connection.post("/extender/filter", good).json["NodeNames"] == ["n1", "n2"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_verbs_are_posted(server, verb, method):
    answer = server.call(method, f"/extender/{verb}")
    problem_of(answer, 405)
    assert answer.headers["Allow"] == "POST"
    goes_on(server)


def test_a_verb_that_does_not_exist_is_not_found(server):
    problem_of(server.ask("filters", request()), 404)
    goes_on(server)
