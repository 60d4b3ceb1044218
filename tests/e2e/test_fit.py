"""Where the rules say that a pod fits is where the stock scheduler places it: exactly there, for hundreds of pods.

The scheduler's extender here is nobody but the test: it changes nothing, and is told which nodes passed the
scheduler's own filters.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import msgspec
import pytest

from app.store.nodes import NodeObject, node_of
from app.store.pod_object import PodObject
from app.store.pods import pod_of
from policy.nodes.fit import fits, fits_if_empty, fits_on, undecidable
from policy.nodes.table import NodeTable
from policy.objects.pod import Pod
from tests.controlplane.api import Api
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object, condition, is_bound, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.random_objects import LINGERS, Chance

SEEDS = [int(seed) for seed in os.environ.get("FIT_SEEDS", "1").split(",")]
REASONS = [
    "Insufficient cpu",
    "Insufficient memory",
    "Insufficient example.com/gpu",
    "Too many pods",
    "didn't match Pod's node affinity/selector",
    "were unschedulable",
    "had untolerated taint",
    "didn't have free ports",
    "didn't match pod affinity rules",
    "didn't match pod anti-affinity rules",
    "didn't satisfy existing pods anti-affinity rules",
    "didn't match pod topology spread constraints",
    "didn't match pod topology spread constraints (missing required label)",
]


class Listener:
    """An extender that passes every node, and remembers by pod which nodes it was asked about."""

    def __enter__(self) -> Self:
        self.nodes: dict[str, set[str]] = {}
        asked = self.nodes

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked[question["Pod"]["metadata"]["uid"]] = set(question["NodeNames"])
                answer = json.dumps({"NodeNames": question["NodeNames"]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{self._server.server_port}"
        self.extender = extender(url, prioritizeVerb="", preemptVerb="")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_fits_exactly_where_the_scheduler_finds_that_it_does(cluster: Cluster, seed: int):
    chance, api = Chance(seed), cluster.api
    create_nodes(cluster, chance, 12)
    namespaces = [cluster.namespace() for _ in range(3)]
    told: list[str] = []
    placed = 0
    with Listener() as listener, Scheduler(cluster.control_plane, listener.extender):
        for number in range(150):
            let_one_linger(api)
            table = what_the_api_server_shows(api)
            gone = take_some_away(api, chance) if chance.often(0.15) else set()
            made = api.create(chance.pod(f"pod-{number}", namespaces))
            asked = policy_pod(made)
            assert not undecidable(table, asked)
            expected = {name for name in table.names if fits_on(table, asked, name, gone)}
            if not gone:
                assert named(table, fits(table, asked)) == expected
            assert expected <= named(table, fits_if_empty(table, asked))
            decided = decision(api, made)
            context = f"seed {seed}, {json.dumps(made['spec'])}, gone: {gone}, decided: {decided['status']}"
            assert listener.nodes.get(asked.uid, set()) == expected, context
            if is_bound(decided):
                placed += 1
                assert decided["spec"]["nodeName"] in expected, context
            else:
                told.append(condition(decided, "PodScheduled")["message"])
                assert not expected, context
                remove(api, made)
    print(f"seed {seed}: {placed} placed, {len(told)} unschedulable")
    # Where the scheduler puts a pod among those that fit is by chance, so which reasons come up differs between runs.
    print(f"never a reason: {[reason for reason in REASONS if not any(reason in message for message in told)]}")


def test_what_depends_on_volumes_or_claims_is_not_decided(cluster: Cluster):
    namespace = cluster.namespace()
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    ephemeral = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    device = [{"name": "gpu", "resourceClaimName": "gpu"}]
    elsewhere = [{"name": "settings", "configMap": {"name": "settings"}}, {"name": "tmp", "emptyDir": {}}]
    asked = {
        "claim": pod("claim", namespace, volumes=claim),
        "ephemeral": pod("ephemeral", namespace, volumes=ephemeral),
        "device": pod("device", namespace, resourceClaims=device),
        "harmless": pod("harmless", namespace, volumes=elsewhere),
    }
    table = what_the_api_server_shows(cluster.api)
    reasons = {name: undecidable(table, policy_pod(cluster.api.create(made))) for name, made in asked.items()}
    assert {name: bool(reason) for name, reason in reasons.items()} == {
        "claim": True,
        "ephemeral": True,
        "device": True,
        "harmless": False,
    }


def test_only_containers_that_keep_running_take_ports_of_the_node(cluster: Cluster):
    """An init container that ends leaves its port to others, in the scheduler's eyes from the beginning."""
    namespace, api = cluster.namespace(), cluster.api
    cluster.node()
    port = {"containerPort": 80, "hostPort": 80}
    with Listener() as listener, Scheduler(cluster.control_plane, listener.extender):
        for number in range(2):
            made = pod(f"pod-{number}", namespace)
            made["spec"]["initContainers"] = [{"name": "init", "image": "none", "ports": [port]}]
            table = what_the_api_server_shows(api)
            made = api.create(made)
            assert is_bound(decision(api, made))
            assert named(table, fits(table, policy_pod(made))) == {"node"}


