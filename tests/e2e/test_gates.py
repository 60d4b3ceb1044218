"""Gates on a stock API server and scheduler: the order of binding is fair, and whoever waits costs nothing."""

import os
import random
import socket
import time

import pytest

from tests.controlplane.admission import a_webhook_that_nobody_answers, in_force
from tests.controlplane.api import read_manifests
from tests.controlplane.gates import POLICY, RIGHTS, delete, gated_namespace, is_gated, policy, right_to_open
from tests.controlplane.launch import run_quotaward
from tests.controlplane.objects import is_bound, pod, pods
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import ensure_for, evicts, wait_for

KIND = "podgroups.scheduling.x-k8s.io"
LONG = bool(os.environ.get("QUOTAWARD_LONG"))
TABLES = {  # queue: its weight, what it deserves, and by namespace: weight, pods created, pods to be bound
    "default weights": {"q1": (1, 8, [(1, 5, 4), (1, 10, 4)]), "q2": (1, 8, [(1, 10, 6), (1, 2, 2)])},
    "weights": {"q1": (1, 4, [(3, 5, 3), (1, 10, 1)]), "q2": (3, 12, [(2, 10, 10), (6, 2, 2)])},
    "spill over": {"q1": (1, 4, []), "q2": (3, 16, [(2, 5, 4), (6, 20, 12)])},
}


@pytest.fixture
def gates(cluster):
    with policy(cluster), right_to_open(cluster):
        yield


@pytest.mark.timeout(1800 if LONG else 300)
@pytest.mark.parametrize("table", TABLES if LONG else ["weights"])
def test_pods_are_bound_in_the_fair_order_whatever_the_order_of_creation(
    cluster, gates, quotaward, scheduler, watch, table
):
    tenants = {}  # namespace: queue, what that deserves, weight, to be bound
    wanted = {}
    for queue, (weight, deserved, namespaces) in TABLES[table].items():
        cluster.queue(queue, weight=weight)
        for its_weight, created, to_be_bound in namespaces:
            namespace = gated_namespace(cluster, queue, queue)
            cluster.weigh(namespace, its_weight)
            tenants[namespace], wanted[namespace] = (queue, deserved, its_weight, to_be_bound), created
    watches = {namespace: watch(namespace) for namespace in tenants}
    expected = {namespace: tenant[-1] for namespace, tenant in tenants.items()}
    for seed in range(20 if LONG else 1):
        everybody = [each for namespace, count in wanted.items() for each in pods(count, namespace)]
        random.Random(seed).shuffle(everybody)
        for each in everybody:
            cluster.api.create(each)
        wait_until(lambda: quotaward.metric("quotaward_gated_pods") == sum(wanted.values()), "all wait at gates")
        cluster.node(cpu=16)
        wait_until(
            lambda: {namespace: each.bound for namespace, each in watches.items()} == expected,
            "what is bound is what the table says",
            detail=lambda: str({namespace: each.bound for namespace, each in watches.items()}),
        )
        sequence = order_of_binding(watches)
        if LONG:  # on a busy machine the scheduler binds in another order than it took the pods up
            assert is_fair(sequence, tenants), sequence
        assert not any(each["status"].get("nominatedNodeName") for w in watches.values() for each in w.pods)
        for namespace in tenants:
            cluster.api.delete_all("pods", namespace)
        cluster.api.delete("nodes", "node")
        wait_until(lambda: not any(each.pods for each in watches.values()), "they are gone")
        wait_until(lambda: quotaward.metric("quotaward_gated_pods") == 0, "and that is known")
        wait_until(lambda: not any(map(has_room, quotaward.get("/api/v1/queues")["items"])), "and that of the node")
        wait_until(lambda: quotaward.metric("quotaward_store_objects", kind="pods") == 0, "and of the others")
        for each in watches.values():
            each.events.clear()


def has_room(queue) -> bool:
    return queue["realCapability"].get("cpu", "0") != "0"


