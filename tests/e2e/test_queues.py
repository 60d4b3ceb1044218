"""Queues and fair shares on a stock scheduler: what is bound is what queues deserve and namespaces are entitled to."""

import os
import random
from datetime import datetime, timedelta

import pytest

from tests.controlplane.objects import Object, condition, pod, pods
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, ensure_for, evicted, evicts, wait_for

LONG = bool(os.environ.get("QUOTAWARD_LONG"))
FAIR_SHARE = "Namespace fair share exceeded"
TABLES = {  # queue: its weight, and by namespace: weight, pods that are created, pods that are to be bound
    "default weights": {"q1": (1, [(0, 5, 4), (0, 10, 4)]), "q2": (1, [(0, 10, 6), (0, 2, 2)])},
    "weights": {"q1": (1, [(3, 5, 3), (1, 10, 1)]), "q2": (3, [(2, 10, 10), (6, 2, 2)])},
    "spill over": {"q1": (1, []), "q2": (3, [(2, 5, 4), (6, 20, 12)])},
}


@pytest.mark.timeout(1800 if LONG else 300)
@pytest.mark.parametrize("table", TABLES)
def test_the_tables_of_the_seeds_hold_whatever_the_order_of_creation(cluster, quotaward, scheduler, watch, table):
    expected, wanted = {}, {}
    for queue, (weight, namespaces) in TABLES[table].items():
        cluster.queue(queue, weight=weight)
        for weight_there, created, to_be_bound in namespaces:
            namespace = cluster.namespace(queue, queue)
            if weight_there:
                cluster.weigh(namespace, weight_there)
            expected[namespace], wanted[namespace] = to_be_bound, created
    watches = {namespace: watch(namespace) for namespace in expected}
    for seed in range(20 if LONG else 3):
        everybody = [each for namespace, count in wanted.items() for each in pods(count, namespace)]
        random.Random(seed).shuffle(everybody)
        for each in everybody:
            cluster.api.create(each)
        wait_until(lambda: _requested(quotaward) == sum(wanted.values()), "all that is asked for is known")
        cluster.node(cpu=16)
        wait_until(
            lambda: {namespace: each.bound for namespace, each in watches.items()} == expected,
            "what is bound is what the table says",
            detail=lambda: str({namespace: each.bound for namespace, each in watches.items()}),
        )
        for namespace, each in watches.items():
            wait_until(
                lambda each=each, namespace=namespace: (
                    sum(bool(condition(item, "PodScheduled")) for item in each.pods) == wanted[namespace]
                ),
                "every pod was tried",
            )
            assert each.bound == expected[namespace]
        for namespace in expected:
            cluster.api.delete_all("pods", namespace)
        cluster.api.delete("nodes", "node")
        wait_until(lambda: _requested(quotaward) == 0, "all is as it was before")


def test_two_queues_of_equal_weight_share_20_cpu_and_one_pod_goes_for_it(cluster, scheduler, watch):
    cluster.node(cpu=20, memory="100Gi")
    first, second = (cluster.namespace(name, cluster.queue(name, weight=50)) for name in ("a", "b"))
    giving, taking = watch(first), watch(second)
    cluster.api.create_all(pods(4, first, cpu=4, memory="1Gi"))
    wait_for(giving, bound=4)
    cluster.api.create_all(pods(2, second, cpu=4, memory="1Gi"))
    wait_for(taking, bound=2)
    ensure_for(2, lambda: len(evicted(giving)) == 1 and not evicted(taking), "exactly one went")


def test_half_of_the_usable_nodes_is_taken_back_beside_a_tainted_control_plane(cluster, scheduler, watch):
    taints = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    cluster.node("worker", cpu=8)
    cluster.node("control-plane", cpu=8, taints=taints)
    first, second = (cluster.namespace(name, cluster.queue(name)) for name in ("a", "b"))
    giving, taking = watch(first), watch(second)
    cluster.api.create_all(pods(8, first, cpu=1))
    wait_for(giving, bound=8)
    cluster.api.create_all(pods(6, second, cpu=1))
    wait_for(taking, bound=4)
    ensure_for(2, lambda: len(evicted(giving)) == 4 and len(bound(taking)) == 4, "each has half, and no more goes")
    assert {each["spec"]["nodeName"] for each in taking.pods if "nodeName" in each["spec"]} == {"worker"}


