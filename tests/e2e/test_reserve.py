"""Nodes are reserved for jobs that starve, on a stock scheduler. Seed: reserve action, the 3C3G example."""

import pytest

from tests.controlplane.objects import condition, pod
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, ensure_for, wait_for

RESERVED = "node(s) resource was(were) reserved"
SOON = ("--reserve.starving-after", "4", "--leader.lease-duration", "3")
LATER = ("--reserve.starving-after", "3600")


@pytest.fixture
def serving(cluster):
    """Starts a Quotaward with some flags, and a scheduler that asks it; both end with the test."""
    running = []

    def start(*flags):
        quotaward = Quotaward(cluster.control_plane, *flags)
        running.append(quotaward.__enter__())
        running.append(Scheduler(cluster.control_plane, extender(quotaward.url)).__enter__())
        return quotaward

    yield start
    for each in reversed(running):
        each.__exit__()


def small(number, namespace):
    return pod(f"pod-{number}", namespace, memory="1Gi")


def reserved(quotaward):
    """The node that is reserved, by the name of the pod it is for."""
    items = quotaward.get("/api/v1/reservations")["items"]
    return {each["pod"].partition("/")[2]: each["node"] for each in items if each["reason"] == "Starving"}


def crowd(cluster, watching, namespace):
    """Three pods that run, one that needs the whole node, and three that wait behind it."""
    cluster.node(cpu=3, memory="3Gi")
    cluster.api.create_all([small(number, namespace) for number in (1, 2, 3)])
    wait_for(watching, bound=3)
    cluster.api.create(pod("pod-4", namespace, cpu=3, memory="3Gi"))
    wait_for(watching, bound=3, refused=1, why="Insufficient cpu")
    for number in (5, 6, 7):
        cluster.api.create(small(number, namespace))
    wait_for(watching, bound=3, refused=4, why="Insufficient cpu")


def starve(cluster, quotaward, watching):
    """A node on which a pod runs, and that is reserved for one that needs all of it."""
    cluster.node(cpu=3)
    cluster.api.create(pod("runs", watching.namespace, cpu=1))
    wait_for(watching, bound=1)
    cluster.api.create(pod("large", watching.namespace, cpu=3))
    wait_until(lambda: reserved(quotaward), "the node is reserved")


def end(cluster, namespace, *numbers):
    for number in numbers:
        cluster.api.delete("pods", f"pod-{number}", namespace)


def running(watching):
    return sorted(int(name.removeprefix("pod-")) for name in bound(watching))


def test_without_a_reservation_the_small_pods_slip_past_the_large_one(cluster, serving, watch):
    serving(*LATER)
    namespace = cluster.namespace()
    watching = watch(namespace)
    crowd(cluster, watching, namespace)
    end(cluster, namespace, 1, 2, 3)
    wait_until(lambda: running(watching) == [5, 6, 7], "the small ones run")
    end(cluster, namespace, 5, 6, 7)
    wait_until(lambda: running(watching) == [4], "the large one starts last")


def test_with_a_reservation_nothing_slips_past_the_large_pod_once_it_starves(cluster, serving, watch):
    quotaward = serving("--reserve.starving-after", "12")
    namespace = cluster.namespace()
    watching = watch(namespace)
    crowd(cluster, watching, namespace)
    assert reserved(quotaward) == {}, "it does not starve yet"
    end(cluster, namespace, 1)
    (late,) = wait_until(lambda: set(running(watching)) - {1, 2, 3}, "one more may start")
    waiting = {5, 6, 7} - {late}
    wait_until(lambda: reserved(quotaward) == {"pod-4": "node"}, "the large one starves, and the node is reserved")
    end(cluster, namespace, 2, 3)
    wait_for(watching, bound=1, refused=2, why=RESERVED)
    ensure_for(4, lambda: running(watching) == [late], "2 cores and 2 GiB stay idle")
    for number in waiting:
        message = condition(cluster.api.get("pods", f"pod-{number}", namespace), "PodScheduled")["message"]
        assert message.startswith(f"0/1 nodes are available: 1 {RESERVED}. "), message
    end(cluster, namespace, late)
    wait_until(lambda: running(watching) == [4], "the large one starts")
    wait_until(lambda: not cluster.api.items("reservations"), "the node is reserved no longer")
    end(cluster, namespace, 4)
    wait_until(lambda: set(running(watching)) == waiting, "the others after it")
    reasons = {each["reason"] for each in cluster.api.items("events", namespace)}
    assert "NodesReserved" in reasons


def test_who_waits_behind_a_reserved_node_is_woken_when_the_job_is_gone(cluster, serving, watch):
    quotaward = serving(*SOON)
    namespace = cluster.namespace()
    watching = watch(namespace)
    starve(cluster, quotaward, watching)
    cluster.api.create(pod("other", namespace, cpu=1))
    wait_for(watching, bound=1, refused=1, why=RESERVED)
    cluster.api.delete("pods", "large", namespace)
    wait_until(lambda: "other" in bound(watching), "it starts", 15)


