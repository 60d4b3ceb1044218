"""How long plans and divisions take in a large cluster: processor time of one thread, inside this process."""

import gc
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from app.store.kinds import KINDS
from app.store.pods import pod_of
from app.store.store import Store
from policy.cluster.cluster import Cluster
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.queue import ROOT, Queue
from policy.preemption import victims
from policy.preemption.plans import Plan
from policy.reserve.starving import Terms
from tests.bench import world
from tests.bench.figures import Figure, middle
from tests.bench.sizes import NODES, PODS, QUEUES, QUOTAS, SCALE
from tests.unit.given_jobs import decide, in_turn

TIMES = 7
DIVIDED, TENANTS = max(10, 1000 // SCALE), 10
NOW = 1_000_000.0
TERMS = Terms(starving_after=3600, max_nodes_percent=50)
GROUP = "podgroups.scheduling.x-k8s.io/gang"
MEMBERS = 100
_KINDS = {(kind.api_version, kind.name): kind for kind in KINDS}


def run() -> list[Figure]:
    """Every plan is made some times, after a first time that does not count."""
    cluster = large_cluster()
    gc.collect()
    gc.freeze()
    return [_reclaim(cluster), *_gangs(cluster), *_divisions(tree=False), *_divisions(tree=True)]


def large_cluster() -> Cluster:
    """The large cluster, as it is taken in from an API server."""
    store = Store(Cluster(settle_time=0), settle_time=0)
    for item in world.objects(NODES, PODS, QUOTAS, QUEUES):
        kind = _KINDS[item["apiVersion"], item["kind"]]
        store.upsert(kind, kind.decoder.decode(json.dumps(item)))
    for _ in store.cluster.divide_steps():
        pass
    return store.cluster


def _reclaim(cluster: Cluster) -> Figure:
    """An owner takes back room: on no node it is found without three who borrow it."""
    pod = _pod("reclaims", "team-0", cpu=57_000, priority=1000)
    plan: Any = None

    def search() -> None:
        nonlocal plan
        plan = victims.plan(cluster, pod)

    took, spread = middle(_times(search), "ms")
    if not isinstance(plan, Plan):
        raise RuntimeError(f"no plan: {plan}")  # noqa: TRY004 - it is not about a type
    detail = f"{spread}; {len(plan.victims)} victims; {NODES} nodes, {PODS} pods"
    return Figure("reclaim plan", took, "ms", 200, 50, detail=detail)


def _gangs(cluster: Cluster) -> Iterable[Figure]:
    """A large gang asks for the first time, with room for all of it; then it starves, and nodes are reserved."""
    key = ("team-2", GROUP)
    cluster.upsert_group(Group(*key, MEMBERS, created=NOW - 7200))
    asking = list(map(_member, range(MEMBERS)))
    for pod in asking:
        cluster.upsert_pod(pod, 0.0)
    times = []
    for _ in range(TIMES + 1):
        before = time.thread_time()
        refused = cluster.admit(asking[0], 0.0)
        times.append((time.thread_time() - before) * 1000)
        if refused:
            raise RuntimeError(refused.message)
        cluster.delete_group(*key)
        for pod in asking:
            cluster.delete_pod(pod.uid)
        cluster.upsert_group(Group(*key, MEMBERS, created=NOW - 7200))
        for pod in asking:
            cluster.upsert_pod(pod, 0.0)
    took, spread = middle(times[1:], "ms")
    yield Figure(f"first question of a gang of {MEMBERS}", took, "ms", detail=spread)
    large = {**asking[0].request, "cpu": 57_000}
    for pod in asking:
        cluster.upsert_pod(replace(pod, request=large, unschedulable=NO_ROOM, created=NOW - 7200), 0.0)
    took, spread = middle(_times(lambda: _decide(cluster)), "ms")
    yield Figure(f"which nodes to reserve for a gang of {MEMBERS}", took, "ms", detail=spread)


def _member(number: int) -> Pod:
    """As it comes from an API server, where pods of one template share what they have in common."""
    item = world.pod(5 * 10**6 + number, 2, cpu="2")
    item["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "gang"
    return pod_of(_KINDS["v1", "Pod"].decoder.decode(json.dumps(item)))


NO_ROOM = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def _decide(cluster: Cluster) -> None:
    for job in in_turn(cluster, TERMS, NOW)[:1]:
        decide(cluster, job, TERMS, NOW)


def _divisions(*, tree: bool) -> Iterable[Figure]:
    """Queues that all want more than there is, divided anew after a node has changed, and after a pod has.

    In the tree each queue has five below it, on five levels; only those without any have namespaces.
    """
    cluster = Cluster(settle_time=0)
    for number in range(DIVIDED):
        parent = f"queue-{number // 5 - 1}" if tree and number >= 5 else ROOT
        cluster.upsert_queue(Queue(f"queue-{number}", weight=1 + number % 5, parent=parent))
    leaves = [f"queue-{number}" for number in range(DIVIDED) if not tree or 5 * number + 5 >= DIVIDED]
    for number in range(DIVIDED * TENANTS):
        name = f"team-{number}"
        cluster.upsert_namespace(Namespace(name, queue=leaves[number % len(leaves)]))
        cluster.upsert_pod(_pod(f"runs-{number}", name, cpu=500 + number % 7 * 100, node="node"), 0.0)
        cluster.upsert_pod(_pod(f"waits-{number}", name, cpu=1000, unschedulable=NO_ROOM), 0.0)
    gc.freeze()  # as the server does once it is in sync
    sizes = iter(range(10**6))

    def after_node() -> None:
        amount = DIVIDED * TENANTS * 1000 + next(sizes)
        cluster.upsert_node(Node("node", {"cpu": amount, "memory": amount * 2**20, "pods": amount}, {}))
        _divide(cluster)

    def after_pod() -> None:
        cluster.upsert_pod(_pod("waits-0", "team-0", cpu=1000 + next(sizes), unschedulable=NO_ROOM), 0.0)
        _divide(cluster)

    size = f"{DIVIDED} queues x {TENANTS} namespaces"
    of = "deserved and fair shares" + ", 5 levels" * tree
    for what, change, bar, goal in (("all", after_node, 50, 10), ("after one pod has changed", after_pod, 5, None)):
        took, spread = middle(_times(change), "ms")
        yield Figure(f"{of}, {what}", took, "ms", bar, goal, detail=f"{spread}; {size}")


def _divide(cluster: Cluster) -> None:
    for _ in cluster.divide_steps():
        pass


def _pod(name: str, namespace: str, *, cpu: int, **rest: Any) -> Pod:
    request = {"cpu": cpu, "memory": 2**30, "pods": 1}
    return Pod(f"{namespace}/{name}", namespace, name, request, **{"created": NOW - 10} | rest)


def _times(work: Callable[[], object]) -> list[float]:
    """Milliseconds of processor time, each time; the first does not count."""
    times = []
    for _ in range(TIMES + 1):
        before = time.thread_time()
        work()
        times.append((time.thread_time() - before) * 1000)
    return times[1:]
