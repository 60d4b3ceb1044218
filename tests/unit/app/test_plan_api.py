"""REST about reclaim: what is being done, what would be done, and for whom room is kept."""

import asyncio
from collections import Counter

import httpx
import pytest

from policy import victims
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
    assert eviction == {"pod": "a/r5", "node": "n1", "for": "b/p", "reason": "Reclaim"}
    assert plan["nominations"] == [{"pod": "b/p", "node": "n1"}]
    [reservation] = plan["reservations"]
    assert (reservation["pod"], reservation["node"], reservation["victims"]) == ("b/p", "n1", ["a/r5"])


def test_asking_for_a_plan_changes_nothing(store):
    before = dict(store.cluster.ledger.entries)
    client = client_of(store)
    assert client.get("/api/v1/plan").json()["evictions"] == client.get("/api/v1/plan").json()["evictions"]
    assert store.cluster.ledger.entries == before
    assert store.cluster.reservations == {}
    assert client.get("/api/v1/reservations").json() == {"items": []}


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


def test_filter_is_answered_between_the_pods_of_a_preview(store, monkeypatch):
    """Counted in turns of the loop: where there are many nodes, one pod alone takes long."""
    pods = 50
    for number in range(pods):  # no two alike, so that each is looked at
        see(store, refused(pod(f"w{number}", "b", requests={"cpu": f"{1000 + number}m"}), "0/1 nodes are available."))
    store.clock.now += 60
    turns, planned_in_turn, plan = 0, Counter(), victims.plan

    def counted(*arguments):
        planned_in_turn[turns] += 1
        return plan(*arguments)

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

    monkeypatch.setattr(victims, "plan", counted)
    asyncio.run(scenario())
    assert planned_in_turn.total() >= pods
    assert max(planned_in_turn.values()) <= 5
