"""Decides which nodes a pod fits, as kube-scheduler 1.37 would.

There are three questions. ``fits_if_empty``: which nodes could take the pod once evictions have emptied them? ``fits``:
where would the pod be placed now? ``fits_on``: would it be placed on one node if some pods were gone? A search for
victims asks the last one over and over. So its data is worked out once per pod and kept until the table changes.

The scheduler counts pods that are expected on a node only if their priority is not lower than the pod's, and so does
this module. Volumes, resource claims and resources that no node lists are not judged here, as if the pod did not ask
for them. ``undecidable`` names them; ask it first.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.nodes.node_attributes import Mask
from policy.nodes.node_filters import matching_affinity, passes_filters, passing_filters, tolerated
from policy.nodes.table import NodeTable, Site
from policy.nodes.topology import Demands, demands_of, demands_of_steps
from policy.objects.constraints import TOO_MANY_OF_NAMESPACE, HostPort, excess
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.quantity import LARGEST
from policy.objects.resources import NOTHING, Resources
from policy.objects.verdict import names_in
from policy.stepwise import Steps

_EVERY_ADDRESS = ("", "0.0.0.0")  # noqa: S104 - compared with, not listened on
_MOST_KEPT = 256


def undecidable(table: NodeTable, pod: Pod) -> str:
    """Returns a sentence that names why it cannot be decided here where the pod fits; empty if it can."""
    named = pod.constraints.undecidable
    reasons = ", ".join(named if table.demanding.is_judged(pod) else (*named, TOO_MANY_OF_NAMESPACE))
    return f"Where the pod fits cannot be decided here: {reasons}" if reasons else unlisted(table, pod)


def unjudged(table: NodeTable, pod: Pod) -> str:
    """Returns what the pod, or its namespace's pods together, demand beyond what is judged; empty if nothing."""
    judged = table.demanding.is_judged(pod)
    return ", ".join(excess(pod.constraints) + (() if judged else (TOO_MANY_OF_NAMESPACE,)))


def unlisted(table: NodeTable, pod: Pod) -> str:
    """Returns a sentence that names the requested resources that no node lists; empty if there are none."""
    names = [resource for resource, amount in pod.request.items() if amount and not table.lists(resource)]
    return f"no node lists {names_in(names)}; who serves it cannot be judged from here" if names else ""


def fits_if_empty(table: NodeTable, pod: Pod) -> Mask:
    """Returns the nodes that could take the pod if they were empty and it were alone, by its constraints and size.

    It does not matter where the pod stands already.
    """
    return passing_filters(table, pod.constraints) & _at_least(table, table.allocatable, pod)


def fits_if_empty_on(table: NodeTable, pod: Pod, node_name: str) -> bool:
    """Whether this node is among those of ``fits_if_empty``."""
    node = table.node(node_name)
    return node is not None and node_fits_if_empty(table, node, pod)


def node_fits_if_empty(table: NodeTable, node: Node, pod: Pod) -> bool:
    """Whether a node, in the table or not, could take the pod if it were empty and the pod were alone."""
    if not passes_filters(node, pod.constraints):
        return False
    return all(min(node.allocatable.get(resource, 0), LARGEST) >= amount for resource, amount in need(table, pod))


def kept_off_by_taints(table: NodeTable, pod: Pod) -> Mask:
    """Returns the nodes with room for the pod that match its affinity, and have taints that it does not tolerate."""
    constraints = pod.constraints
    mask = matching_affinity(table, constraints) & ~tolerated(table, constraints.tolerations)
    return mask & _at_least(table, table.free, pod)


def fits(table: NodeTable, pod: Pod) -> Mask:
    """Returns the nodes where the pod would be placed now. If the pod is in the table, it is left out."""
    question = _question(table, pod)
    room = _at_least(table, table.free, pod)
    for uid in question.overlooked:
        placed = table.placed(uid)
        if placed and placed.site.row >= 0:
            room[placed.site.row] = _has_room(table, placed.site, question, question.overlooked)
    mask = open_to(table, pod, question.overlooked) & room
    if question.demands is not None:
        question.demands.restrict(mask)
    return mask