def order_of_binding(watches) -> list[str]:
    """The namespaces of the pods in the order in which they were bound."""
    found: dict[str, tuple[int, str]] = {}
    for namespace, each in watches.items():
        for _, item in list(each.events):
            if is_bound(item):
                version = int(item["metadata"]["resourceVersion"])
                found.setdefault(item["metadata"]["uid"], (version, namespace))
    return [namespace for _, namespace in sorted(found.values())]


def is_fair(sequence, tenants) -> bool:
    """Whether at each moment every namespace has within one pod of what it would have in the order of the seed."""
    bound, fair = dict.fromkeys(tenants, 0), dict.fromkeys(tenants, 0)
    for namespace in sequence:
        bound[namespace] += 1
        fair[neediest(fair, tenants)] += 1
        if any(abs(bound[each] - fair[each]) > 1 for each in tenants):
            print(f"bound {bound} where {fair} is fair")
            return False
    return True


def neediest(bound, tenants) -> str:
    """Which namespace is next: the queue by share of what it deserves first, then by pods per weight."""

    def key(namespace):
        queue, deserved, weight, _ = tenants[namespace]
        of_queue = sum(number for other, number in bound.items() if tenants[other][0] == queue)
        return of_queue / deserved, queue, bound[namespace] / weight, -weight, namespace

    return min((each for each in tenants if bound[each] < tenants[each][-1]), key=key)


def ungated(cluster, namespace):
    return [each["metadata"]["name"] for each in cluster.api.items("pods", namespace) if not is_gated(each)]


def test_a_webhook_that_hangs_in_one_namespace_keeps_no_other_waiting(cluster, gates, quotaward):
    cluster.node(cpu=64)
    hanging, other = gated_namespace(cluster), gated_namespace(cluster)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster.api.create(pod("p", hanging, cpu=100))
        webhook = a_webhook_that_nobody_answers(hanging, silent.getsockname()[1], timeoutSeconds=3)
        with in_force(cluster, hanging, *webhook):
            before = ungated(cluster, hanging)  # "p", if that was quicker than the webhook
            cluster.api.create_all([*pods(30, hanging, prefix="stuck"), *pods(30, other)])
            wait_until(
                lambda: not any(is_gated(each) for each in cluster.api.items("pods", other)),
                "the others are let out",
                timeout=40,  # one after the other hung for 3 s each would take more than twice as long
            )
            assert ungated(cluster, hanging) == before


def test_a_gang_is_ungated_whole_and_a_gated_pod_takes_back_as_fast_as_another(
    cluster, gates, quotaward, scheduler, watch
):
    install_pod_groups(cluster.api)
    cluster.node(cpu=8)
    borrower, ungated = cluster.namespace("borrower"), cluster.namespace("ungated")
    owner = gated_namespace(cluster, "owner")
    cluster.quota(borrower, min={"cpu": 0}, max={"cpu": 8})
    cluster.quota(ungated, min={"cpu": 2}, max={"cpu": 8})
    cluster.quota(owner, min={"cpu": 6}, max={"cpu": 8})
    borrowing, without, owning = watch(borrower), watch(ungated), watch(owner)
    cluster.api.create_all(pods(8, borrower))
    wait_for(borrowing, bound=8)
    took = {}
    for each, watching in ((ungated, without), (owner, owning)):
        since = time.monotonic()
        cluster.api.create(pod("first", each))
        wait_for(watching, bound=1)
        took[each] = time.monotonic() - since
    print(f"\ntaken back for a pod without a gate in {took[ungated]:.1f} s, for one at a gate in {took[owner]:.1f} s")
    assert took[owner] < took[ungated] + 2

    known = quotaward.metric("quotaward_store_objects", kind=KIND)
    cluster.api.create(pod_group("gang", owner, 4))
    wait_until(lambda: quotaward.metric("quotaward_store_objects", kind=KIND) > known, "the group is known")
    *early, late = members("gang", owner, 4)
    cluster.api.create_all(early)
    ensure_for(2, lambda: sum(map(is_gated, owning.pods)) == 3, "those that are there wait for the last one")
    cluster.api.create(late)
    wait_for(owning, bound=5)
    evicts(6, borrowing)


