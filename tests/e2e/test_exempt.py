"""What is critical to a node gets there, on a stock scheduler, whoever else there is or has been promised room."""

import time

import pytest

from tests.controlplane.objects import pod, pods
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.scheduler import Scheduler
from tests.e2e.waiting import bound, evicted, evicts, wait_for

SYSTEM = "kube-system"
SOON = 10
"""Seconds: without us it takes less than one on an idle machine."""


@pytest.fixture
def critical(cluster, watch):
    """Creates a pod as the DaemonSet of a network plugin does, for one node, and says how long it took to be bound."""
    watching = watch(SYSTEM)

    def create(node, name="cni"):
        match = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [match]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        began = time.monotonic()
        cluster.api.create(pod(name, SYSTEM, priorityClassName="system-node-critical", affinity=affinity))
        wait_until(lambda: name in bound(watching), f"{name} is on {node}", timeout=SOON)
        return time.monotonic() - began

    yield create
    cluster.api.delete_all("pods", SYSTEM)


def test_a_pod_that_is_critical_to_a_full_node_is_bound_as_soon_as_without_us(
    cluster, quotaward, scheduler, watch, critical
):
    node, team = cluster.node(cpu=4), cluster.namespace()
    cluster.quota(team, min={"cpu": 4}, max={"cpu": 4})
    watching = watch(team)
    cluster.api.create_all(pods(4, team))
    wait_for(watching, bound=4)
    wait_until(lambda: _used(quotaward) == "4", "the quota is known")
    critical(node)
    evicts(1, watching)


def test_without_us_it_is_bound_as_well(cluster, watch, critical):
    """What the other tests compare with: the scheduler alone, which asks nobody."""
    node, team = cluster.node(cpu=4), cluster.namespace()
    with Scheduler(cluster.control_plane):
        cluster.api.create_all(pods(4, team))
        wait_for(watch(team), bound=4)
        critical(node)


def test_so_it_is_where_it_falls_into_the_queue_default(cluster, quotaward, scheduler, watch, critical):
    node = cluster.node(cpu=4)
    cluster.queue("default", capability={"cpu": "1"})
    team = cluster.namespace("team", cluster.queue("big", weight=9))
    others, watching = watch(SYSTEM), watch(team)
    cluster.api.create_all([pod("dns", SYSTEM, priorityClassName="system-cluster-critical"), *pods(3, team)])
    wait_for(watching, bound=3)
    wait_until(lambda: bound(others) == {"dns"}, "what the system has is there, and its queue is full")
    critical(node)
    assert bound(others) == {"dns", "cni"}
    evicts(1, watching)


def test_so_it_is_on_a_node_that_is_held_for_a_gang(cluster, quotaward, scheduler, watch, critical):
    install_pod_groups(cluster.api)
    cluster.queue("default", capability={"cpu": "8"})
    team, other = cluster.namespace("team", cluster.queue("big")), cluster.namespace()
    first, second = cluster.nodes(2, cpu=4)
    gang, watching = watch(team), watch(other)
    cluster.api.create(pod_group("gang", team, 2))
    wait_until(lambda: quotaward.get("/api/v1/podgroups")["items"], "the group is known")
    there, never_comes = members("gang", team, 2, cpu=4)
    never_comes["spec"]["schedulerName"] = "nobody"
    cluster.api.create_all([never_comes, there])
    wait_for(gang, bound=1)
    (taken,) = {each["spec"].get("nodeName") for each in gang.pods} - {None}
    held = ({first, second} - {taken}).pop()
    cluster.api.create(pod("ordinary", other))
    wait_for(watching, bound=0, refused=1, why="node(s) held for a pod that is being given room")
    critical(held)
    assert not evicted(gang)


def _used(quotaward):
    (quota,) = quotaward.get("/api/v1/elasticquotas")["items"]
    return quota["used"].get("cpu")