def test_a_restart_keeps_the_same_nodes_and_a_node_that_is_gone_is_replaced(cluster, serving, watch):
    quotaward = serving(*SOON)
    namespace = cluster.namespace()
    watching = watch(namespace)
    first, second, _ = cluster.nodes(3, cpu=3)
    hold = [pod(f"on-{node}", namespace, cpu=cpu, nodeName=node) for node, cpu in ((first, 1), (second, 2))]
    cluster.api.create_all([*hold, pod("on-last", namespace, cpu=3, nodeName="node-2")])
    wait_for(watching, bound=3)
    cluster.api.create(pod("large", namespace, cpu=3))
    wait_until(lambda: reserved(quotaward) == {"large": first}, "the freest node is reserved")
    before = [each["metadata"]["uid"] for each in cluster.api.items("reservations")]

    quotaward.crash()
    cluster.api.create(pod("smaller", namespace, cpu="500m", nodeName=second))
    cluster.api.delete("pods", f"on-{second}", namespace)  # by now that one would be the freest
    quotaward.start()
    assert reserved(quotaward) == {"large": first}
    wait_until(lambda: quotaward.metric("quotaward_leader"), "it leads again")
    ensure_for(3, lambda: reserved(quotaward) == {"large": first}, "it is kept")
    assert [each["metadata"]["uid"] for each in cluster.api.items("reservations")] == before

    cluster.api.delete("nodes", first)
    wait_until(lambda: reserved(quotaward) == {"large": second}, "another is chosen")
    cluster.api.delete("pods", "smaller", namespace)
    wait_until(lambda: "large" in bound(watching), "it starts there")


def test_pods_that_request_nothing_and_those_of_daemon_sets_enter(cluster, serving, watch):
    quotaward = serving(*SOON)
    namespace = cluster.namespace()
    watching = watch(namespace)
    starve(cluster, quotaward, watching)
    daemon = pod("daemon", namespace, cpu="100m")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}
    daemon["metadata"]["ownerReferences"] = [owner]
    cluster.api.create_all([pod("best-effort", namespace, cpu=None), daemon, pod("other", namespace, cpu="100m")])
    wait_until(lambda: bound(watching) == {"runs", "best-effort", "daemon"}, "both are on the node")
    wait_for(watching, bound=3, refused=1, why=RESERVED)


def test_a_gang_that_the_nodes_cannot_hold_reserves_nothing_and_says_so(cluster, serving, watch):
    install_pod_groups(cluster.api)
    quotaward = serving(*SOON)
    namespace = cluster.namespace()
    watching = watch(namespace)
    nodes = cluster.nodes(2, cpu=3)
    cluster.api.create_all([pod(f"on-{node}", namespace, cpu=1, nodeName=node) for node in nodes])
    wait_for(watching, bound=2)
    cluster.api.create(pod_group("gang", namespace, 3))
    cluster.api.create_all(members("gang", namespace, 3, cpu=3))

    def conditions():
        groups = quotaward.get("/api/v1/podgroups")["items"]
        return [each["type"] for group in groups if group["name"] == "gang" for each in group["conditions"]]

    def events():
        return [each for each in cluster.api.items("events", namespace) if each["reason"] == "TooLarge"]

    wait_until(lambda: conditions() == ["TooLarge"], "the group says so")
    wait_until(events, "its pods are told")
    cluster.api.create(pod("other", namespace, cpu="100m"))
    wait_until(lambda: "other" in bound(watching), "others pass")
    assert reserved(quotaward) == {}


def test_a_gang_starts_whole_on_the_nodes_reserved_for_it(cluster, serving, watch):
    install_pod_groups(cluster.api)
    quotaward = serving(*SOON, "--reserve.max-nodes-percent", "100")
    namespace = cluster.namespace()
    watching = watch(namespace)
    nodes = cluster.nodes(2, cpu=3)
    cluster.api.create_all([pod(f"on-{node}", namespace, cpu=1, nodeName=node) for node in nodes])
    wait_for(watching, bound=2)
    cluster.api.create(pod_group("gang", namespace, 2))
    cluster.api.create_all(members("gang", namespace, 2, cpu=3))
    wait_until(lambda: sorted(reserved(quotaward).values()) == nodes, "a node for each member")
    cluster.api.create(pod("other", namespace, cpu=1))
    wait_for(watching, bound=2, refused=1, why=f"2 {RESERVED}")
    for node in nodes:
        cluster.api.delete("pods", f"on-{node}", namespace)
    wait_until(lambda: bound(watching) == {"gang-0", "gang-1"}, "the gang runs")
    wait_until(lambda: not cluster.api.items("reservations"), "nothing is reserved any more")


def test_a_pod_that_takes_of_what_is_reserved_waits_and_the_large_one_starts(cluster, serving, watch):
    quotaward = serving(*SOON)
    namespace = cluster.namespace()
    watching = watch(namespace)
    cluster.node(cpu=8)
    cluster.api.create_all(pod(f"pod-{number}", namespace) for number in range(5))
    wait_for(watching, bound=5)
    cluster.api.create(pod("pod-10", namespace, cpu=4))
    wait_until(lambda: reserved(quotaward), "the node is reserved for four of its eight cores")
    cluster.api.create(pod("pod-11", namespace))
    wait_for(watching, bound=5, refused=1, why=RESERVED)
    end(cluster, namespace, 0)
    wait_until(lambda: 10 in running(watching), "the large one starts as soon as it has its four")
    wait_until(lambda: not cluster.api.items("reservations"), "the node is reserved no longer")


def test_a_pod_that_takes_nothing_of_what_is_reserved_starts_there(cluster, serving, watch):
    quotaward = serving(*SOON)
    namespace = cluster.namespace()
    watching = watch(namespace)
    cluster.node(cpu=8)
    cluster.api.create(pod("pod-0", namespace, cpu=3, memory="3Gi"))
    wait_for(watching, bound=1)
    cluster.api.create(pod("pod-10", namespace, cpu=6, memory="1Gi"))
    wait_until(lambda: reserved(quotaward), "the node is reserved for six of its eight cores")
    cluster.api.create(pod("pod-1", namespace, cpu=None, memory="1Gi"))
    wait_until(lambda: 1 in running(watching), "it asks for no core")
    assert reserved(quotaward) == {"pod-10": "node"}
