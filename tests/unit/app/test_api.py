"""REST as people and scripts call it, through the whole HTTP application."""

import importlib.metadata
import re

import pytest
from fastapi.openapi.models import OpenAPI

from app.main import probe_application
from app.readiness import Readiness
from tests.unit.app.given import (
    Client,
    Clock,
    client_of,
    complete,
    empty_store,
    node,
    own_application,
    pod,
    quota,
    see,
    store_with,
)

PROBLEM = "application/problem+json"


def quotas(*items):
    answer = client_of(store_with(*items)).get("/api/v1/elasticquotas")
    assert answer.status_code == 200
    return answer.json()["items"]


def explanation(*items, of="a/p"):
    answer = client_of(store_with(*items)).get(f"/api/v1/pods/{of}")
    assert answer.status_code == 200
    return answer.json()


def test_a_quota_is_shown_with_what_its_namespace_uses():
    running = pod("p", requests={"cpu": "2500m", "memory": "1Gi", "nvidia.com/gpu": 1}, nodeName="n1")
    lists = node("n1", **{"nvidia.com/gpu": 1})
    assert quotas(lists, quota("a", min={"cpu": 2, "memory": "4Gi"}, max={"cpu": "4500m"}), running) == [
        {
            "namespace": "a",
            "name": "quota",
            "min": {"cpu": "2", "memory": "4Gi"},
            "max": {"cpu": "4500m"},
            "used": {"cpu": "2500m", "memory": "1Gi", "nvidia.com/gpu": "1", "pods": "1"},
            "borrowed": {"cpu": "500m", "memory": "0"},
            "available": {"cpu": "2"},
            "runTimes": {},
            "conditions": [],
        }
    ]


def test_an_endless_min_run_time_is_told_by_its_condition_alone():
    lending = quota("a", min={"cpu": 2})
    lending["metadata"]["annotations"] = {"quotaward.dev/min-run-time": "soon"}
    [shown] = quotas(lending)
    assert (shown["runTimes"], [each["type"] for each in shown["conditions"]]) == ({}, ["MinRunTimeInvalid"])


def test_amounts_are_the_shortest_exact_quantities():
    sizes = {"cpu": "1500m", "memory": "9216Mi", "ephemeral-storage": "1000", "hugepages-2Mi": "4Mi", "a.b/c": "5000"}
    [shown] = quotas(quota("a", max=sizes))
    assert shown["max"] == {
        "a.b/c": "5000",
        "cpu": "1500m",
        "ephemeral-storage": "1000",
        "hugepages-2Mi": "4Mi",
        "memory": "9Gi",
    }
    assert shown["available"] == shown["max"]
    assert set(shown["used"].values()) == {"0"}


def test_quotas_are_sorted_by_namespace_and_name():
    shown = quotas(quota("b"), quota("a", "z", "2026-01-01T00:00:00Z"), quota("a", "y", "2026-01-02T00:00:00Z"))
    assert [(each["namespace"], each["name"]) for each in shown] == [("a", "y"), ("a", "z"), ("b", "quota")]


def test_what_is_used_beyond_max_leaves_nothing_available_and_nothing_negative():
    [shown] = quotas(quota("a", max={"cpu": 1}), pod("p", requests={"cpu": 3}, nodeName="n1"))
    assert (shown["used"]["cpu"], shown["available"]) == ("3", {"cpu": "0"})


def test_without_a_min_all_that_is_used_of_a_lent_resource_is_borrowed():
    lender, borrower = quotas(quota("a", min={"cpu": 4}), quota("b"), pod("p", "b", nodeName="n1"))
    assert lender["borrowed"] == {"cpu": "0"}
    assert borrower["borrowed"] == {"cpu": "1"}


def test_the_younger_of_two_quotas_says_that_it_counts_for_nothing():
    older, younger = (
        quota("a", "old", "2026-01-01T00:00:00Z"),
        quota("a", "new", "2026-01-02T00:00:00Z", max={"cpu": 9}),
    )
    new, old = quotas(younger, older, pod("p", nodeName="n1"))
    [condition] = new["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Conflict", "True", "OlderQuotaInForce")
    assert "old" in condition["message"]
    assert (new["used"], old["used"]) == ({"cpu": "0"}, {"cpu": "1", "pods": "1"})
    assert old["conditions"] == []


def test_of_two_quotas_of_one_age_the_first_by_name_counts():
    first, second = quotas(quota("a", "x"), quota("a", "y"))
    assert ([each["type"] for each in first["conditions"]], len(second["conditions"])) == ([], 1)


@pytest.mark.parametrize(
    ("bounds", "reason", "said"),
    [
        ({"min": {"cpu": 2}, "max": {"cpu": 1}}, "MinExceedsMax", "cpu"),
        ({"max": {"cpu": "x"}}, "Unreadable", "spec.max.cpu"),
        ({"min": {"cpu": -1}}, "Unreadable", "spec.min.cpu: is negative"),
        ({"min": []}, "Unreadable", "spec.min"),
    ],
)
def test_a_quota_that_cannot_be_in_force_as_written_says_why(bounds, reason, said):
    [condition] = quotas(quota("a", **bounds))[0]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Invalid", "True", reason)
    assert said in condition["message"]


