"""Queues in a tree on a stock scheduler: departments share the cluster, teams their department's part."""

import os
import random

import pytest

from tests.controlplane.objects import condition, is_bound, pods
from tests.controlplane.processes import wait_until
from tests.e2e.waiting import bound, ensure_for, evicted, evicts, is_being_evicted, wait_for

LONG = bool(os.environ.get("QUOTAWARD_LONG"))
ROWS = {  # specs of queues; by leaf: pods of one core that are created, pods that are to be bound
    "all ask for all": ({"a1": {"weight": 3}}, {"a1": (16, 6), "a2": (16, 2), "b1": (16, 8)}),
    "one asks for little": ({"a1": {"weight": 3}}, {"a1": (16, 10), "a2": (16, 4), "b1": (2, 2)}),
    "a guarantee": (
        {"a1": {"weight": 3}, "a2": {"guarantee": {"resource": {"cpu": "4"}}}},
        {"a1": (16, 4), "a2": (16, 4), "b1": (16, 8)},
    ),
}
FULL = 16


def company(cluster, specs):
    """The queues of two departments with their teams; returns a namespace for each team."""
    for name in ("A", "B"):
        cluster.queue(name.lower(), weight=1)
    parents = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    for name, parent in parents.items():
        cluster.queue(name, parent=parent, **{"weight": 1} | specs.get(name, {}))
    return {name: cluster.namespace(name, name) for name in parents}


@pytest.mark.timeout(1800 if LONG else 300)
@pytest.mark.parametrize("row", ROWS)
def test_the_rows_of_the_table_hold_whatever_the_order_of_creation(cluster, quotaward, scheduler, watch, row):
    specs, leaves = ROWS[row]
    teams = company(cluster, specs)
    watches, wanted = {name: watch(teams[name]) for name in leaves}, sum(count for count, _ in leaves.values())
    for seed in range(20 if LONG else 2):
        everybody = [each for name, (count, _) in leaves.items() for each in pods(count, teams[name])]
        random.Random(seed).shuffle(everybody)
        for each in everybody:
            cluster.api.create(each)
        wait_until(lambda: _requested(quotaward) == wanted, "all that is asked for is known")
        cluster.node(cpu=FULL)
        wait_until(
            lambda: sum(each.bound for each in watches.values()) == FULL,
            "the cluster is full",
            detail=lambda: str({name: each.bound for name, each in watches.items()}),
        )
        for name, (count, expected) in leaves.items():
            wait_until(
                lambda each=watches[name], count=count: (
                    sum(bool(condition(item, "PodScheduled")) for item in each.pods) == count
                ),
                "every pod was tried",
            )
            # what rounding leaves of a core goes to whoever comes first
            assert abs(watches[name].bound - expected) <= (row == "one asks for little"), name
        for namespace in teams.values():
            cluster.api.delete_all("pods", namespace)
        cluster.api.delete("nodes", "node")
        wait_until(lambda: _requested(quotaward) == 0, "all is as it was before")


def test_a_department_takes_back_within_before_outside(cluster, scheduler, watch):
    teams = company(cluster, {})
    cluster.node(cpu=FULL)
    watches = {name: watch(namespace) for name, namespace in teams.items()}
    cluster.api.create_all(pods(6, teams["a2"]))
    wait_for(watches["a2"], bound=6)
    cluster.api.create_all(pods(10, teams["b1"]))
    wait_for(watches["b1"], bound=10)
    cluster.api.create_all(pods(4, teams["a1"]))
    wait_for(watches["a1"], bound=4)
    ensure_for(2, lambda: not evicted(watches["a1"]), "whoever was let in stays")
    for each in ("a2", "b1"):
        evicts(2, watches[each])
    assert [len(bound(watches[name])) for name in ("a1", "a2", "b1")] == [4, 4, 8]


def test_a_department_that_lends_takes_back_from_a_sibling_before_the_borrower(cluster, quotaward, scheduler, watch):
    kept = {"guarantee": {"resource": {"cpu": "3"}}}
    teams = company(cluster, {"a2": kept, "b1": kept})
    cluster.node(cpu=FULL)
    watches = {name: watch(namespace) for name, namespace in teams.items()}
    cluster.api.create_all(pods(6, teams["a2"]))
    wait_for(watches["a2"], bound=6)
    cluster.api.create_all(pods(10, teams["b1"]))
    wait_for(watches["b1"], bound=10)  # two of them are lent by the department a
    cluster.api.create_all(pods(5, teams["a1"]))
    wait_for(watches["a1"], bound=4, refused=1, why="Insufficient cpu")
    wait_for(watches["a2"], bound=4)
    wait_for(watches["b1"], bound=8)
    leaving = {_revision_of_the_first_to_go(watches[name]): name for name in ("a2", "b1")}
    assert leaving[min(leaving)] == "a2", "the sibling gives first"
    _wait_until_all_say(cluster, teams["a2"], "Queue a2 has more than it deserves, within Queue a", times=2)
    _wait_until_all_say(cluster, teams["b1"], "Queue b1, and Queue b above it, have more than they deserve", times=2)
    [left] = [each["metadata"]["name"] for each in watches["a1"].pods if not is_bound(each)]
    explained = quotaward.get(f"/api/v1/pods/{teams['a1']}/{left}")
    assert "Queue a1 of root/a/a1 is in the way" in explained["message"]


def test_the_scheduler_is_told_of_queues_that_take_no_pods(cluster, scheduler, watch):
    company(cluster, {})
    cluster.node(cpu=FULL)
    boss = cluster.namespace("boss", "a")
    refused = watch(boss)
    cluster.api.create_all(pods(1, boss))
    wait_until(lambda: _told(refused, "Queue has child queues"), "the scheduler is told why")
    lost = cluster.namespace("lost", cluster.queue("lost", parent="nobody"))
    watched = watch(lost)
    cluster.api.create_all(pods(1, lost))
    wait_until(lambda: _told(watched, "Queue is invalid"), "the scheduler is told why")
    cluster.queue("nobody")
    wait_for(watched, bound=1)


def _told(watched, text):
    """Whether a pod's condition has this text."""
    return any(text in condition(each, "PodScheduled").get("message", "") for each in watched.pods)


def _revision_of_the_first_to_go(watched):
    """The version of the API server's data at which the first pod of a namespace was on its way out."""
    going = [each for kind, each in watched.events if kind == "DELETED" or is_being_evicted(each)]
    return min(int(each["metadata"]["resourceVersion"]) for each in going)


def _wait_until_all_say(cluster, namespace, text, times):
    """So many pods of a namespace were evicted, and each event says this."""
    wait_until(
        lambda: (
            [
                text in each["message"]
                for each in cluster.api.items("events", namespace)
                if each["reason"] == "Reclaimed"
            ]
            == [True] * times
        ),
        f"{times} events say: {text}",
    )


def _requested(quotaward):
    """Pods of one core that queues without children request, on nodes or not."""
    items = quotaward.get("/api/v1/queues")["items"]
    return sum(int(each["request"].get("pods", "0")) for each in items if not each["children"])
