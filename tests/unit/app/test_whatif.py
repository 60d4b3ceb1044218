"""What would be if something were changed: asked of REST, which changes nothing."""

import asyncio

import httpx
import pytest

from app.pause import Pause, TimeIsUp, at_leisure
from tests.unit.app.given import client_of, namespace, node, pod, queue, quota, refused, store_with
from tests.unit.app.situations import QUEUE, cpus, running

PROBLEM = "application/problem+json"


@pytest.fixture
def store():
    """Three cores, of which one is b's and lent to a; a pod of b waits, and another of a."""
    bounds = [quota("a", min={"cpu": 2}, max={"cpu": 3}), quota("b", min={"cpu": 1})]
    waiting = refused(pod("p", "b"), "0/1 nodes are available: 1 Insufficient cpu.")
    return store_with(node("n1", **cpus(3)), *bounds, *running("a", 3), waiting, pod("q"))


@pytest.fixture
def client(store):
    return client_of(store)


def ask(client, apply=(), remove=()):
    answer = client.request("POST", "/api/v1/whatif", json={"apply": apply, "remove": remove})
    assert answer.status_code == 200, answer.text
    return answer.json()


def named(items):
    return [each["pod"] for each in items]


def test_without_a_change_it_says_what_will_happen_anyway(client):
    told = ask(client)
    assert told["admitted"] == [{"pod": "b/p", "node": "n1", "anyway": True}]
    assert told["evicted"] == [{"pod": "a/r-2", "node": "n1", "for": "b/p", "reason": "Reclaim", "anyway": True}]
    assert (named(told["refused"]), told["waiting"], told["spared"]) == (["a/q"], 1, [])


def test_a_change_tells_who_runs_by_it_who_is_spared_and_the_numbers(client):
    told = ask(client, [node("n2", **cpus(3)), quota("a", min={"cpu": 4}, max={"cpu": 4})])
    assert [(each["pod"], each["node"], each["anyway"]) for each in told["admitted"]] == [
        ("a/q", "n2", False),
        ("b/p", "n2", True),
    ]
    assert (told["evicted"], told["refused"], told["spared"]) == ([], [], ["a/r-2"])
    [of_a, of_b] = told["quotas"]
    assert (of_a["before"]["max"], of_a["after"]["max"], of_a["after"]["used"]["cpu"]) == (
        {"cpu": "3"},
        {"cpu": "4"},
        "4",
    )
    assert (of_b["before"]["used"]["cpu"], of_b["after"]["used"]["cpu"]) == ("0", "1")


def test_a_manifest_is_merged_into_what_is_there_and_null_lifts_a_bound(client):
    after = ask(client, [quota("a", max=None)])["quotas"][0]["after"]
    assert (after["min"], after["max"]) == ({"cpu": "2"}, {})


def test_what_is_removed_leaves_room(client):
    told = ask(client, remove=[{"kind": "Pod", "namespace": "a", "name": name} for name in ("q", "r-0")])
    assert named(told["admitted"]) == ["b/p"]
    assert (told["evicted"], told["spared"]) == ([], ["a/r-2"])


def test_a_new_pod_that_would_be_refused_says_by_which_rule(client):
    told = ask(client, [pod("new", "a", {"cpu": 4}), node("n2", **cpus(9))])
    [waits] = [each for each in told["refused"] if each["pod"] == "a/new"]
    assert (waits["rule"], waits["anyway"]) == ("elastic-quota-max", False)


def test_a_pod_that_is_there_is_changed_and_keeps_its_identity(client):
    told = ask(
        client, [{"kind": "Pod", "metadata": {"name": "p", "namespace": "b"}, "spec": {"nodeSelector": {"x": "y"}}}]
    )
    assert told["admitted"] == []
    assert "b/p" in named(told["refused"])


