"""What becomes of quotas, plans and gangs when a node is cordoned, cut off or gone."""

import pytest

from tests.controlplane.gates import gated_namespace, policy, right_to_open
from tests.controlplane.objects import condition, is_bound, lingering, pod, pods
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, evicted, wait_for

UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
SOON = 8.0
"""Seconds within which a plan is to be replaced: 5, and some for a busy machine."""


def test_a_terminating_pod_on_a_lost_node_holds_its_quota_until_it_is_overdue(cluster, watch):
    a = cluster.namespace("a")
    cluster.quota(a, min={"cpu": 1}, max={"cpu": 1})
    of_a = watch(a)
    with (
        Quotaward(cluster.control_plane, "--overdue.after", "1") as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        lost = cluster.node("lost", cpu=4)
        cluster.api.create(lingering(pod("old", a)))
        wait_for(of_a, bound=1)
        cluster.node("other", cpu=4)
        cluster.api.patch("nodes", lost, {"spec": {"taints": UNREACHABLE}})
        cluster.api.create(pod("new", a))
        wait_for(of_a, bound=1, refused=1)
        cluster.api.delete("pods", "old", a, grace=1)
        wait_until(lambda: bound(of_a) == {"old", "new"}, "the new one has the place of the one that should be gone")

        def status():
            return cluster.api.get("elasticquotas", "quota", a).get("status", {})

        def is_said():
            said = condition({"status": status()}, "OverduePods").get("message", "")
            return f"kubectl delete pod old -n {a} --force --grace-period=0" in said

        wait_until(lambda: is_said() and status()["used"]["cpu"] == "1", "the quota says so")
        assert quotaward.metric("quotaward_overdue_pods", namespace=a) == 1
        assert "it is overdue" in quotaward.get(f"/api/v1/pods/{a}/old")["message"]

        cluster.api.patch("nodes", lost, {"spec": {"taints": None}})
        wait_until(lambda: status()["used"]["cpu"] == "2" and not is_said(), "it counts again, as its node is back")
        cluster.api.create(pod("newer", a))
        wait_for(of_a, bound=2, refused=1)


@pytest.mark.parametrize("lost", ["cordoned", "deleted"])
def test_a_plan_whose_node_is_lost_is_replaced_within_seconds(cluster, scheduler, watch, lost):
    nodes = {cluster.node(f"node-{number}", cpu=2) for number in range(2)}
    a, b, c = (cluster.namespace(letter) for letter in "abc")
    for namespace, least in ((a, 0), (b, 2), (c, 2)):
        cluster.quota(namespace, min={"cpu": least}, max={"cpu": 4})
    borrowing, owning = watch(a), watch(b)
    cluster.api.create_all(map(lingering, pods(4, a)))
    wait_for(borrowing, bound=4)
    cluster.api.create(pod("owner", b, cpu=2))
    wait_until(lambda: len(evicted(borrowing)) == 2, "two make room")

    def planned():
        return {each["spec"]["nodeName"] for each in cluster.api.items("reservations") if not failed(each)}

    (first,) = planned()
    (other,) = nodes - {first}
    if lost == "cordoned":
        cluster.api.patch("nodes", first, {"spec": {"unschedulable": True}})
    else:
        cluster.api.delete("nodes", first)
    wait_until(lambda: planned() == {other}, "room is made on the other node", timeout=SOON)
    there = {each["metadata"]["name"] for each in borrowing.pods if each["spec"]["nodeName"] == other}
    wait_until(lambda: there <= evicted(borrowing), "those go who are there")
    assert not any(failed(each) for each in cluster.api.items("reservations"))
    for name in there:
        cluster.api.delete("pods", name, a, grace=0)
    wait_for(owning, bound=1)
    assert [each["spec"]["nodeName"] for each in owning.pods] == [other]


def failed(reservation):
    return "failedAt" in reservation.get("status", {})


@pytest.fixture
def gates(cluster):
    with policy(cluster), right_to_open(cluster):
        yield


def test_lost_members_of_a_started_gang_come_before_a_job_of_a_namespace_with_less(
    cluster, gates, quotaward, scheduler, watch
):
    install_pod_groups(cluster.api)
    cluster.nodes(3, cpu=4)
    running, fresh, lender = gated_namespace(cluster, "running"), gated_namespace(cluster, "fresh"), cluster.namespace()
    cluster.quota(lender, min={"cpu": 3}, max={"cpu": 3})
    for namespace in (running, fresh):
        cluster.quota(namespace, min={"cpu": 0}, max={"cpu": 9})
    of_gang, of_fresh = watch(running), watch(fresh)
    cluster.api.create(pod_group("gang", running, 3))
    cluster.api.create_all(members("gang", running, 3))
    wait_for(of_gang, bound=3)
    cluster.api.create_all(pods(2, fresh))
    wait_until(lambda: quotaward.metric("quotaward_gated_pods") == 2, "they wait: all that is lent is used")
    again, *_ = members("gang", running, 1)
    again["metadata"]["name"] = "gang-again"
    cluster.api.create(again)
    wait_until(lambda: quotaward.metric("quotaward_gated_pods") == 3, "and so does the last of the gang")
    node = next(each["spec"]["nodeName"] for each in of_gang.pods if each["metadata"]["name"] == "gang-0")
    cluster.api.delete("nodes", node)
    cluster.api.delete("pods", "gang-0", running, grace=0)
    wait_until(lambda: bound(of_gang) == {"gang-1", "gang-2", "gang-again"}, "the gang is whole again")
    assert not any(map(is_bound, of_fresh.pods))
