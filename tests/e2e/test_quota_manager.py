"""Resource quotas hold the namespaces of queues to their part, on a real API server that enforces them."""

import os
import random
from decimal import Decimal

import httpx
import pytest

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import GPU, Object, is_bound, replica_set, requested
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, install_rights
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.test_manifests import may
from tests.e2e.waiting import ensure_for

CHANGES = 200 if os.environ.get("QUOTAWARD_LONG") else 20
UNIT = {"cpu": Decimal("0.001"), "memory": Decimal(1), "pods": Decimal(1)}
CLOSE = Decimal("0.01")  # a limit may differ from what is deserved by a hundredth
ON = "--quota-manager.enabled"
NAME = "quotaward"


@pytest.fixture
def controllers(control_plane: ControlPlane):
    """What counts resource quotas and keeps replica sets full."""
    names = ("resourcequota-controller", "replicaset-controller", "disruption-controller")
    with ControllerManager(control_plane, *names) as running:
        yield running


@pytest.fixture
def managed(cluster, controllers):
    """A Quotaward with the quota manager on, and a scheduler that asks it."""
    with Quotaward(cluster.control_plane, ON) as quotaward, Scheduler(cluster.control_plane, extender(quotaward.url)):
        yield quotaward


def hard(api, namespace: str) -> dict[str, Decimal]:
    """The limits of a namespace, by resource; empty if it has none, or if no node has anything to limit yet."""
    for item in api.items("resourcequotas", namespace):
        if item["metadata"]["name"] == NAME:
            return {key.removeprefix("requests."): number(value) for key, value in item["spec"].get("hard", {}).items()}
    return {}


def number(quantity: str) -> Decimal:
    return requested({"spec": {"containers": [{"resources": {"requests": {"x": quantity}}}]}}, "x")


def used(api, namespace: str) -> dict[str, Decimal]:
    """What the pods on nodes request."""
    bound = [pod for pod in api.items("pods", namespace) if is_bound(pod)]
    sums = {resource: sum((requested(pod, resource) for pod in bound), Decimal(0)) for resource in ("cpu", "memory")}
    return sums | {"pods": Decimal(len(bound))}


class Invariants:
    """What the seed says of queues once preemption is done; empty strings where it holds."""

    def __init__(self, cluster, queues: dict[str, list[str]]):
        self._api = cluster.api
        self._queues = queues

    def broken(self) -> list[str]:
        items = {item["metadata"]["name"]: item for item in self._api.items("queues")}
        weights = {name: item["spec"]["weight"] for name, item in items.items()}
        status = {name: item.get("status", {}) for name, item in items.items()}
        limits = {ns: hard(self._api, ns) for namespaces in self._queues.values() for ns in namespaces}
        usage = {ns: used(self._api, ns) for ns in limits}
        nodes = [item["status"]["allocatable"] for item in self._api.items("nodes")]
        found = []
        for resource, unit in UNIT.items():
            total = sum((number(each[resource]) for each in nodes), Decimal(0))
            deserved = {name: number(status[name].get("deserved", {}).get(resource, "0")) for name in self._queues}
            if sum(deserved.values()) != total:
                found.append(f"{resource}: {deserved} do not sum to {total}")
            by_weight = {name: total * weight / sum(weights.values()) for name, weight in weights.items()}
            if any(abs(deserved[name] - part) >= unit for name, part in by_weight.items()):
                found.append(f"{resource}: {deserved} is not {by_weight}")
            if sum(used_by.get(resource, Decimal(0)) for used_by in usage.values()) > total:
                found.append(f"{resource}: the cluster is overused")
            for name, namespaces in self._queues.items():
                shown = number(status[name].get("used", {}).get(resource, "0"))
                if shown != sum(usage[ns][resource] for ns in namespaces):
                    found.append(f"{resource}: the status of {name} is behind")
                limit = sum((limits[ns].get(resource, Decimal(0)) for ns in namespaces), Decimal(0))
                if abs(limit - deserved[name]) > deserved[name] * CLOSE:
                    found.append(f"{resource}: {name} deserves {deserved[name]}, limit {limit}")
            found += [
                f"{resource}: {ns} uses {usage[ns][resource]} of {limits[ns].get(resource)}"
                for ns in limits
                if usage[ns][resource] > limits[ns].get(resource, Decimal(0))
            ]
        found += [f"{name}: preempting" for name, each in status.items() if each.get("preempting", "unknown")]
        return found

    def wait(self, after: str) -> None:
        wait_until(lambda: not self.broken(), f"all holds after {after}", 60, detail=lambda: "\n".join(self.broken()))


