"""Nodes: the fields that are read, and the translation to the node of the rules."""

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata
from app.store.quantities import ResourceList, milli_of
from policy.objects.constraints import Taint
from policy.objects.node import Node
from policy.objects.quantity import amount_of_milli

UNREACHABLE = "node.kubernetes.io/unreachable"
"""The taint of a node whose kubelet does not report."""


class NodeCondition(Struct, gc=False):
    """The fields that are read of a condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(Struct, gc=False):
    """The fields that are read of a node's status."""

    allocatable: ResourceList | None = None
    conditions: list[NodeCondition] | None = None


class TaintObject(Struct, gc=False):
    """A taint of a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Struct, gc=False):
    """The fields that are read of a node's spec."""

    unschedulable: bool | None = None
    taints: list[TaintObject] | None = None


class NodeObject(Struct, gc=False):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


def node_of(obj: NodeObject) -> Node:
    """Returns the node as the rules see it. Raises InvalidObject."""
    allocatable, conditions = (obj.status.allocatable, obj.status.conditions) if obj.status else (None, None)
    milli = milli_of(allocatable, "status.allocatable")
    spec = obj.spec or NodeSpec()
    return Node(
        obj.metadata.name,
        {resource: amount_of_milli(resource, value) for resource, value in milli.items()},
        obj.metadata.labels or {},
        tuple(Taint(taint.key, taint.value or "", taint.effect) for taint in spec.taints or ()),
        bool(spec.unschedulable),
        all(condition.status == "True" for condition in conditions or () if condition.type == "Ready"),
        reachable=not any(condition.status == "Unknown" for condition in conditions or () if condition.type == "Ready")
        and not any(taint.key == UNREACHABLE for taint in spec.taints or ()),
    )


NODES = Kind(
    plural="nodes",
    api_version="v1",
    name="Node",
    decoder=msgspec.json.Decoder(NodeObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_node(node_of(obj)),
    delete=lambda cluster, key: cluster.delete_node(str(key)),
    known=lambda cluster: cluster.table.names,
    namespaced=False,
)