def how_often(table: NodeTable, free: NDArray[np.int64], pod: Pod) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Returns the rows of nodes that accept a pod and have room, and for how many pods like it each of them has.

    ``free`` is an array like ``table.free``. The numbers are a million at most. Demands on other pods are not judged.
    """
    rows = np.flatnonzero(open_to(table, pod, ()) & _at_least(table, free, pod))
    return rows, _times(table, free, pod, rows)


def how_often_if_empty(table: NodeTable, pod: Pod) -> int:
    """Returns for how many pods like this one there would be room at most if all nodes were empty.

    Host ports and demands on other pods are not judged, so there may be room for fewer.
    """
    rows = np.flatnonzero(fits_if_empty(table, pod))
    return int(_times(table, table.allocatable, pod, rows).sum())


def _times(table: NodeTable, free: NDArray[np.int64], pod: Pod, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Returns for how many pods like this one each of these nodes has room; a million at most."""
    times = np.full(len(rows), 10**6)
    for resource, amount in need(table, pod) if len(rows) else ():  # what is listed, and no node has, has no column
        times = np.minimum(times, free[rows, table.columns[resource]] // amount)
    return times


def open_to(table: NodeTable, pod: Pod, overlooked: Collection[str]) -> Mask:
    """Returns a new mask of the nodes that accept the pod and have its host ports free.

    Room and the demands of other pods are not judged. Pods that are overlooked take no ports.
    """
    mask = passing_filters(table, pod.constraints).copy()
    for port in pod.constraints.host_ports:
        for taker in table.takers_of(port.protocol, port.port):
            if taker.site.row >= 0 and taker.pod.uid not in overlooked and _takes(taker.pod, port):
                mask[taker.site.row] = False
    return mask


def share_a_port(pod: Pod, other: Pod) -> bool:
    """Whether two pods take the same port of a node, so that they cannot be on the same one."""
    return any(_takes(other, port) for port in pod.constraints.host_ports)


def fits_on(table: NodeTable, pod: Pod, node_name: str, without: Collection[str]) -> bool:
    """Whether the pod would be placed on this node if these pods were gone, whatever node they are on."""
    site = table.site(node_name)
    if site is None or site.node is None:
        return False
    question = _question(table, pod)
    gone = frozenset(without) | question.overlooked
    if not _has_room(table, site, question, gone) or not passes_filters(site.node, pod.constraints):
        return False
    if pod.constraints.host_ports and not _has_ports(site, pod, gone):
        return False
    return question.demands is None or question.demands.allow(site.row, gone)


def would_be_met_on(table: NodeTable, pod: Pod, node_name: str, staying: Collection[str] = ()) -> bool:
    """Whether a node meets the pod's demands on other pods, either now or once the pods on it have ended.

    ``staying`` are pods that will not end.
    """
    question = _question(table, pod)
    row = table.rows.get(node_name)
    if question.demands is None or row is None:
        return row is not None
    ended = table.pods_on(node_name).keys() - set(staying)
    return question.demands.allow(row, question.overlooked) or question.demands.allow(row, question.overlooked | ended)


def lacking_on(
    table: NodeTable, pod: Pod, node_name: str, without: Collection[str], taken: Resources = NOTHING
) -> dict[str, int]:
    """Returns a node's shortage for the pod by resource, if ``without`` were gone and ``taken`` were used as well."""
    site = table.site(node_name)
    if site is None or site.node is None:
        return dict(pod.request)
    question = _question(table, pod)
    lacking = {}
    for resource, left, amount in _room(table, site, question, frozenset(without) | question.overlooked):
        short = amount - left + taken.get(resource, 0)
        if short > 0:
            lacking[resource] = short
    return lacking


@dataclass(frozen=True, slots=True)
class _Question:
    """The data of a pod that answers need, valid while the table stays as it is."""

    pod: Pod
    need: tuple[tuple[str, int], ...]
    overlooked: frozenset[str]
    demands: Demands | None


def prepare_steps(table: NodeTable, pod: Pod) -> Steps[None]:
    """Works out in steps what answers about a pod need. Iterate to the end; the caller may pause in between.

    If the table changes meanwhile, it stops, and the next question works it out.
    """
    if _known(table, pod) is not None:
        return
    state = table.memo.setdefault("state", object())
    hidden = frozenset(overlooked(table, pod))
    work = demands_of_steps(table, pod, hidden)
    while table.memo.get("state") is state:
        try:
            next(work)
        except StopIteration as end:
            _keep(table, _Question(pod, need(table, pod), hidden, end.value))
            return
        yield


def _question(table: NodeTable, pod: Pod) -> _Question:
    known = _known(table, pod)
    if known is None:
        hidden = frozenset(overlooked(table, pod))
        known = _keep(table, _Question(pod, need(table, pod), hidden, demands_of(table, pod, hidden)))
    return known


def _known(table: NodeTable, pod: Pod) -> _Question | None:
    known: _Question | None = table.memo.get(("question", pod.uid))
    return known if known is not None and known.pod is pod else None


def _keep(table: NodeTable, question: _Question) -> _Question:
    if len(table.memo) >= _MOST_KEPT:
        table.memo.clear()
    table.memo["question", question.pod.uid] = question
    return question


def overlooked(table: NodeTable, pod: Pod) -> Iterable[str]:
    """Yields the pods that do not count for this one: itself, and expected ones of lower priority."""
    if table.placed(pod.uid):
        yield pod.uid
    yield from (uid for uid, each in table.expected.items() if each.pod.priority < pod.priority)


def need(table: NodeTable, pod: Pod) -> tuple[tuple[str, int], ...]:
    """Returns the part of the request that can be judged. A resource of which nothing is requested is never short."""
    return tuple((resource, amount) for resource, amount in pod.request.items() if amount > 0 and table.lists(resource))


def _at_least(table: NodeTable, there: NDArray[np.int64], pod: Pod) -> Mask:
    """Returns a mask of the rows that have what the pod requests."""
    mask = np.ones(len(table.names), np.bool_)
    for resource, amount in need(table, pod):
        column = table.columns.get(resource)
        mask &= there[:, column] >= amount if column is not None else False
    return mask


def _has_room(table: NodeTable, site: Site, question: _Question, gone: Collection[str]) -> bool:
    """Whether one node has what the pod requests, without the pods that are gone."""
    for _, left, amount in _room(table, site, question, gone):  # noqa: SIM110 - a generator in a generator is slower
        if left < amount:
            return False
    return True


def _room(table: NodeTable, site: Site, question: _Question, gone: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """Yields each resource that the pod requests, its amount left without the pods that are gone, and the request.

    Devices that one of these shares with a pod that stays are not free.
    """
    leaving: Collection[str] = site.pods.keys() & gone if gone else ()
    freed = [site.pods[uid].request for uid in leaving]
    kept = _still_shared(table, leaving, gone) if table.sharing else ()
    allocatable = site.node.allocatable if site.node else NOTHING
    for resource, amount in question.need:
        left = min(allocatable.get(resource, 0), LARGEST) - site.used.get(resource, 0)
        for request in freed:
            left += request.get(resource, 0)
        for held in kept:
            left -= held.get(resource, 0)
        yield resource, left, amount


def _still_shared(table: NodeTable, leaving: Collection[str], gone: Collection[str]) -> list[Resources]:
    """Returns what those who leave a node share with pods that stay."""
    return [held for uid in leaving for others, held in table.sharing.get(uid, ()) if not others.issubset(gone)]


def _has_ports(site: Site, pod: Pod, gone: Collection[str]) -> bool:
    others = [other for uid, other in site.pods.items() if other.constraints.host_ports and uid not in gone]
    return not any(_takes(other, port) for port in pod.constraints.host_ports for other in others)


def _takes(pod: Pod, port: HostPort) -> bool:
    """Whether a pod takes a port of its node: at the same address, or if one of the two takes it at every address."""
    return any(
        (taken.protocol, taken.port) == (port.protocol, port.port)
        and (taken.address == port.address or not {taken.address, port.address}.isdisjoint(_EVERY_ADDRESS))
        for taken in pod.constraints.host_ports
    )
