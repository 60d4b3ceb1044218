"""kube-scheduler's filters for one pod and one node, written down as plainly as possible: slow, and nothing is kept.

What policy.nodes.fit decides over all nodes at once is compared with this. It shares none of its code.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from policy.objects.constraints import HostPort, PodTerm, Requirement, Selector, Spread, Taint, Toleration
from policy.objects.node import Node
from policy.objects.pod import Pod


@dataclass(frozen=True)
class Cluster:
    """Nodes by name; pods that stand, each with its node; pods that are nominated to a node."""

    nodes: dict[str, Node]
    standing: list[tuple[Pod, str]]
    nominated: list[tuple[Pod, str]]

    def without(self, uids: set[str]) -> "Cluster":
        standing = [(pod, name) for pod, name in self.standing if pod.uid not in uids]
        return Cluster(self.nodes, standing, [(pod, name) for pod, name in self.nominated if pod.uid not in uids])


def places(cluster: Cluster, pod: Pod, name: str) -> bool:
    """Whether the scheduler would place the pod there.

    It asks twice where other pods are nominated to the node that are not less important: with them and without.
    """
    cluster = cluster.without({pod.uid})
    rivals = [(other, at) for other, at in cluster.nominated if at == name and other.priority >= pod.priority]
    return passes(cluster, cluster.standing, pod, name) and passes(cluster, cluster.standing + rivals, pod, name)


def passes(cluster: Cluster, pods: list[tuple[Pod, str]], pod: Pod, name: str) -> bool:
    node = cluster.nodes[name]
    there = [(other, cluster.nodes[at]) for other, at in pods if at in cluster.nodes]
    here = [other for other, at in pods if at == name]
    return (
        is_wanted(node, pod)
        and has_room(node, here, pod)
        and all(is_free(port, here) for port in pod.constraints.host_ports)
        and satisfies_affinity(there, node, pod)
        and not any(is_avoided(there, node, term) for term in pod.constraints.anti_affinity)
        and not any(is_kept_out(other, at, node, pod) for other, at in there)
        and all(is_level(cluster, there, node, pod, rule) for rule in pod.constraints.spread)
    )


def is_wanted(node: Node, pod: Pod) -> bool:
    """NodeAffinity, TaintToleration, NodeUnschedulable."""
    unschedulable = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    return (
        has_affinity(node, pod)
        and not untolerated(node.taints, pod.constraints.tolerations)
        and not (node.unschedulable and untolerated((unschedulable,), pod.constraints.tolerations))
    )


def has_affinity(node: Node, pod: Pod) -> bool:
    if not all(node.labels.get(key) == value for key, value in pod.constraints.node_selector):
        return False
    terms = pod.constraints.node_terms
    name = {"metadata.name": node.name}
    return terms is None or any(
        (term.labels or term.fields)
        and all(is_met(each, node.labels) for each in term.labels)
        and all(is_met(each, name) for each in term.fields)
        for term in terms
    )


def untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> list[Taint]:
    return [
        taint
        for taint in taints
        if taint.effect in ("NoSchedule", "NoExecute")
        and not any(
            each.effect in ("", taint.effect)
            and each.key in ("", taint.key)
            and (each.operator == "Exists" or each.value == taint.value)
            for each in tolerations
        )
    ]


def has_room(node: Node, here: list[Pod], pod: Pod) -> bool:
    return all(
        amount == 0 or sum(other.request.get(name, 0) for other in here) + amount <= node.allocatable.get(name, 0)
        for name, amount in pod.request.items()
    )


def is_free(port: HostPort, here: list[Pod]) -> bool:
    taken = [each for other in here for each in other.constraints.host_ports]
    return not any(
        each.port == port.port
        and each.protocol == port.protocol
        and (each.address == port.address or "0.0.0.0" in (each.address, port.address))
        for each in taken
    )


def satisfies_affinity(there: list[tuple[Pod, Node]], node: Node, pod: Pod) -> bool:
    terms = pod.constraints.affinity
    mates = Counter(
        (term.topology_key, at.labels[term.topology_key])
        for other, at in there
        if all(selects(each, other) for each in terms)
        for term in terms
        if term.topology_key in at.labels
    )
    if not all(term.topology_key in node.labels for term in terms):
        return False
    if all(mates[term.topology_key, node.labels[term.topology_key]] for term in terms):
        return True
    return not mates and all(selects(term, pod) for term in terms)


def is_avoided(there: list[tuple[Pod, Node]], node: Node, term: PodTerm) -> bool:
    return any(selects(term, other) and share_domain(at, node, term.topology_key) for other, at in there)


def is_kept_out(other: Pod, at: Node, node: Node, pod: Pod) -> bool:
    terms = other.constraints.anti_affinity
    return any(selects(term, pod) and share_domain(at, node, term.topology_key) for term in terms)


def is_level(cluster: Cluster, there: list[tuple[Pod, Node]], node: Node, pod: Pod, rule: Spread) -> bool:
    if rule.topology_key not in node.labels:
        return False
    domains = {at.labels[rule.topology_key]: 0 for at in cluster.nodes.values() if counts_for(at, pod, rule)}
    for other, at in there:
        eligible = counts_for(at, pod, rule) and other.namespace == pod.namespace and not other.terminating
        if eligible and rule.selector and rule.selector.requirements and is_selected(rule.selector, other):
            domains[at.labels[rule.topology_key]] += 1
    level = min(domains.values()) if len(domains) >= rule.min_domains else 0
    own = is_selected(rule.selector, pod)
    return domains.get(node.labels[rule.topology_key], 0) + own - level <= rule.max_skew


def counts_for(node: Node, pod: Pod, rule: Spread) -> bool:
    return (
        all(other.topology_key in node.labels for other in pod.constraints.spread)
        and (not rule.honor_node_affinity or has_affinity(node, pod))
        and not (rule.honor_taints and untolerated(node.taints, pod.constraints.tolerations))
    )


def share_domain(one: Node, other: Node, key: str) -> bool:
    return key in one.labels and one.labels.get(key) == other.labels.get(key)


def selects(term: PodTerm, pod: Pod) -> bool:
    return (term.namespaces is None or pod.namespace in term.namespaces) and is_selected(term.selector, pod)


def is_selected(selector: Selector | None, pod: Pod) -> bool:
    return selector is not None and all(is_met(each, pod.labels) for each in selector.requirements)


def is_met(requirement: Requirement, labels: dict[str, str]) -> bool:
    has, value = requirement.key in labels, labels.get(requirement.key)
    verdicts: Iterator[bool] = {
        "In": lambda: has and value in requirement.values,
        "NotIn": lambda: not has or value not in requirement.values,
        "Exists": lambda: has,
        "DoesNotExist": lambda: not has,
        "Gt": lambda: has and value.isdecimal() and int(value) > int(requirement.values[0]),
        "Lt": lambda: has and value.isdecimal() and int(value) < int(requirement.values[0]),
    }
    return verdicts[requirement.operator]()
