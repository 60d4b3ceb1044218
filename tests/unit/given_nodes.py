"""Nodes and tables in the words of the tests of fit, and every way to ask where a pod fits at once."""

from collections.abc import Collection

from policy.nodes.fit import fits, fits_if_empty, fits_if_empty_on, fits_on
from policy.nodes.table import NodeTable
from policy.objects.constraints import Constraints, PodTerm, Requirement, Selector, Spread
from policy.objects.node import Node
from policy.objects.pod import Pod
from tests.unit.given import amounts, pod

HOSTNAME = "kubernetes.io/hostname"


def node(name: str = "n1", *, size: dict | None = None, labels: dict | None = None, **rest) -> Node:
    """A node of four cores for ten pods, with its name as a label, unless more is said of it."""
    allocatable = amounts(**({"cpu": 4, "pods": 10} | (size or {})))
    return Node(name, allocatable, {HOSTNAME: name} | (labels or {}), **rest)


def zoned(**zones: str) -> list[Node]:
    """Nodes by name, each in its zone; ``-`` is none."""
    return [node(name, labels={} if zone == "-" else {"zone": zone}) for name, zone in zones.items()]


def table_of(*objects: Node | Pod) -> NodeTable:
    """A table that has seen these nodes, and pods where they stand."""
    table = NodeTable()
    for seen in objects:
        if isinstance(seen, Node):
            table.upsert_node(seen)
        else:
            table.add(seen)
    return table


def on(name: str, uid: str = "other", namespace: str = "a", **rest) -> Pod:
    """A pod that stands on a node and takes no room but its place."""
    return pod(uid, namespace, request={"cpu": 0}, node=name, **rest)


def wanting(**constraints) -> Pod:
    """A pod with constraints that takes no room but its place."""
    labels = constraints.pop("labels", {})
    return pod("p", request={"cpu": 0}, labels=labels, constraints=Constraints(**constraints))


def labelled(**labels: str) -> Selector:
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))


def term(key: str = "zone", namespaces: Collection[str] | None = ("a",), **labels: str) -> PodTerm:
    """A term on pods of the tests' namespace with these labels."""
    return PodTerm(labelled(**labels), key, None if namespaces is None else frozenset(namespaces))


def spread(key: str = "zone", most: int = 1, *, labels: dict | None = None, **rest) -> Spread:
    return Spread(key, most, labelled(**(labels or {"app": "web"})), **rest)


def where(table: NodeTable, pod: Pod, without: Collection[str] = ()) -> set[str]:
    """Names of the nodes that the pod fits, however one asks: over all nodes, or of each, with none or these gone."""
    one_by_one = {name for name in table.names if fits_on(table, pod, name, without)}
    if not without:
        assert named(table, fits(table, pod)) == one_by_one
    return one_by_one


def where_suitable(table: NodeTable, pod: Pod) -> set[str]:
    """Names of the nodes that could take the pod if they were empty."""
    one_by_one = {name for name in table.names if fits_if_empty_on(table, pod, name)}
    assert named(table, fits_if_empty(table, pod)) == one_by_one
    return one_by_one


def named(table: NodeTable, mask) -> set[str]:
    assert mask.shape == (len(table.names),)
    return {name for name, answer in zip(table.names, mask, strict=True) if answer}
