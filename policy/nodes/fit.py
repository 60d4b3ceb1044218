"""Which nodes a pod fits, as kube-scheduler 1.37 would decide it.

Three questions: ``suitable``, what no eviction can change; ``fits``, where the pod would be placed now; ``fits_on``,
whether it would be placed on one node if some pods were gone. The last is asked over and over by a search for
victims, so what it needs is worked out once per pod and kept until the table changes.

The scheduler heeds pods that are expected on a node only if they are not less important than the pod, and so does this.
Volumes, resource claims and resources that no node lists are not judged here, as if the pod did not ask for them:
``undecidable`` names them, and what it names must be asked first.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.nodes.node_filters import accepting, accepts
from policy.nodes.table import Mask, NodeTable, Site
from policy.nodes.topology import Demands, demands_of, demands_of_steps
from policy.objects.constraints import TOO_MANY_OF_NAMESPACE, HostPort, excess
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.quantity import LARGEST
from policy.objects.resources import NOTHING, Resources
from policy.objects.verdict import names_in

_EVERY_ADDRESS = ("", "0.0.0.0")  # noqa: S104 - compared with, not listened on
_MOST_KEPT = 256


def undecidable(table: NodeTable, pod: Pod) -> str:
    """A sentence that names what keeps us from deciding where the pod fits; empty if nothing does."""
    named = pod.constraints.undecidable
    reasons = ", ".join(named if table.demanding.is_judged(pod) else (*named, TOO_MANY_OF_NAMESPACE))
    return f"Where the pod fits cannot be decided here: {reasons}" if reasons else unlisted(table, pod)


def unjudged(table: NodeTable, pod: Pod) -> str:
    """What the pod has, or the pods of its namespace demand, more of than is judged; empty if nothing."""
    judged = table.demanding.is_judged(pod)
    return ", ".join(excess(pod.constraints) + (() if judged else (TOO_MANY_OF_NAMESPACE,)))


def unlisted(table: NodeTable, pod: Pod) -> str:
    """A sentence that names what the pod requests and no node lists; empty if there is nothing of that kind."""
    names = [resource for resource, amount in pod.request.items() if amount and not table.lists(resource)]
    return f"no node lists {names_in(names)}; who serves it cannot be judged from here" if names else ""


def suitable(table: NodeTable, pod: Pod) -> Mask:
    """Nodes that could take the pod if they were empty and it were alone: its constraints on nodes, and their size.

    Where the pod stands already does not matter.
    """
    return accepting(table, pod.constraints) & _at_least(table, table.allocatable, pod)


def suitable_on(table: NodeTable, pod: Pod, node_name: str) -> bool:
    """Whether this node is ``suitable``."""
    node = table.node(node_name)
    return node is not None and suits(table, node, pod)


def suits(table: NodeTable, node: Node, pod: Pod) -> bool:
    """Whether a node, be it in the table or not, could take the pod if it were empty and the pod were alone."""
    if not accepts(node, pod.constraints):
        return False
    return all(min(node.allocatable.get(resource, 0), LARGEST) >= amount for resource, amount in _need(table, pod))


def fits(table: NodeTable, pod: Pod) -> Mask:
    """Nodes where the pod would be placed now. If it is in the table itself, as if it were not."""
    question = _question(table, pod)
    room = _at_least(table, table.free, pod)
    for uid in question.overlooked:
        placed = table.placed(uid)
        if placed and placed.site.row >= 0:
            room[placed.site.row] = _has_room(placed.site, question, question.overlooked)
    mask = open_to(table, pod, question.overlooked) & room
    if question.demands is not None:
        question.demands.restrict(mask)
    return mask


def open_to(table: NodeTable, pod: Pod, overlooked: Collection[str]) -> Mask:
    """Nodes that accept the pod, and whose host ports that it takes are free: of all but room, and other pods' wishes.

    Pods that are overlooked take no ports. A new mask.
    """
    mask = accepting(table, pod.constraints).copy()
    for port in pod.constraints.host_ports:
        for taker in table.takers_of(port.protocol, port.port):
            if taker.site.row >= 0 and taker.pod.uid not in overlooked and _takes(taker.pod, port):
                mask[taker.site.row] = False
    return mask


def share_a_port(pod: Pod, other: Pod) -> bool:
    """Whether two pods take the same port of a node, so that they cannot be on the same one."""
    return any(_takes(other, port) for port in pod.constraints.host_ports)


def fits_on(table: NodeTable, pod: Pod, node_name: str, without: Collection[str]) -> bool:
    """Whether the pod would be placed on this node if these pods, on whatever nodes, were gone."""
    site = table.site(node_name)
    if site is None or site.node is None:
        return False
    question = _question(table, pod)
    gone = frozenset(without) | question.overlooked
    if not _has_room(site, question, gone) or not accepts(site.node, pod.constraints):
        return False
    if pod.constraints.host_ports and not _has_ports(site, pod, gone):
        return False
    return question.demands is None or question.demands.allow(site.row, gone)


def would_be_met_on(table: NodeTable, pod: Pod, node_name: str, staying: Collection[str] = ()) -> bool:
    """Whether a node meets what the pod demands of other pods: as they are, or once those on the node have ended.

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
    """What a node would be short of for the pod, and by how much, if these pods were gone, and so much more taken."""
    site = table.site(node_name)
    if site is None or site.node is None:
        return dict(pod.request)
    question = _question(table, pod)
    lacking = {}
    for resource, left, amount in _room(site, question, frozenset(without) | question.overlooked):
        short = amount - left + taken.get(resource, 0)
        if short > 0:
            lacking[resource] = short
    return lacking