@pytest.mark.timeout(900)
def test_whatever_fails_nobody_gets_past_max_and_nobody_is_forgotten(cluster, gates, watch):
    cluster.nodes(2)
    namespace = gated_namespace(cluster)
    cluster.quota(namespace, max={"cpu": 10})
    watching = watch(namespace)

    def free(number: int) -> None:
        for item in [item for item in watching.pods if is_bound(item)][:number]:
            cluster.api.delete("pods", item["metadata"]["name"], namespace, grace=0)

    def wait_for_places(bound: int, gated: int) -> None:
        wait_until(
            lambda: (watching.bound, sum(map(is_gated, watching.pods))) == (bound, gated),
            f"{bound} are bound, and {gated} wait at gates",
            detail=lambda: f"{watching.bound} and {sum(map(is_gated, watching.pods))}",
        )

    with (
        Quotaward(cluster.control_plane, "--leader.lease-duration", "3") as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        cluster.api.create_all(pods(40, namespace))
        wait_for_places(10, 30)

        # The leader is killed in the middle of opening
        free(5)
        wait_until(lambda: quotaward.metric("quotaward_gates_opened_total", outcome="opened") > 10, "one is opened")
        quotaward.crash()
        quotaward.start()
        wait_for_places(10, 25)

        # The API server refuses to change pods for a while
        right = [item for item in read_manifests(RIGHTS) if item["kind"] == "ClusterRoleBinding"]
        delete(cluster, right[0])
        time.sleep(1)  # until the API server itself has noticed
        free(5)
        ensure_for(20 if LONG else 3, lambda: watching.bound == 5, "nobody is let out")
        assert quotaward.metric("quotaward_gates_opened_total", outcome="failed") > 0
        cluster.api.apply(right[0])
        wait_for_places(10, 20)

        # Somebody takes a gate away by hand: filter alone decides
        item = next(item for item in watching.pods if is_gated(item))
        cluster.api.patch("pods", item["metadata"]["name"], {"spec": {"schedulingGates": None}}, namespace)
        wait_for(watching, bound=10, refused=1)
        free(1)
        wait_until(lambda: watching.bound == 10, "somebody has the place")

        # The label is taken away, and put back: all are let out, the next ones wait again
        cluster.label(namespace, gated=False)
        wait_until(lambda: not any(map(is_gated, watching.pods)), "nobody waits at a gate")
        cluster.label(namespace, gated=True)
        wait_until(lambda: is_gated(cluster.api.apply(pod("p", namespace), dryRun="All")), "new pods are gated")
        cluster.api.create_all(pods(5, namespace, prefix="later"))
        wait_until(lambda: sum(map(is_gated, watching.pods)) == 5, "they wait")
        assert watching.bound == 10

        # The policy is deleted: who waits goes on waiting for its turn, new ones have no gate
        for item in read_manifests(POLICY):
            delete(cluster, item)
        assert watching.most_bound() == 10
        cluster.change_quota(namespace, max={"cpu": 100})
        wait_until(lambda: watching.bound == len(watching.pods), "all are bound in the end")


def test_released_pods_need_nobody_and_keep_the_gates_of_others(cluster, gates, watch):
    namespace = gated_namespace(cluster)
    cluster.api.create_all(pods(20, namespace, schedulingGates=[{"name": "example.com/theirs"}]))
    command = ("gates", "release", "--kubeconfig", str(cluster.control_plane.kubeconfig))
    done = run_quotaward(*command)
    assert done.returncode == 0
    assert "20 gates opened" in done.stdout
    gates_left = {
        gate["name"] for item in cluster.api.items("pods", namespace) for gate in item["spec"]["schedulingGates"]
    }
    assert gates_left == {"example.com/theirs"}

    for name, (status, said) in {
        namespace: (0, "0 gates opened\n"),
        "typo": (1, "there is no namespace typo\n"),
    }.items():
        done = run_quotaward(*command, "-n", name)
        assert (done.returncode, done.stdout + done.stderr) == (status, said)