def create_nodes(cluster: Cluster, chance: Chance, count: int) -> None:
    for number in range(count):
        made, extended = chance.node(number), chance.extended(number)
        for sizes in made["status"].values():
            sizes.update(extended)
        cluster.api.create(made)
    wait_until(
        lambda: all(condition(node, "Ready").get("status") == "True" for node in cluster.api.items("nodes")),
        "all nodes are ready",
    )


def what_the_api_server_shows(api: Api) -> NodeTable:
    table = NodeTable()
    for node in api.items("nodes"):
        table.upsert_node(node_of(msgspec.json.decode(json.dumps(node), type=NodeObject)))
    for item in api.items("pods"):
        table.add(policy_pod(item))
    return table


def policy_pod(item: Object) -> Pod:
    return pod_of(msgspec.json.decode(json.dumps(item), type=PodObject))


def let_one_linger(api: Api, at_once: int = 4) -> None:
    """Delete a pod that nobody brings to an end. Of too many, the eldest is gone for good."""
    pods = [item for item in api.items("pods") if is_bound(item)]
    lingering = [item for item in pods if LINGERS in item["metadata"].get("annotations", {})]
    leaving = [item for item in lingering if "deletionTimestamp" in item["metadata"]]
    for item in [item for item in lingering if item not in leaving][:1]:
        api.delete("pods", item["metadata"]["name"], item["metadata"]["namespace"])
    for item in leaving[at_once:]:
        remove(api, item)


def take_some_away(api: Api, chance: Chance) -> set[str]:
    """Delete some pods, or let them finish; their UIDs. The scheduler hears of it before it hears of any later pod."""
    gone = set()
    there = sorted((item for item in api.items("pods") if is_bound(item)), key=lambda item: item["metadata"]["name"])
    for item in chance.random.sample(there, min(len(there), chance.of(1, 2, 4))):
        meta = item["metadata"]
        if chance.often(0.2):
            api.patch("pods", f"{meta['name']}/status", {"status": {"phase": "Succeeded"}}, meta["namespace"])
        else:
            api.delete("pods", meta["name"], meta["namespace"], grace=0)
        gone.add(meta["uid"])
    return gone


def decision(api: Api, made: Object) -> Object:
    """The pod when the scheduler has placed it or has said that it cannot."""
    meta = made["metadata"]

    def decided() -> Object | None:
        item = api.get("pods", meta["name"], meta["namespace"])
        return item if is_bound(item) or condition(item, "PodScheduled").get("reason") == "Unschedulable" else None

    return wait_until(decided, f"the scheduler has decided about {meta['name']}", every=0.01)


def remove(api: Api, item: Object) -> None:
    api.delete("pods", item["metadata"]["name"], item["metadata"]["namespace"], grace=0)


def named(table: NodeTable, mask) -> set[str]:
    return {name for name, answer in zip(table.names, mask, strict=True) if answer}
