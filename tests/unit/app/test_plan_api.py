"""REST about reclaim: what is being done, what would be done, and for whom room is kept."""

import asyncio
from collections import Counter

import httpx
import pytest

from app import pause
from app.api import routes
from policy.nodes import fit
from policy.objects.reservation import PodName, Reservation
from tests.unit.app.given import Clock, client_of, node, pod, quota, refused, see, store_with


@pytest.fixture
def store():
    """Two quotas of four and one cpu on a node of five, all used by the first; a pod of the second waits."""
    clock = Clock()
    running = [
        pod(f"r{number}", metadata={"creationTimestamp": f"2026-01-0{number}T00:00:00Z"}) for number in range(1, 6)
    ]
    for each in running:
        each["spec"]["nodeName"] = "n1"
    bounds = [quota("a", min={"cpu": 4}, max={"cpu": 5}), quota("b", min={"cpu": 1}, max={"cpu": 5})]
    waiting = refused(pod("p", "b"), "0/1 nodes are available: 1 Insufficient cpu.")
    store = store_with(node("n1", cpu="5", memory="8Gi", pods="110"), *bounds, *running, waiting, clock=clock)
    clock.now += 60
    return store


def test_a_plan_says_who_would_go_for_whom_and_where(store):
    plan = client_of(store).get("/api/v1/plan").json()
    assert set(plan) >= {"evictions", "nominations", "reservations"}
    [eviction] = plan["evictions"]
    assert eviction == {
        "pod": "a/r5",
        "node": "n1",
        "for": "b/p",
        "reason": "Reclaim",
        "failsJob": "",
        "suspendsJob": "",
        "lowersJob": "",
    }
    assert plan["nominations"] == [{"pod": "b/p", "node": "n1"}]
    [reservation] = plan["reservations"]
    assert (reservation["pod"], reservation["node"], reservation["victims"]) == ("b/p", "n1", ["a/r5"])


def test_asking_for_a_plan_changes_nothing(store):
    before = dict(store.cluster.ledger.entries)
    client = client_of(store)
    assert client.get("/api/v1/plan").json()["evictions"] == client.get("/api/v1/plan").json()["evictions"]
    assert store.cluster.ledger.entries == before
    assert store.cluster.reservations.plans == {}
    assert client.get("/api/v1/reservations").json() == {"items": []}


def test_asking_for_a_plan_wakes_nobody_who_looks_at_the_page(store):
    see(store, quota("a", min={"cpu": 2}, max={"cpu": 5}), quota("b", min={"cpu": 3}, max={"cpu": 5}))
    see(store, *(refused(pod(name, "b"), "0/1 nodes are available: 1 Insufficient cpu.") for name in "qr"))
    store.clock.now += 60
    cluster, rung = store.cluster, []
    cluster.changes.take()
    cluster.changes.subscribers.append(lambda: rung.append(1))
    plan = client_of(store).get("/api/v1/plan").json()
    assert len(plan["evictions"]) >= 2
    assert rung == []
    assert cluster.changes.take() == (set(), set(), False)


def test_where_nobody_waits_there_is_nothing_to_be_done():
    plan = client_of(store_with(node("n1"), pod("p"))).get("/api/v1/plan").json()
    assert not any(plan.values())


def test_who_waits_and_is_not_entitled_is_told_why(store):
    see(store, refused(pod("greedy", requests={"cpu": "3"}), "0/1 nodes are available: 1 Insufficient cpu."))
    store.clock.now += 60
    client = client_of(store)
    [waiting] = client.get("/api/v1/plan").json()["waiting"]
    assert (waiting["pod"], bool(waiting["reason"]), bool(waiting["message"])) == ("a/greedy", True, True)
    assert waiting["message"] in client.get("/api/v1/pods/a/greedy").json()["outlook"]


def test_the_explanation_says_who_is_to_go(store):
    assert client_of(store).get("/api/v1/pods/b/p").json()["outlook"] == "to be evicted for it on node n1: a/r5"


def test_filter_is_answered_between_the_nodes_that_a_preview_looks_at(store, monkeypatch):
    """Counted in turns of the loop, where each slice is as short as it can be."""
    monkeypatch.setattr(pause, "SLICE", 0.0)
    nodes, turns, looked_at = 50, 0, Counter()
    see(store, *(node(f"full{number}", cpu="1", memory="8Gi", pods="110") for number in range(nodes)))
    for number in range(nodes):
        see(store, pod(f"b{number}", nodeName=f"full{number}"))
    fits_on = fit.fits_on

    def counted(*arguments):
        looked_at[turns, arguments[2]] += 1
        return fits_on(*arguments)

    async def neighbour():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scenario():
        task = asyncio.create_task(neighbour())
        transport = httpx.ASGITransport(client_of(store).app)
        async with httpx.AsyncClient(transport=transport, base_url="http://quotaward") as client:
            await client.get("/api/v1/plan")
        task.cancel()

    monkeypatch.setattr(fit, "fits_on", counted)
    asyncio.run(scenario())
    assert len({name for _, name in looked_at}) == nodes + 1
    assert max(Counter(turn for turn, _ in looked_at).values()) <= 2  # two of them where one ends and the next begins


def test_a_plan_that_ends_while_another_is_told_of_is_left_out(store, monkeypatch):
    see(store, refused(pod("q", "b"), "0/1 nodes are available: 1 Insufficient cpu."))
    cluster = store.cluster
    for name in "pq":
        victims = (PodName("a", "r5", "a/r5"),)
        cluster.upsert_reservation(Reservation(f"plan-{name}", PodName("b", name, f"b/{name}"), "n1", victims, 0.0))
    monkeypatch.setattr(routes.reclaim, "protected_victims", lambda *_: [cluster.pods["a/r5"]])

    def meanwhile_the_other_goes(*_):
        yield
        cluster.delete_reservation("plan-q")
        cluster.delete_pod("b/q")
        return "told"

    monkeypatch.setattr(routes.plan_text, "for_pod_steps", meanwhile_the_other_goes)
    plan = client_of(store).get("/api/v1/plan").json()
    assert [each["name"] for each in plan["reservations"]] == ["plan-p"]
    assert {"pod": "b/p", "reason": "budget", "message": "told"} in plan["waiting"]