def test_where_min_exceeds_max_the_effective_min_is_shown():
    [shown] = quotas(quota("a", min={"cpu": 2, "memory": 1}, max={"cpu": 1}))
    assert shown["min"] == {"cpu": "1", "memory": "1"}


def test_a_quota_whose_last_good_spec_holds_shows_that_spec_and_says_so():
    store = store_with(quota("a", max={"cpu": 5}))
    see(store, quota("a", max={"cpu": "x"}))
    [shown] = client_of(store).get("/api/v1/elasticquotas/a").json()["items"]
    assert shown["max"] == {"cpu": "5"}
    assert "the last good spec stays in force" in shown["conditions"][0]["message"]


def test_the_quotas_of_one_namespace_can_be_asked_for():
    client = client_of(store_with(quota("a"), quota("b")))
    assert [each["namespace"] for each in client.get("/api/v1/elasticquotas/b").json()["items"]] == ["b"]
    assert client.get("/api/v1/elasticquotas/unknown").json() == {"items": []}


def test_a_refused_pod_is_explained_with_numbers_and_remedies():
    room = node("n1", cpu="9", memory="8Gi", pods="110")
    shown = explanation(room, quota("a", max={"cpu": 2}), pod("r", nodeName="n1"), pod("p", requests={"cpu": "1500m"}))
    assert isinstance(shown.pop("outlook"), str)
    summary = shown.pop("summary")
    assert shown.pop("gate") is None
    assert shown.pop("evicted") is None
    assert shown.pop("expectedStart")["basis"] == "none"
    patch = """'{"spec":{"max":{"cpu":"2500m"}}}'"""
    raise_max = f"kubectl patch elasticquotas.scheduling.x-k8s.io quota -n a --type merge -p {patch}"
    assert shown == {
        "namespace": "a",
        "name": "p",
        "verdict": "refused",
        "rule": "elastic-quota-max",
        "message": "ElasticQuota max exceeded: cpu",
        "numbers": {"cpu": {"request": "1500m", "used": "1", "max": "2", "ahead": "0"}},
        "remedies": [
            {
                "text": "raise max of cpu in ElasticQuota a/quota from 2 to at least 2500m",
                "target": "ElasticQuota a/quota",
                "path": "spec.max.cpu",
                "value": "2500m",
                "change": {"apply": [quota("a", max={"cpu": "2500m"})], "remove": []},
                "commands": [raise_max],
                "tried": "with-all",
                "verified": True,
            },
            {
                "text": "wait until pods in namespace a release 500m of cpu, as a/r would",
                "target": "Pod a/r",
                "path": "",
                "value": "",
                "change": {"apply": [], "remove": [{"kind": "Pod", "namespace": "a", "name": "r"}]},
                "commands": ["kubectl delete pod r -n a"],
                "tried": "with-all",
                "verified": True,
            },
        ],
        "holders": [
            {
                "kind": "ElasticQuota",
                "name": "a/quota",
                "resource": "cpu",
                "used": "1",
                "bound": "2",
                "boundName": "max",
                "over": "0",
                "pods": ["a/r"],
                "number": 1,
                "terminating": [],
                "ahead": "0",
                "first": [],
                "inVain": [],
            }
        ],
        "searched": "complete",
        "next": [{"step": "to-be-tried", "text": "the scheduler has not tried it yet", "inSeconds": None}],
        "terminating": [],
    }
    assert summary.startswith("a/p is refused by elastic-quota-max: ElasticQuota max exceeded: cpu. cpu: request 1500m")


@pytest.mark.parametrize(
    ("items", "verdict", "rule"),
    [
        ([], "unknown", ""),
        ([pod("p")], "admissible", ""),
        ([pod("p", nodeName="n1")], "bound", ""),
        ([quota("a", max={"cpu": 1}), pod("p")], "admissible", ""),
        ([quota("a", max={"cpu": 0}), pod("p")], "refused", "elastic-quota-max"),
        ([quota("a", min={"cpu": 0}), pod("p")], "refused", "elastic-quota-borrowing"),
        ([quota("a", min={"cpu": "x"}), pod("p")], "refused", "elastic-quota-invalid"),
    ],
)
def test_every_verdict_has_the_same_shape(items, verdict, rule):
    shown = explanation(*items)
    told = {
        "verdict",
        "rule",
        "message",
        "numbers",
        "remedies",
        "outlook",
        "holders",
        "next",
        "summary",
        "gate",
        "expectedStart",
        "searched",
        "terminating",
        "evicted",
    }
    assert set(shown) == {"namespace", "name"} | told
    assert (shown["verdict"], shown["rule"]) == (verdict, rule)
    assert shown["message"]
    assert bool(shown["remedies"]) == (verdict == "refused")


def test_asking_changes_nothing():
    store = store_with(quota("a", max={"cpu": 1}), pod("p"), pod("q"))
    client = client_of(store)
    for name in "pq":
        client.get(f"/api/v1/pods/a/{name}")
    assert store.cluster.ledger.entries == {}
    assert not store.cluster.grants