@pytest.mark.timeout(60 + 15 * CHANGES)
def test_what_the_seed_says_holds_after_any_changes_of_weights_nodes_and_demand(cluster, managed):
    chance = random.Random(11)
    api = cluster.api
    queues = {name: [cluster.namespace(queue=name) for _ in range(count)] for name, count in (("one", 1), ("two", 2))}
    queues["three"] = [cluster.namespace(queue="three")]
    for name in queues:
        cluster.queue(name, weight=chance.randint(1, 4))
    for number_of_node in range(3):
        cluster.node(f"node-{number_of_node}", cpu=8, memory="8Gi", pods=50)
    namespaces = [namespace for of_queue in queues.values() for namespace in of_queue]
    for namespace in namespaces:
        api.create(replica_set("work", namespace, 6, cpu=1, memory="512Mi"))
    invariants = Invariants(cluster, queues)
    invariants.wait("the start")
    for change in range(CHANGES):
        what = chance.choice(("weight", "node", "demand", "demand"))
        if what == "weight":
            api.patch("queues", chance.choice(list(queues)), {"spec": {"weight": chance.randint(1, 5)}})
        elif what == "node":
            change_nodes(cluster, chance, change)
        else:
            api.patch("replicasets", "work", {"spec": {"replicas": chance.randint(0, 20)}}, chance.choice(namespaces))
        invariants.wait(f"change {change} of {what}")
    assert managed.metric("quotaward_evictions_total", reason="quota-manager", outcome="evicted")


def change_nodes(cluster, chance: random.Random, change: int) -> None:
    """Adds a node, or takes one away with what runs on it."""
    names = [item["metadata"]["name"] for item in cluster.api.items("nodes")]
    if len(names) < 3 or (len(names) < 5 and chance.random() < 0.5):
        cluster.node(f"more-{change}", cpu=chance.randint(4, 8), memory="8Gi", pods=50)
        return
    name = chance.choice(names)
    cluster.api.patch("nodes", name, {"spec": {"unschedulable": True}})
    for pod in on_node(cluster, name):
        try:
            cluster.api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"], grace=0)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:  # or it was evicted meanwhile
                raise
    wait_until(lambda: not on_node(cluster, name), "the node is empty")
    cluster.api.delete("nodes", name)


def on_node(cluster, name: str) -> list[Object]:
    return [pod for pod in cluster.api.items("pods") if pod["spec"].get("nodeName") == name]


def test_pods_beyond_the_limit_are_not_even_created(cluster, managed):
    cluster.node(cpu=4, memory="8Gi")
    cluster.queue("one")
    cluster.queue("other")
    mine, theirs = cluster.namespace(queue="one"), cluster.namespace(queue="other")
    wait_until(lambda: hard(cluster.api, mine).get("cpu") == hard(cluster.api, theirs).get("cpu") == 2, "half each")
    cluster.api.create(replica_set("work", mine, 4, cpu=1, memory="64Mi"))
    wait_until(lambda: used(cluster.api, mine)["cpu"] == 2, "half the node is used")
    ensure_for(2, lambda: len(cluster.api.items("pods", mine)) == 2, "no more are created")