@dataclass(frozen=True, slots=True)
class _Question:
    """What is known about a pod once it was asked about, while the table stays as it is."""

    pod: Pod
    need: tuple[tuple[str, int], ...]
    overlooked: frozenset[str]
    demands: Demands | None


def prepare(table: NodeTable, pod: Pod) -> Iterator[None]:
    """Works out what is to be known of a pod before it is asked about. To be used up; in between it may pause.

    Where the table changes meanwhile, it is left to whoever asks.
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
            _keep(table, _Question(pod, _need(table, pod), hidden, end.value))
            return
        yield


def _question(table: NodeTable, pod: Pod) -> _Question:
    known = _known(table, pod)
    if known is None:
        hidden = frozenset(overlooked(table, pod))
        known = _keep(table, _Question(pod, _need(table, pod), hidden, demands_of(table, pod, hidden)))
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
    """The pods in the table that do not count for this one: itself, and less important ones that only are expected."""
    if table.placed(pod.uid):
        yield pod.uid
    yield from (uid for uid, each in table.expected.items() if each.pod.priority < pod.priority)


def _need(table: NodeTable, pod: Pod) -> tuple[tuple[str, int], ...]:
    """What of the request can be judged: what a pod requests nothing of is not looked at, however short it is."""
    return tuple((resource, amount) for resource, amount in pod.request.items() if amount > 0 and table.lists(resource))


def _at_least(table: NodeTable, there: NDArray[np.int64], pod: Pod) -> Mask:
    """The rows that have what the pod requests."""
    mask = np.ones(len(table.names), np.bool_)
    for resource, amount in _need(table, pod):
        column = table.columns.get(resource)
        mask &= there[:, column] >= amount if column is not None else False
    return mask


def _has_room(site: Site, question: _Question, gone: Collection[str]) -> bool:
    """The same for one node, without the pods that are gone."""
    return all(left >= amount for _, left, amount in _room(site, question, gone))


def _room(site: Site, question: _Question, gone: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """Each resource that the pod requests: what is left of it without the pods that are gone, and the request."""
    freed = [site.pods[uid].request for uid in site.pods.keys() & gone] if gone else ()
    allocatable = site.node.allocatable if site.node else NOTHING
    for resource, amount in question.need:
        left = min(allocatable.get(resource, 0), LARGEST) - site.used.get(resource, 0)
        for request in freed:
            left += request.get(resource, 0)
        yield resource, left, amount


def _has_ports(site: Site, pod: Pod, gone: Collection[str]) -> bool:
    others = [other for uid, other in site.pods.items() if other.constraints.host_ports and uid not in gone]
    return not any(_takes(other, port) for port in pod.constraints.host_ports for other in others)


def _takes(pod: Pod, port: HostPort) -> bool:
    """Whether a pod takes a port of its node: at the same address, or one of both at every address."""
    return any(
        (taken.protocol, taken.port) == (port.protocol, port.port)
        and (taken.address == port.address or not {taken.address, port.address}.isdisjoint(_EVERY_ADDRESS))
        for taken in pod.constraints.host_ports
    )