@pytest.mark.parametrize(
    "path", ["/nothing", "/api/v1/nothing", "/api/v1/pods/a", "/extender/nothing", "/api/v2/pods/a/p"]
)
def test_what_is_not_there_is_a_problem_document(path):
    answer = client_of(store_with()).get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)
    assert answer.json() == {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "Not Found"}


def test_a_wrong_method_is_a_problem_document():
    answer = client_of(store_with()).request("DELETE", "/api/v1/elasticquotas")
    assert (answer.status_code, answer.headers["content-type"]) == (405, PROBLEM)
    assert answer.json()["title"] == "Method Not Allowed"


def test_a_wrong_method_is_answered_with_those_that_are_allowed():
    assert client_of(store_with()).request("DELETE", "/api/v1/elasticquotas").headers["allow"] == "GET"


def test_an_argument_that_cannot_be_used_is_named():
    client = Client(own_application(store_with()))

    async def numbered(limit: int) -> dict[str, int]:
        return {"limit": limit}

    client.app.add_api_route("/numbered", numbered)
    answer = client.get("/numbered?limit=many")
    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
    assert answer.json()["field"] == "query.limit"
    assert answer.json()["detail"]


def test_an_error_of_our_own_is_a_problem_document_that_tells_nothing():
    client = Client(own_application(store_with()))

    async def broken() -> None:
        raise RuntimeError("secret")

    client.app.add_api_route("/broken", broken)
    answer = client.get("/broken")
    assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM)
    assert "secret" not in answer.text


@pytest.mark.parametrize("path", ["/api/v1/elasticquotas", "/api/v1/elasticquotas/a", "/api/v1/pods/a/p", "/readyz"])
def test_nothing_is_told_of_a_picture_that_is_not_complete(path):
    store = empty_store()
    client = client_of(store)
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"], answer.headers["retry-after"]) == (503, PROBLEM, "1")
    assert answer.json()["detail"].startswith("not synced: ")
    complete(store)
    assert client.get(path).status_code == 200


def test_what_is_alive_says_so_whatever_it_knows():
    assert client_of(empty_store()).get("/healthz").json()["status"] == "ok"


def test_a_stale_picture_is_not_ready_but_can_still_be_looked_at():
    clock = Clock()
    store = store_with(quota("a"), clock=clock)
    for kind in ("pods", "elasticquotas"):
        store.feeds[kind].connected_at = None
    clock.now += 61
    client = client_of(store)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["detail"] == "stale: no contact to the API server for elasticquotas, pods"
    assert client.get("/healthz").status_code == 200
    assert client.get("/api/v1/elasticquotas").status_code == 200


def test_the_probes_can_be_served_alone():
    client = Client(probe_application(Readiness(store_with(quota("a")))))
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    for path in ("/api/v1/elasticquotas", "/metrics", "/docs", "/openapi.json", "/extender/filter"):
        assert client.get(path).status_code == 404


def references(part):
    if isinstance(part, dict):
        yield from ([part["$ref"]] if "$ref" in part else ())
        part = part.values()
    if not isinstance(part, str) and hasattr(part, "__iter__"):
        for inner in part:
            yield from references(inner)


def test_the_openapi_document_is_valid():
    document = client_of(empty_store()).get("/openapi.json").json()
    OpenAPI.model_validate(document)
    assert document["openapi"].startswith("3.1.")
    assert set(document["paths"]) >= {
        "/api/v1/elasticquotas",
        "/api/v1/elasticquotas/{namespace}",
        "/api/v1/pods/{namespace}/{name}",
    }
    for reference in references(document):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z][A-Za-z]{2,40}", name) for name in names)
    assert document["info"]["version"] == importlib.metadata.version("quotaward")


def test_the_openapi_document_says_what_needs_a_token_and_sorts_operations():
    document = client_of(empty_store()).get("/openapi.json").json()
    [(name, scheme)] = document["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["tags"]
            assert (operation.get("security") == [{name: []}, {}]) == (path not in ("/healthz", "/readyz")), path
            if path.startswith("/api"):
                assert {"401", "403", "422", "429", "503"} <= operation["responses"].keys(), path


def test_the_openapi_document_describes_errors_as_they_are():
    responses = client_of(empty_store()).get("/openapi.json").json()["paths"]["/api/v1/pods/{namespace}/{name}"]["get"]
    assert "503" in responses["responses"]
    for status, response in responses["responses"].items():
        if not status.startswith("2"):
            assert set(response["content"]) == {PROBLEM}


def test_an_answer_fits_what_openapi_says_of_it():
    client = client_of(store_with(quota("a", max={"cpu": 0}), pod("p"), node()))
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    [shown] = client.get("/api/v1/elasticquotas").json()["items"]
    assert set(shown) == set(schemas["ElasticQuotaModel"]["properties"])
    assert set(client.get("/api/v1/pods/a/p").json()) == set(schemas["ExplanationModel"]["properties"])