def test_what_no_node_has_is_not_limited(cluster, managed):
    cluster.queue("one")
    mine = cluster.namespace(queue="one")
    wait_until(lambda: cluster.api.items("resourcequotas", mine), "it has a resource quota before there are nodes")
    assert hard(cluster.api, mine) == {}, "an autoscaler adds nodes for pods that wait, so they can be created"
    cluster.node(cpu=4, memory="8Gi")
    wait_until(lambda: hard(cluster.api, mine).get("cpu") == 4, "the node's cpus are the limit")


def test_a_hand_edit_is_put_back_and_an_object_of_somebody_elses_is_left_alone(cluster, managed):
    cluster.node(cpu=4, memory="8Gi")
    cluster.queue("one")
    taken = cluster.namespace()
    theirs = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": NAME, "namespace": taken},
        "spec": {"hard": {"requests.cpu": "7"}},
    }
    cluster.api.create(theirs)
    annotation = {"scheduling.volcano.sh/queue-name": "one"}
    cluster.api.patch("namespaces", taken, {"metadata": {"annotations": annotation}})
    mine = cluster.namespace(queue="one")
    wait_until(lambda: hard(cluster.api, mine).get("cpu") == 2, "half of what the queue deserves")
    edit = {"spec": {"hard": {"requests.cpu": "100", "limits.cpu": "5"}}}
    cluster.api.patch("resourcequotas", NAME, edit, mine)
    wait_until(lambda: hard(cluster.api, mine).get("cpu") == 2, "the edit is put back")
    assert "limits.cpu" not in hard(cluster.api, mine)
    cluster.api.delete("resourcequotas", NAME, mine)
    wait_until(lambda: hard(cluster.api, mine).get("cpu") == 2, "it is there again")
    assert hard(cluster.api, taken) == {"cpu": 7}


def test_it_is_removed_with_its_queue_and_when_the_option_is_off_after_a_restart(cluster, controllers):
    cluster.node(cpu=4, memory="8Gi")
    cluster.queue("one")
    cluster.queue("other")
    mine, theirs = cluster.namespace(queue="one"), cluster.namespace(queue="other")
    with Quotaward(cluster.control_plane, ON):
        wait_until(lambda: hard(cluster.api, mine) and hard(cluster.api, theirs), "both are limited")
        cluster.api.delete("queues", "other")
        wait_until(lambda: not hard(cluster.api, theirs), "the one of the queue that is gone is removed")
        wait_until(lambda: hard(cluster.api, mine).get("cpu") == 4, "the other gets all")
    with Quotaward(cluster.control_plane):
        wait_until(lambda: not hard(cluster.api, mine), "nothing is left when it is off")


def test_the_api_server_enforces_what_was_written(cluster, managed):
    cluster.node(cpu=4, memory="8Gi", gpus=2)
    cluster.queue("one")
    mine = cluster.namespace(queue="one")
    wait_until(lambda: hard(cluster.api, mine).get("cpu") == 4, "it is limited")
    assert hard(cluster.api, mine)[GPU] == 2

    def refusal() -> str:
        try:
            cluster.api.apply(replica_pod(mine), dryRun="All")
        except httpx.HTTPStatusError as error:
            return str(error)
        return ""

    wait_until(lambda: "exceeded quota: quotaward" in refusal(), "a pod that is too large is refused", detail=refusal)


def test_it_may_change_only_resource_quotas_of_its_own_name(cluster):
    install_rights(cluster.api)
    for verb in ("patch", "delete"):
        wait_until(lambda verb=verb: may(cluster.api, NAME, verb, "resourcequotas", name=NAME), f"it may {verb} it")
        assert not may(cluster.api, NAME, verb, "resourcequotas", name="other")
        assert not may(cluster.api, NAME, verb, "resourcequotas")


def replica_pod(namespace: str) -> Object:
    template = replica_set("large", namespace, 1, cpu=5, memory="64Mi")["spec"]["template"]
    metadata = {"name": "large", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
