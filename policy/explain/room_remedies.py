"""Remedies for a pod that no rule refuses: give it room on a node, or free a node that is kept from it."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from policy.cluster.cluster import Cluster
from policy.explain.node_taints import without_taints
from policy.explain.remedy import MOST_ADDED, Need, ObjectChange, Remedies, Remedy, listed, may_end, names_of, removed
from policy.nodes import fit, scores
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.quantity import render
from policy.objects.resources import total
from policy.objects.verdict import MOST_TOLD
from policy.preemption import reclaim
from policy.preemption.foreseen import time_text
from policy.preemption.ranking import importance
from policy.stepwise import Steps

ADDED = "additional"
"""The prefix of the names of added nodes."""
HOSTNAME = "kubernetes.io/hostname"
ROUNDED = 60
"""Deadlines are rounded down to this many seconds, as it takes a while until one is set."""
MOST_NODES = 200
"""The most nodes that are searched for pods to end: those with the smallest shortage."""


def for_room(need: Need) -> Remedies:
    """Suggests a deadline, budgets that allow an eviction, fewer taints, more nodes, the end of pods or of other jobs.

    The end of a job that nodes are reserved for comes last: it waits for a reason.
    """
    cluster, pod = need.cluster, need.pod
    table = cluster.table
    fitting = {table.names[row] for row in np.flatnonzero(fit.fits(table, pod))}
    reserved = cluster.reservations.nodes_reserved_from(pod)
    kept = fitting & reserved if fitting <= reserved | cluster.reservations.nodes_held_from(pod) else set[str]()
    yield from _be_short(need, kept)
    yield from _let_go(cluster, pod)
    if len(need.members) == 1:
        yield from without_taints(cluster, pod)
    yield from add_nodes(need)
    if len(need.members) == 1:
        yield from _end_on_a_node(cluster, pod, reserved)
    yield from _unreserve(cluster, kept)


def add_nodes(need: Need) -> Remedies:
    """Suggests as many nodes as these pods need, like the largest suitable one, or larger if that is too small.

    Suggests none if it takes too many, or a resource that no node lists.
    """
    pod, table = need.pod, need.cluster.table
    if any(fit.unlisted(table, member) for member in need.members):
        return  # nobody knows which nodes would serve it
    rows = fit.fits_if_empty(table, replace(pod, request={}))
    nodes = (table.node(table.names[row]) for row in np.flatnonzero(rows))
    models = [node for node in nodes if node is not None and node.usable and not node.taints]
    model = max(models, key=_size, default=Node("", {"pods": 110}, dict(pod.constraints.node_selector)))
    size = dict(model.allocatable)
    for resource, amount in pod.request.items():
        size[resource] = max(size.get(resource, 0), amount)
    have_room = yield from _have_room_steps(need)
    asked = total(each.request for each in (*need.members[have_room:], *need.others))
    number = max(-(-amount // size[resource]) for resource, amount in asked.items() if size.get(resource))
    if number > MOST_ADDED:
        return
    taken = sum(name.startswith(ADDED) for name in table.names)
    names = [f"{ADDED}-{taken + count + 1}" for count in range(number)]
    of = ", ".join(f"{render(resource, amount)} {resource}" for resource, amount in sorted(size.items())[:MOST_TOLD])
    yield Remedy(
        "node",
        f"add {'a node' if number == 1 else f'{number} nodes'} of {of}",
        tuple(ObjectChange("Node", "", name, like=_named(name, model, size)) for name in names),
    )


def _have_room_steps(need: Need) -> Steps[int]:
    """Returns how many of the first members of a gang could run together now, but never all of them.

    They are asked for by number alone: whoever tries the remedy finds out if others of them lack room.
    """
    pod, *others = need.members
    if not others or need.have_room is not None:
        return need.have_room or 0
    return (yield from need.cluster.gangs.search.most_steps(pod, others, len(need.members)))


def _be_short(need: Need, nodes: set[str]) -> Iterator[Remedy]:
    """Suggests a deadline with which the pods are surely gone before the latest promised start of these nodes."""
    cluster, now = need.cluster, need.cluster.protection.now
    promised = [(on.promised, node) for node in nodes if (on := cluster.reservations.nodes.on(node)) and on.promised]
    if not promised or not now:
        return
    at, node = max(promised)
    left = at - now - max(each.grace for each in need.members) - cluster.rules.backfill_margin
    most = int(left // ROUNDED) * ROUNDED
    if most > 0:
        text = f"a pod that surely ends by {time_text(at, now)} may start on node {node}: set activeDeadlineSeconds"
        fields = ((("spec", "activeDeadlineSeconds"), most),)
        changes = tuple(ObjectChange("Pod", each.namespace, each.name, fields) for each in need.members)
        yield Remedy("backfill", f"{text} of {names_of(need.members)} to at most {most}", changes)


def _unreserve(cluster: Cluster, nodes: set[str]) -> Iterator[Remedy]:
    """Suggests the end of a job that nodes are reserved for."""
    there = (each for each in cluster.reservations.reserved if each.node in nodes)
    for namespace, name in sorted({(each.pod.namespace, each.job) for each in there}):
        job = cluster.job_members.find(namespace, name)
        if job is not None and (pods := cluster.job_members.asking(job.waiting + job.granted)):
            text = f"wait until {job.title} has started, which has reserved nodes, or delete {names_of(pods)}"
            yield Remedy("unreserve", text, tuple(removed(each) for each in pods))
            return


def _let_go(cluster: Cluster, pod: Pod) -> Iterator[Remedy]:
    """Suggests how to get past disruption budgets that block evictions for the pod."""
    for reservation in cluster.reservations.plans.values():
        protected = reclaim.protected_victims(cluster, reservation) if reservation.pod.uid == pod.uid else []
        if not protected:
            continue
        allowed: dict[tuple[str, str], int] = {}
        for victim in protected:
            for budget in cluster.budgets.protecting(victim):
                key = budget.namespace, budget.name
                allowed[key] = allowed.get(key, budget.allowed) + 1
        said = [f"PodDisruptionBudget {namespace}/{name}" for namespace, name in allowed]
        path = "status", "disruptionsAllowed"
        yield Remedy(
            "budget",
            f"let {listed(said)} allow the disruption of {names_of(protected)}, which is to be evicted for it",
            tuple(ObjectChange("PodDisruptionBudget", *key, ((path, most),)) for key, most in allowed.items()),
        )
        text = f"delete {names_of(protected)} by hand, which a disruption budget keeps from being evicted for it"
        yield Remedy("end", text, tuple(removed(victim) for victim in protected))


def _end_on_a_node(cluster: Cluster, pod: Pod, reserved: AbstractSet[str]) -> Remedies:
    """Suggests the end of pods of one node so that the pod fits there: of the node where the fewest have to end."""
    table, best = cluster.table, list[Pod]()
    rows = np.flatnonzero(fit.fits_if_empty(table, pod) & ~table.mask_of(reserved))
    least_short = np.argsort(scores.shortage(table, pod)[rows], kind="stable")
    for row in rows[least_short][:MOST_NODES]:
        yield None
        gone = _enough_of(cluster, pod, table.names[row])
        if gone and (not best or len(gone) < len(best)):
            best = gone
    if best:
        text = f"wait until {names_of(best)} on node {best[0].node} has ended, or delete it"
        if len(best) > 1:
            text = f"wait until {names_of(best)} on node {best[0].node} have ended, or delete them"
        yield Remedy("end", text, tuple(removed(each) for each in best))


def _enough_of(cluster: Cluster, pod: Pod, node: str) -> list[Pod]:
    """Returns pods of a node that would all have to go; none if that is not enough."""
    table = cluster.table
    there = [each for each in table.pods_on(node).values() if each.assigned and may_end(cluster, each)]
    gone = {each.uid: each for each in there}
    if not fit.fits_on(table, pod, node, gone.keys()):
        return []
    for each in sorted(there, key=importance):
        if fit.fits_on(table, pod, node, gone.keys() - {each.uid}):
            del gone[each.uid]
    return list(gone.values())


def _named(name: str, model: Node, size: dict[str, int]) -> Node:
    labels = dict(model.labels)
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    return Node(name, size, labels)


def _size(node: Node) -> tuple[int, int, str]:
    return node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0), node.name
