"""How well what-if foretells what the stock scheduler does: random workloads, foretold first and then created."""

import json
import os
import random
import time
from collections import Counter

import pytest

from tests.controlplane.objects import Object, condition, is_bound, pod
from tests.controlplane.processes import wait_until

LONG = bool(os.environ.get("QUOTAWARD_LONG"))
WORKLOADS = 50 if LONG else 2
AGREE = 0.88 if LONG else 0.8
"""The share of pods, over all workloads, of which it has to be foretold whether they run, wait, or go.

The scheduler chooses by chance among nodes that are as good as each other, so what fits later differs between runs.
"""
QUIET = 4.0
"""Seconds without a change after which all is taken to be at rest: reclaim waits for one, pods back off for some."""


@pytest.mark.timeout(3600 if LONG else 300)
def test_who_runs_waits_and_goes_is_foretold(cluster, quotaward, scheduler):
    agreed, nodes, told = Counter[bool](), Counter[bool](), Counter[str]()
    cluster.priority("high", 1000)
    for seed in range(WORKLOADS):
        chance = random.Random(seed)
        namespaces = prepare(cluster, chance)
        first, then = workload(chance, namespaces, "first", 6), workload(chance, namespaces, "then", 9)
        for item in first:
            cluster.api.create(item)
        wait_for_rest(cluster, namespaces, len(first))
        wait_until(lambda each=namespaces, of=quotaward: shows_all(cluster, of, each), "it has seen all that is there")
        foretold = quotaward.post("/api/v1/whatif", {"apply": foreseen(then)})
        before = standing(cluster, namespaces)
        for item in then:
            cluster.api.create(item)
        after = wait_for_rest(cluster, namespaces, len(before) + len(then))
        expected = before | {name_of(item): "" for item in then}
        expected |= {each["pod"]: each["node"] for each in foretold["admitted"]}
        gone = {each["pod"] for each in foretold["evicted"]}
        for name in expected:
            foreseen_outcome = "gone" if name in gone else "runs" if expected[name] else "waits"
            outcome = "gone" if name not in after else "runs" if after[name] else "waits"
            agreed[foreseen_outcome == outcome] += 1
            told[f"{foreseen_outcome}/{outcome}"] += 1
            if foreseen_outcome == outcome == "runs" and not before.get(name):
                nodes[expected[name] == after[name]] += 1
        clear(cluster, quotaward, namespaces)
    print(f"foretold/happened: {json.dumps(told)}; on the node that was foretold: {dict(nodes)}")
    assert agreed[True] >= AGREE * agreed.total(), told


def prepare(cluster, chance: random.Random) -> list[str]:
    """Three or four nodes, and three namespaces: two under quotas, and at times in queues."""
    for number in range(chance.choice((3, 4))):
        cluster.node(f"node-{number}", cpu=chance.choice((3, 4, 6)), memory=f"{chance.choice((8, 12, 16))}Gi")
    queues = [None] * 3
    if chance.random() < 0.4:
        queues = [cluster.queue(name, weight=chance.choice((1, 2))) for name in ("one", "two")]
        queues.append(queues[0])
    namespaces = [cluster.namespace("team", queue) for queue in queues]
    for namespace in namespaces[:2]:
        cluster.quota(namespace, min={"cpu": chance.choice((3, 4, 6))}, max={"cpu": chance.choice((6, 8, 10))})
    return namespaces


def workload(chance: random.Random, namespaces: list[str], prefix: str, count: int) -> list[Object]:
    """Pods in the order of their turn: the important ones first."""
    made = [
        pod(
            f"{prefix}-{number}",
            chance.choice(namespaces),
            cpu=chance.choice((1, 1, 2, 3)),
            memory=f"{chance.choice((1, 2, 4))}Gi",
            **({"priorityClassName": "high"} if chance.random() < 0.2 else {}),
        )
        for number in range(count)
    ]
    return sorted(made, key=lambda item: "priorityClassName" not in item["spec"])


def foreseen(items: list[Object]) -> list[Object]:
    """The pods as the API server will show them: with the priority of their class, and one created after the other."""
    shown = []
    for number, item in enumerate(items):
        priority = 1000 if item["spec"].get("priorityClassName") else 0
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + number))
        metadata = item["metadata"] | {"creationTimestamp": created}
        shown.append(item | {"metadata": metadata, "spec": item["spec"] | {"priority": priority}})
    return shown


def standing(cluster, namespaces: list[str]) -> dict[str, str]:
    """Where each pod is, by name; an empty node: it waits."""
    items = [item for namespace in namespaces for item in cluster.api.items("pods", namespace)]
    return {
        name_of(item): item["spec"].get("nodeName", "") for item in items if "deletionTimestamp" not in item["metadata"]
    }


def wait_for_rest(cluster, namespaces: list[str], at_most: int) -> dict[str, str]:
    """Waits until every pod is bound or was refused, and nothing has changed for a while."""
    state, since = standing(cluster, namespaces), time.monotonic()

    def rests() -> bool:
        nonlocal state, since
        items = [item for namespace in namespaces for item in cluster.api.items("pods", namespace)]
        tried = all(is_bound(item) or condition(item, "PodScheduled") for item in items)
        if (now := standing(cluster, namespaces)) != state or not tried:
            state, since = now, time.monotonic()
        return time.monotonic() - since > QUIET

    wait_until(rests, f"at most {at_most} pods are at rest", timeout=90)
    return state


def shows_all(cluster, quotaward, namespaces: list[str]) -> bool:
    """Whether Quotaward knows as many pods on nodes as there are."""
    bound = sum(map(bool, standing(cluster, namespaces).values()))
    told = quotaward.post("/api/v1/whatif", {})
    return bound + told["waiting"] + len(told["admitted"]) == len(standing(cluster, namespaces))


def clear(cluster, quotaward, namespaces: list[str]) -> None:
    for namespace in namespaces:
        cluster.api.delete_all("pods", namespace)
        cluster.api.delete_all("elasticquotas", namespace)
    cluster.api.delete_all("queues")
    cluster.api.delete_all("nodes")
    wait_until(lambda: not cluster.api.items("pods") and not cluster.api.items("nodes"), "all is gone")
    for kind in ("pods", "elasticquotas", "queues"):
        wait_until(
            lambda kind=kind: quotaward.metric("quotaward_store_objects", kind=kind) == 0, "and it has seen that"
        )


def name_of(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"