def test_queues_are_told_with_what_they_deserve():
    queues = [queue("a"), queue("b"), *(namespace(name, **{QUEUE: name}) for name in "ab")]
    waiting = [pod(f"p{number}", "b") for number in range(4)]
    client = client_of(store_with(node("n1", **cpus(4)), *queues, *running("a", 2), *waiting, pod("w"), pod("v")))
    told = ask(client, [queue("b", weight=3)])
    figures = {each["name"]: each for each in told["queues"]}
    assert (figures["b"]["before"]["deserved"]["cpu"], figures["b"]["after"]["deserved"]["cpu"]) == ("2", "3")
    assert figures["b"]["after"]["weight"] == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"apply": [1]}, "apply[0]"),
        ({"aply": []}, "aply"),
        ({"apply": {}}, "apply"),
        ({"apply": [{"kind": "Deployment", "metadata": {"name": "x"}}]}, "apply[0].kind"),
        ({"apply": [{"kind": "Reservation", "metadata": {"name": "x"}}]}, "apply[0].kind"),
        ({"apply": [{"kind": "LimitRange", "metadata": {"name": "x"}}]}, "apply[0].kind"),
        ({"apply": [{"kind": "Pod", "metadata": {}}]}, "apply[0].metadata.name"),
        ({"remove": [{"kind": "Pod", "name": 1}]}, "remove[0].metadata.name"),
        ({"remove": [{"kind": "Pod", "name": "nobody"}]}, "remove[0]"),
        ({"remove": [{"kind": "Queue", "name": "none"}]}, "remove[0]"),
        ({"apply": [quota("a", max={"cpu": "x"})]}, "apply[0].spec.max.cpu"),
        ({"apply": [queue("q", weight="x")]}, "apply[0].spec.weight"),
        ({"apply": [pod("x", spec="no") | {"spec": 3}]}, "apply[0]"),
        ({"apply": [node("n3", cpu="-1")]}, "apply[0].status.allocatable.cpu"),
    ],
)
def test_what_cannot_be_changed_so_is_a_problem_that_names_the_field(client, body, field):
    answer = client.request("POST", "/api/v1/whatif", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
    assert answer.json()["field"] == field


@pytest.mark.parametrize(("content", "status"), [(b"{", 400), (b"[" * 90_000, 422), (b"x" * (2**22 + 1), 413)])
def test_what_is_no_question_is_a_problem(client, content, status):
    assert client.request("POST", "/api/v1/whatif", content=content).status_code == status


def test_asking_touches_nothing_that_is_there(store, client):
    before, pods, generation = (
        dict(store.cluster.ledger.entries),
        dict(store.cluster.pods),
        store.cluster.generations.admission,
    )
    ask(client, [node("n2"), quota("a", max={"cpu": 9})], [{"kind": "Pod", "namespace": "a", "name": "r-0"}])
    assert (store.cluster.ledger.entries, store.cluster.pods, store.cluster.generations.admission) == (
        before,
        pods,
        generation,
    )
    assert set(store.cluster.table.names) == {"n1"}


def test_an_answer_that_takes_too_long_is_given_up(client, monkeypatch):
    async def never(work, deadline=float("inf")):
        if deadline < float("inf"):
            raise TimeIsUp

    monkeypatch.setattr("app.whatif.service.at_leisure", never)
    answer = client.request("POST", "/api/v1/whatif", json={})
    assert (answer.status_code, answer.json()["detail"]) == (503, "the answer takes longer than 10 s")


def test_a_long_computation_lets_others_have_their_turn_and_ends_in_time():
    ticks = iter(range(10**6))

    def work():
        while True:
            yield

    async def scenario():
        turns = 0

        async def neighbour():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(neighbour())
        with pytest.raises(TimeIsUp):
            await at_leisure(work(), 50, Pause(lambda: next(ticks)))
        task.cancel()
        return turns

    assert asyncio.run(scenario()) >= 20


def test_questions_are_answered_one_after_the_other(client):
    async def scenario():
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://quotaward") as http:
            questions = [http.post("/api/v1/whatif", json={}) for _ in range(3)]
            return [answer.json()["admitted"] for answer in await asyncio.gather(*questions)]

    first, *others = asyncio.run(scenario())
    assert first
    assert others == [first, first]


def test_decisions_are_the_latest_answers_of_filter(client):
    for name, cpu in (("x", 1), ("y", 9)):
        client.ask("filter", {"Pod": pod(name, "a", {"cpu": cpu}), "NodeNames": ["n1"]})
    latest, earlier = client.get("/api/v1/decisions").json()["items"]
    assert (latest["pod"], latest["verdict"], latest["rule"]) == ("a/y", "refused", "elastic-quota-max")
    assert latest["message"] == "ElasticQuota max exceeded: cpu"
    assert (earlier["pod"], earlier["at"] <= latest["at"]) == ("a/x", True)
    assert len(client.get("/api/v1/decisions?limit=1").json()["items"]) == 1
    assert client.get("/api/v1/decisions?limit=0").status_code == 422


def test_a_trial_begins_at_the_time_of_the_store():
    store = store_with(pod("p"), epoch=lambda: 1_795_773_700.0)
    assert client_of(store).app.state.trials.scene().epoch == store.cluster.epoch
