"""Explains why a pod group cannot start: how many members it lacks, and what would let them in."""

from collections.abc import Hashable

from policy.cluster.cluster import Cluster
from policy.nodes import fit
from policy.objects import signature
from policy.objects.pod import Pod
from policy.objects.verdict import Hint, Refusal
from policy.quota import admission


def numbers(cluster: Cluster, pod: Pod) -> dict[str, dict[str, int]]:
    """Returns how many members the pod's group needs, has ready, and has waiting; empty without such a group."""
    group = cluster.gangs.gated(pod)
    if group is None:
        return {}
    figures = {
        "minimum": group.minimum,
        "ready": len(cluster.gangs.ready(group)),
        "pending": len(cluster.gangs.pending(group)),
    }
    return {"members": figures}


def hints(cluster: Cluster, pod: Pod) -> tuple[Hint, ...]:
    """Returns what would let in a member whose group cannot start."""
    group = cluster.gangs.gated(pod)
    if group is None:
        return ()
    target = f"PodGroup {group.namespace}/{group.name.rpartition('/')[2]}"
    ready, others = cluster.gangs.ready(group), cluster.gangs.others(pod, group)
    missing = group.minimum - len(ready - {pod.uid})
    lacking = missing - 1 - len(others)
    if lacking > 0:
        text = f"create {lacking} more members of {target}, or lower its minMember"
        return (Hint(text, target, "spec.minMember", str(group.minimum - lacking)),)
    if cluster.gangs.backs_off_until(group.key):
        return (Hint("wait: it was not complete in time, and others go first for a while", target),)
    if cluster.gangs.search.admissible(pod, others, missing) is None:
        text = f"its quota or queue has not enough left for {missing} members together: raise it, or wait"
        return (Hint(text, target),)
    text = f"wait until nodes have room for {missing} members together, or add nodes"
    if most_if_empty(cluster, pod) < missing:
        text = f"add nodes: those that are there have room for fewer than {missing} members even if they were empty"
    return (Hint(text, "Node"),)


def most_if_empty(cluster: Cluster, pod: Pod) -> int:
    """Returns for how many waiting members of the pod's group there is room at most if all nodes are empty."""
    group = cluster.gangs.gated(pod)
    waiting = [] if group is None else [pod, *cluster.gangs.others(pod, group)]
    alike: dict[Hashable, list[Pod]] = {}
    for each in waiting:
        alike.setdefault(signature.by_empty_nodes(each), []).append(each)
    return sum(min(len(pods), fit.how_often_if_empty(cluster.table, pods[0])) for pods in alike.values())


def refused_together(cluster: Cluster, pod: Pod) -> Refusal | None:
    """Returns why the rules refuse as many members as the pod's group takes to start, the pod among them."""
    gangs = cluster.gangs
    group, missing, members = gangs.gated(pod), gangs.missing(pod), [pod, *gangs.mates(pod)]
    if group is None or missing <= 1 or len(members) < missing:
        return None
    if gangs.search.admissible(pod, gangs.others(pod, group), missing) is not None:
        return None
    return admission.refusal_of_all(cluster.ledger, members, cluster.rules, with_in_flight=cluster.unsettled)
