"""Decides which nodes accept a pod regardless of other pods: node selector and affinity, taints, unschedulable nodes.

No eviction changes any of it. Sources: the plugins NodeAffinity, TaintToleration and NodeUnschedulable of
kube-scheduler 1.37. Over all nodes a rule is judged once for each value that occurs, not once for each node.
"""

import numpy as np

from policy.nodes.codes import meeting
from policy.nodes.node_attributes import Mask
from policy.nodes.table import NodeTable
from policy.nodes.tolerations import tolerates
from policy.objects.constraints import Constraints, NodeTerm, Requirement, Taint, Toleration, holds, integer
from policy.objects.node import Node

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")

_NAME = "metadata.name"
_MOST_KEPT = 512  # masks, of a byte per node


def passes_filters(node: Node, constraints: Constraints) -> bool:
    """Whether a node passes NodeAffinity, TaintToleration and NodeUnschedulable for a pod."""
    return (
        matches_affinity(node, constraints)
        and tolerates(constraints.tolerations, node.taints)
        and (not node.unschedulable or tolerates(constraints.tolerations, (UNSCHEDULABLE_TAINT,)))
    )


def matches_affinity(node: Node, constraints: Constraints) -> bool:
    """Whether the pod's node selector and required node affinity ask for a node."""
    if any(node.labels.get(key) != value for key, value in constraints.node_selector):
        return False
    return constraints.node_terms is None or any(_meets(node, term) for term in constraints.node_terms)


def passing_filters(table: NodeTable, constraints: Constraints) -> Mask:
    """Returns every node of which ``passes_filters`` is true for the pod. The mask is shared: do not change it."""
    key = ("passing_filters", constraints.node_selector, constraints.node_terms, constraints.tolerations)
    known: Mask | None = table.attributes.memo.get(key)
    if known is None:
        mask = matching_affinity(table, constraints) & tolerated(table, constraints.tolerations)
        if not tolerates(constraints.tolerations, (UNSCHEDULABLE_TAINT,)):
            mask &= ~np.fromiter((node.unschedulable for node in table.nodes()), np.bool_, len(table.names))
        if len(table.attributes.memo) >= _MOST_KEPT:
            table.attributes.memo.clear()
        known = table.attributes.memo[key] = mask
    return known


def matching_affinity(table: NodeTable, constraints: Constraints) -> Mask:
    """Returns every node of which ``matches_affinity`` is true for the pod."""
    mask = np.ones(len(table.names), np.bool_)
    for key, value in constraints.node_selector:
        mask &= _meeting(table, Requirement(key, "In", (value,)))
    if constraints.node_terms is not None:
        either = np.zeros(len(table.names), np.bool_)
        for term in constraints.node_terms:
            either |= _meeting_term(table, term)
        mask &= either
    return mask


def tolerated(table: NodeTable, tolerations: tuple[Toleration, ...]) -> Mask:
    """Returns every node whose taints the pod tolerates."""
    taints = table.attributes.taints()
    return taints.where((tolerates(tolerations, each) for each in taints.index), absent=True)


def _meets(node: Node, term: NodeTerm) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(holds(requirement, node.labels) for requirement in term.labels) and all(
        holds(requirement, {_NAME: node.name}) for requirement in term.fields
    )


def _meeting_term(table: NodeTable, term: NodeTerm) -> Mask:
    mask = np.full(len(table.names), bool(term.labels or term.fields))
    for requirement in term.labels:
        mask &= _meeting(table, requirement)
    for requirement in term.fields:
        named = requirement.key == _NAME
        codes = np.arange(len(table.names)) if named else np.full(len(table.names), -1)
        mask &= meeting(codes, table.rows if named else {}, requirement)
    return mask


def _meeting(table: NodeTable, requirement: Requirement) -> Mask:
    if requirement.operator in ("Gt", "Lt"):
        return _beyond(table, requirement)
    values = table.attributes.labels(requirement.key)
    return meeting(values.codes, values.index, requirement)


def _beyond(table: NodeTable, requirement: Requirement) -> Mask:
    """Returns where a label is a number above (Gt) or below (Lt) the named one."""
    named = integer(*requirement.values[:1])
    values, (numbers, are_numbers) = table.attributes.labels(requirement.key), table.attributes.numbers(requirement.key)
    if named is None:
        return np.zeros(len(values.codes), np.bool_)
    beyond = numbers > named if requirement.operator == "Gt" else numbers < named
    return np.append(beyond & are_numbers, False)[values.codes]
