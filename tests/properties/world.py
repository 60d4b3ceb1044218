"""Small worlds: few names, few sizes, so that everything meets everything."""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

from hypothesis import strategies as st

from policy.cluster.attempts import UNANSWERED
from policy.cluster.cluster import Cluster
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.quota import kept_nodes
from policy.quota.admission import Rules
from policy.quota.elastic_quota import BORROWING, MAX, ElasticQuota, elastic_quota
from tests.unit.given import refused_for, unreadable
from tests.worlds.walk import Pick, by_dice

NAMESPACES = ("a", "b", "c")
NODES = [Node(name, {"cpu": 100, "memory": 100, "gpu": 100, "pods": 100}) for name in ("n1", "n2")]
"""Nodes that anybody may come to who is nominated to one of them."""
RESOURCES = ("cpu", "memory", "gpu")
PENDING = {}
STATES = (
    *[PENDING] * 4,
    *[{"nominated_node": "n2"}] * 3,
    {"terminating": True},
    {"terminating": True, "nominated_node": "n2"},
    {"gated": True, "nominated_node": "n2"},
    *[{"node": "n1"}] * 2,
    {"node": "n1", "terminating": True},
    *[{"node": "n1", "terminating": True, "deletion_time": 5.0}] * 2,
    {"node": "gone", "terminating": True, "deletion_time": 9.0},
    {"node": "n1", "nominated_node": "n2"},
    {"node": "n1", "finished": True},
    {"nominated_node": "n2", "finished": True},
)
CONDITIONS = (
    None,
    Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."),
    Unschedulable("SchedulerError", "binding rejected"),
    Unschedulable("SchedulerError", f'{UNANSWERED} "http://127.0.0.1:8080/extender": code 503'),
    Unschedulable("Unschedulable", f"0/3 nodes are available: 1 {kept_nodes.HELD.text}, 2 Insufficient cpu."),
    refused_for(MAX),
    refused_for(BORROWING),
)
REQUESTS = [
    {resource: asked for resource, asked in zip(RESOURCES, some, strict=True) if asked} | {"pods": 1}
    for some in product((1, 0, 3), (0, 2), (0, 0, 1))
]
STANDINGS = tuple({"priority": priority, "preemptible": may} for may in (True, True, False) for priority in range(3))
CHANGES = (
    *STATES,
    *STANDINGS,
    *({"unschedulable": condition} for condition in CONDITIONS * 3),
    *({"request": request} for request in REQUESTS[:6]),
)
BOUNDS = {
    "cpu": (None, 8, 12, 0, 1, 2, 3, 4, 5, 6),
    "memory": (None, None, None, 0, 2, 4, 6, 8),
    "gpu": (None, None, None, None, 0, 1, 3),
    "pods": (None, None, None, None, None, None, 2, 4),
}


@st.composite
def one_of_each(draw: st.DrawFn, make: Callable, *options: Sequence) -> Any:
    """What is made of one of each of the options; a single draw, so quick, and the first of each is the simplest."""
    number, picked = draw(st.integers(0, prod(map(len, options)) - 1)), []
    for some in options:
        number, at = divmod(number, len(some))
        picked.append(some[at])
    return make(*picked)


def a_pod(
    pick: Pick,
    uid: str,
    namespace: str,
    name: str,
    *,
    states: Sequence[dict] = STATES,
    conditions: Sequence[Unschedulable | None] = CONDITIONS,
) -> Pod:
    """A pod in some state that the API server can show it in."""
    state, standing, said = pick(states), pick(STANDINGS), pick(conditions)
    created, version = float(pick(range(3))), pick(range(7))
    return Pod(
        uid,
        namespace,
        name,
        pick(REQUESTS),
        **state,
        **standing,
        unschedulable=said,
        created=created,
        version=version,
    )


def limits(pick: Pick) -> dict[str, int]:
    """A min or a max."""
    bounds = {resource: pick(options) for resource, options in BOUNDS.items()}
    return {resource: bound for resource, bound in bounds.items() if bound is not None}


def a_quota(pick: Pick, namespaces: Sequence[str] = NAMESPACES) -> ElasticQuota:
    """A quota, which now and then cannot be read."""
    namespace, name, created = pick(namespaces), pick("xxy"), pick((0.0, 1.0))
    if pick(range(8)) == 7:
        return unreadable(namespace, name, created)
    return elastic_quota(namespace, name, created, limits(pick), limits(pick))


def a_cluster(
    pick: Pick, states: Sequence[dict] = STATES, conditions: Sequence[Unschedulable | None] = CONDITIONS
) -> Cluster:
    """A crowded cluster: a dozen pods, some of them granted, under quotas of any kind; c may have none."""
    cluster = Cluster(Rules(strict_borrowing=pick((False, True))), settle_time=0)
    for node in NODES:
        cluster.upsert_node(node)
    for namespaces in ("a", "b", *pick(((), (NAMESPACES,), (NAMESPACES, NAMESPACES)))):
        cluster.upsert_quota(a_quota(pick, namespaces))
    for number in range(12):
        namespace = pick("aaabbc")
        name = f"{namespace}{number}"
        pod = a_pod(pick, name, namespace, name, states=states, conditions=conditions)
        cluster.upsert_pod(pod, now=0)
        if pod.pending and pick((True, False)):
            cluster.admit(pod, now=0)
    return cluster


seeds = st.integers(0, 2**64 - 1)
"""Of which ``by_dice`` makes a whole world: to draw each of its parts would take many times as long."""


def clusters(
    states: Sequence[dict] = STATES, conditions: Sequence[Unschedulable | None] = CONDITIONS
) -> st.SearchStrategy[Cluster]:
    """Clusters of any kind."""
    return seeds.map(lambda seed: a_cluster(by_dice(seed), states, conditions))