def test_a_new_guarantee_takes_effect_and_costs_nobody_a_pod_until_its_owner_asks(cluster, quotaward, scheduler, watch):
    cluster.node(cpu=12)
    a = cluster.namespace("a", cluster.queue("a"))
    b = cluster.namespace("b", cluster.queue("b"))
    kept = cluster.namespace("kept", cluster.queue("kept", reclaimable=False))
    least = cluster.namespace("least", cluster.queue("least", guarantee={"resource": {"cpu": "1"}}))
    borrowing, owning, spared, guaranteed = watch(a), watch(b), watch(kept), watch(least)
    cluster.api.create_all([*pods(2, kept), *pods(1, least)])
    wait_for(spared, bound=2)
    wait_for(guaranteed, bound=1)
    cluster.api.create_all(pods(9, a))
    wait_for(borrowing, bound=9)

    cluster.change_queue("b", guarantee={"resource": {"cpu": "3"}})
    wait_until(lambda: _queue(quotaward, "b")["deserved"].get("cpu") == "3", "it deserves its guarantee")
    ensure_for(2, lambda: not evicted(borrowing), "nobody goes for a queue that has no pod")
    cluster.api.create_all(pods(3, b))
    wait_for(owning, bound=3)
    evicts(3, borrowing)

    cluster.change_queue("b", guarantee={"resource": {"cpu": "5"}})
    cluster.api.create_all(pods(2, b, prefix="more"))
    wait_for(owning, bound=5)
    evicts(5, borrowing)

    cluster.change_queue("b", weight=1)
    wait_until(lambda: _queue(quotaward, "b")["guarantee"] == {}, "the guarantee is gone")
    ensure_for(2, lambda: len(bound(owning)) == 5, "what runs goes on")
    assert not evicted(spared)
    assert not evicted(guaranteed)
    assert not evicted(owning)


def test_pods_that_fit_nowhere_keep_no_room_idle_for_longer_than_the_patience(cluster, watch):
    cluster.node(cpu=8)
    stuck, able = (cluster.namespace(name, cluster.queue(name)) for name in ("a", "b"))
    waiting, patience = watch(able), 5
    with Quotaward(cluster.control_plane, "--claims.patience", str(patience)) as quotaward:
        cluster.api.create_all([*pods(8, stuck, nodeSelector={"no": "where"}), *pods(8, able)])
        wait_until(
            lambda: [_queue(quotaward, name)["deserved"].get("cpu") for name in ("a", "b")] == ["4", "4"],
            "half of the cluster is kept for each, before anybody is tried",
        )
        with Scheduler(cluster.control_plane, extender(quotaward.url)):
            wait_until(lambda: waiting.bound == 8, "what nobody can use is used")
    tried = sorted(_scheduled_since(item) for item in cluster.api.items("pods", stuck))
    taken = sorted(_scheduled_since(item) for item in waiting.pods)
    assert taken[4] - tried[0] >= timedelta(seconds=patience), "but not before"


def test_a_pod_whose_namespace_names_no_queue_is_refused_until_there_is_one(cluster, quotaward, scheduler, watch):
    cluster.node(cpu=8)
    cluster.queue("other")
    namespace = cluster.namespace("lost", "nowhere")
    waiting = watch(namespace)
    cluster.api.create(pod("early", namespace))
    wait_for(waiting, bound=0, refused=1, why="Queue is closed")
    cluster.queue("nowhere")
    wait_for(waiting, bound=1)
    cluster.api.delete("queues", "nowhere")
    wait_until(lambda: _names(quotaward) == {"other"}, "it is known to be gone")
    cluster.api.create(pod("late", namespace))
    wait_for(waiting, bound=1, refused=1, why="Queue is closed")


def _scheduled_since(item: Object) -> datetime:
    """Since when a pod has a place, or has none; to the second."""
    return datetime.fromisoformat(condition(item, "PodScheduled")["lastTransitionTime"])


def _queue(quotaward: Quotaward, name: str) -> Object:
    found: Object = quotaward.get(f"/api/v1/queues/{name}")
    return found


def _names(quotaward: Quotaward) -> set[str]:
    return {queue["name"] for queue in quotaward.get("/api/v1/queues")["items"]}


def _requested(quotaward: Quotaward) -> int:
    """How many pods all queues know of."""
    queues = quotaward.get("/api/v1/queues")["items"]
    return sum(int(queue["request"].get("pods", 0)) for queue in queues)
