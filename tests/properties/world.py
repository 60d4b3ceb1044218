"""Small worlds: few names, few sizes, so that everything meets everything."""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

from hypothesis import strategies as st

from policy.admission import Rules
from policy.cluster import Cluster
from policy.elastic_quota import BORROWING, MAX, ElasticQuota, elastic_quota
from policy.pod import Pod, Unschedulable
from tests.unit.given import refused_for, unreadable

NAMESPACES = ("a", "b", "c")
RESOURCES = ("cpu", "memory", "gpu")
PENDING = {}
STATES = (
    *[PENDING] * 4,
    *[{"nominated_node": "n2"}] * 3,
    {"terminating": True},
    {"terminating": True, "nominated_node": "n2"},
    *[{"node": "n1"}] * 2,
    {"node": "n1", "terminating": True},
    {"node": "n1", "nominated_node": "n2"},
    {"node": "n1", "finished": True},
    {"nominated_node": "n2", "finished": True},
)
CONDITIONS = (
    None,
    Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."),
    Unschedulable("SchedulerError", "binding rejected"),
    refused_for(MAX),
    refused_for(BORROWING),
)
REQUESTS = [
    {resource: asked for resource, asked in zip(RESOURCES, some, strict=True) if asked} | {"pods": 1}
    for some in product((0, 1, 3), (0, 2), (0, 0, 1))
]
STANDINGS = tuple({"priority": priority, "preemptible": may} for may in (True, True, False) for priority in range(3))

BOUNDS = (None, None, 0, 1, 2, 3, 4, 5, 6, 9)


@st.composite
def one_of_each(draw: st.DrawFn, make: Callable, *options: Sequence) -> Any:
    """What is made of one of each of the options; a single draw, so quick, and the first of each is the simplest."""
    number, picked = draw(st.integers(0, prod(map(len, options)) - 1)), []
    for some in options:
        number, at = divmod(number, len(some))
        picked.append(some[at])
    return make(*picked)


def pods(
    names: Sequence[tuple[str, str, str]],
    states: Sequence[dict] = STATES,
    conditions: Sequence[Unschedulable | None] = CONDITIONS,
) -> st.SearchStrategy[Pod]:
    """Pods of these UIDs, namespaces and names, in all states that the API server can show them in."""

    def make(
        request: dict, identity: tuple, state: dict, standing: dict, said: Unschedulable | None, *rest: int
    ) -> Pod:
        created, version = rest
        return Pod(*identity, request, **state, **standing, unschedulable=said, created=float(created), version=version)

    return one_of_each(make, REQUESTS, names, states, STANDINGS, conditions, range(3), range(7))


def _limits(*bounds: int | None) -> dict[str, int]:
    return {name: bound for name, bound in zip((*RESOURCES, "pods"), bounds, strict=True) if bound is not None}


requests = st.sampled_from(REQUESTS)
versions = st.integers(0, 6)
limits = one_of_each(_limits, *[BOUNDS] * 4)
changes = st.sampled_from(
    (
        *STATES,
        *STANDINGS,
        *({"unschedulable": condition} for condition in CONDITIONS * 3),
        *({"request": request} for request in REQUESTS[:6]),
    )
)


def quotas(*namespaces: str) -> st.SearchStrategy[ElasticQuota]:
    """Readable quotas of these namespaces."""

    def make(namespace: str, name: str, created: float, *bounds: int | None) -> ElasticQuota:
        return elastic_quota(namespace, name, created, _limits(*bounds[:4]), _limits(*bounds[4:]))

    return one_of_each(make, namespaces, "xxy", (0.0, 1.0), *[BOUNDS] * 8)


def unreadable_quotas(*namespaces: str) -> st.SearchStrategy[ElasticQuota]:
    """Quotas whose spec cannot be read."""
    return one_of_each(unreadable, namespaces, "xy", (0.0, 1.0))


@st.composite
def clusters(
    draw: st.DrawFn, states: Sequence[dict] = STATES, conditions: Sequence[Unschedulable | None] = CONDITIONS
) -> Cluster:
    """A crowded cluster: up to a dozen pods, some of them granted, under quotas of any kind; c may have none."""
    cluster = Cluster(Rules(strict_borrowing=draw(st.booleans())), settle_time=0)
    for quota in [draw(quotas("a")), draw(quotas("b")), *draw(st.lists(quotas(*NAMESPACES), max_size=2))]:
        cluster.upsert_quota(quota)
    names = [(f"{namespace}{number}", namespace, f"{namespace}{number}") for namespace in "aabc" for number in range(4)]
    asked = st.tuples(pods(names, states, conditions), st.booleans())
    for pod, is_asked in draw(st.lists(asked, min_size=4, max_size=12)):
        cluster.upsert_pod(pod, now=0)
        if is_asked and pod.pending:
            cluster.admit(pod, now=0)
    return cluster
