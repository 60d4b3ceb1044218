"""``GET /api/v1/waiting``: everything that waits, by job, sorted, filtered, and page by page."""

import base64
import json

import pytest

from policy.cluster.pod_admission import PodAdmission
from policy.queueing import positions
from tests.unit.app.given import client_of, node, pod, queue, quota, refused, store_with
from tests.unit.app.situations import cpus, group
from tests.unit.app.test_queued_jobs import job, labelled

IN_GROUP = {"scheduling.x-k8s.io/pod-group": "g"}
GATE = {"name": "quotaward.dev/quota"}
QUEUE = {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}


def at(second, **metadata):
    return {"creationTimestamp": f"2026-11-27T20:55:{second:02}Z"} | metadata


WORLD = (
    node("n1", **cpus(9)),
    quota("b", max={"cpu": 1}),
    quota("a", max={"cpu": 0}),
    queue("q"),
    labelled(),
    refused(pod("late", "b", metadata=at(9)), "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu."),
    refused(pod("big", "c", metadata=at(3)), "0/1 nodes are available: 1 Insufficient cpu."),
    pod("new", "a", metadata=at(5)),
    pod("gated", "c", metadata=at(4, **QUEUE), schedulingGates=[GATE]),
    job("train", 3, created=2),
    group("c", minimum=2),
    *(pod(f"m{number}", "c", metadata=at(6 + number, labels=IN_GROUP)) for number in range(3)),
)


@pytest.fixture
def client():
    return client_of(store_with(*WORLD))


def asked(client, query=""):
    answer = client.get(f"/api/v1/waiting{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(told):
    return [each["name"] for each in told["items"]]


def test_who_waits_is_listed_by_job_and_who_waits_longest_comes_first(client):
    told = asked(client)
    assert (names(told), told["total"], told["remaining"], told["continue"]) == (
        ["train", "big", "gated", "new", "g", "late"],
        *(6, 0, ""),
    )
    rows = {each["name"]: each for each in told["items"]}
    assert {name: (each["kind"], each["pods"], each["rule"]) for name, each in rows.items()} == {
        "train": ("Job", 3, "elastic-quota-max"),
        "big": ("Pod", 1, "no-room"),
        "gated": ("Pod", 1, "gated"),
        "new": ("Pod", 1, "elastic-quota-max"),
        "g": ("podgroups.scheduling.x-k8s.io", 3, "untried"),
        "late": ("Pod", 1, "elastic-quota-max"),
    }
    assert rows["g"]["podNames"] == ["m0", "m1", "m2"]
    assert (rows["gated"]["queue"], rows["gated"]["place"], rows["gated"]["since"]) == (
        *("q", 1),
        "2026-11-27T20:55:04Z",
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?sort=name", ["new", "train", "late", "big", "g", "gated"]),
        ("?sort=pods&limit=2", ["train", "g"]),
        ("?sort=queue", ["train", "big", "new", "g", "late", "gated"]),
        ("?queue=q", ["gated"]),
        ("?namespace=a", ["train", "new"]),
        ("?rule=elastic-quota-max", ["train", "new", "late"]),
        ("?rule=no-room&namespace=c", ["big"]),
        ("?rule=no-room&namespace=a", []),
    ],
)
def test_it_is_sorted_and_filtered(client, query, expected):
    assert names(asked(client, query)) == expected


@pytest.mark.parametrize("sort", ["since", "name", "queue", "rule", "pods"])
def test_pages_together_are_the_whole_list_though_some_go_in_between(client, sort):
    whole = names(asked(client, f"?sort={sort}"))
    page = asked(client, f"?sort={sort}&limit=2")
    found = names(page)
    assert page["remaining"] == 4
    while page["continue"]:
        page = asked(client, f"?sort={sort}&limit=2&continue={page['continue']}")
        found += names(page)
    assert found == whole
    first = asked(client, f"?sort={sort}&limit=3")
    cluster, gone = client.app.state.store.cluster, {name for row in first["items"] for name in row["podNames"]}
    for each in [each for each in cluster.pods.values() if each.name in gone]:
        cluster.delete_pod(each.uid)
    assert names(asked(client, f"?sort={sort}&continue={first['continue']}")) == whole[3:]


def token(*content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


DEEP = base64.urlsafe_b64encode(b"[" * 3000).decode()


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("?namespace=typo", 404, "namespace"),
        ("?queue=typo", 404, "queue"),
        ("?rule=typo", 422, "rule"),
        ("?sort=typo", 422, "sort"),
        ("?limit=0", 422, "limit"),
        ("?continue=typo", 422, "continue"),
        ("?continue=%C3%A4", 422, "continue"),
        (f"?continue={token('since', {})}", 422, "continue"),
        (f"?continue={token('since', 'a', 'b', 'c')}", 422, "continue"),
        (f"?continue={token('name', 'a', 'b')}", 422, "continue"),
        (f"?sort=name&continue={token('rule', 'zzz', 1.0, 'a', 'b', 'Pod')}", 422, "continue"),
        (f"?continue={DEEP}", 422, "continue"),
    ],
)
def test_what_cannot_be_asked_is_named(client, query, status, field):
    answer = client.get(f"/api/v1/waiting{query}")
    assert (answer.status_code, answer.json()["field"].rpartition(".")[2]) == (status, field)


@pytest.mark.parametrize(("query", "number"), [("?limit=2", 2), ("?limit=2&sort=rule", 9)])
def test_rules_are_asked_about_as_few_jobs_as_the_answer_needs(monkeypatch, query, number):
    teams = [f"t{each}" for each in range(9)]
    about, why_waits = [], PodAdmission.why_waits
    monkeypatch.setattr(PodAdmission, "why_waits", lambda *given: about.append(given[1]) or why_waits(*given))
    client = client_of(store_with(*map(labelled, teams), *(job(team, namespace=team) for team in teams)))
    about.clear()
    told = asked(client, query)
    assert (len(told["items"]), told["total"], len(about)) == (2, 9, number)


@pytest.mark.parametrize(("query", "number"), [("?limit=2", 2), ("?limit=2&sort=queue", 9)])
def test_lines_are_gone_through_as_far_as_the_answer_needs(monkeypatch, query, number):
    went, real = [], positions.in_order
    monkeypatch.setattr(positions, "in_order", lambda *given: (went.append(each) or each for each in real(*given)))
    client = client_of(store_with(labelled(), *(job(f"j{each}", created=each + 1) for each in range(9))))
    told = asked(client, query)
    assert [each["place"] for each in told["items"]] == [1, 2]
    assert len([each for each in went if each is not None]) == number


def test_where_nothing_waits_the_list_is_empty():
    assert asked(client_of(store_with(node()))) == {"total": 0, "remaining": 0, "continue": "", "items": []}


def test_a_job_that_was_suspended_again_waits_since_then():
    again = job("again", created=1)
    suspended = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-27T20:59:00Z"}
    again["status"] = {"conditions": [suspended]}
    told = asked(client_of(store_with(node(), labelled(), again)))
    assert told["items"][0]["since"] == "2026-11-27T20:59:00Z"


def test_in_observe_mode_nothing_waits_for_a_rule():
    client = client_of(store_with(node(), quota("a", max={"cpu": 0}), pod("p")), observe=True)
    assert [each["rule"] for each in asked(client)["items"]] == ["untried"]
