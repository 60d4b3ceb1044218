"""The Proportion Policy: how much of the cluster each queue deserves.

Seeds: Queue API (Proportion Policy), queue guarantee. Resources that a queue does not ask for go to the others by
weight, by water filling. A guarantee is kept free for its queue whether it asks for it or not.

Queues stand in a tree. Each family, a parent with its children, is divided like that: the root divides the cluster, a
queue what it deserves of it. Queues without parents are a tree of one family. The numbers come in this order:
guarantees from the leaves up, bounds from the root down, requests from the leaves up, parts from the root down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policy.objects.queue import Queue
from policy.objects.resources import NOTHING, Resources
from policy.quota.queue_tree import QueueTree, Shape
from policy.quota.water_filling import Bid, divide
from policy.stepwise import Steps

AT_ONCE = 100
"""Queues whose parts are written between two pauses."""
UNLIMITED = 2**80
"""More than there is of anything."""


@dataclass(frozen=True, slots=True)
class Division:
    """A queue's part of the cluster, with all queues below it.

    ``real_capability`` bounds what it may use, as others' guarantees are kept free. A resource that no node has is
    absent and bounded by zero, except for extended ones that no node lists (QueueLedger.lists). ``guarantee`` is the
    part of the spec's, or of those of its children, that can be kept. ``known``: it was worked out.
    """

    guarantee: Resources = field(default_factory=dict)
    real_capability: Resources = field(default_factory=dict)
    deserved: Resources = field(default_factory=dict)
    known: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One resource, divided: how much there is, and by queue the pods' requests, the guarantee kept, and the part.

    Queues stand in the order of their names. ``kept`` is the part of its guarantee that can be kept, ``most`` its
    bound, ``wanted`` what it requests with all queues below it, as far as their bounds let them have it.
    """

    there: int
    asked: list[int]
    kept: list[int]
    most: list[int]
    wanted: list[int]
    part: list[int]


Columns = dict[str, Column]
"""All resources by name, for the same queues."""


def divisions_steps(
    available: Resources,
    queues: Mapping[str, Queue],
    tree: QueueTree,
    requests: Mapping[str, Resources],
    known: Columns,
) -> Steps[dict[str, Division]]:
    """Divides what is available among queues by weighted max-min fairness, each resource on its own.

    ``requests`` has the sum of the requests of each queue's pods, running and waiting; only those of leaves count. The
    parts of a family sum to no more than its parent's. The caller may pause in between. ``known`` is the result of last
    time, for the same queues, and is set to the result of now. Only what has changed is computed. Returns only the
    parts that have changed.
    """
    shape = tree.shape
    names = shape.names
    in_order, requested = [queues[name] for name in names], [requests.get(name, NOTHING) for name in names]
    guaranteed: set[str] = {resource for queue in in_order for resource in queue.guarantee}
    resources = sorted({*available, *guaranteed})  # there is nothing of other names
    columns: Columns = {}
    for resource in resources:
        there, asked = available.get(resource, 0), [request.get(resource, 0) for request in requested]
        before = known.get(resource)
        if before is not None and (before.there, before.asked) == (there, asked):
            columns[resource] = before
        else:
            columns[resource] = _divide(there, resource, in_order, asked, shape, before)
        yield
    changed = sorted(_changed(known, columns)) if known else range(len(names))
    found = {}
    for number, at in enumerate(changed):
        found[names[at]] = Division(
            guarantee={r: kept for r, column in columns.items() if (kept := column.kept[at])},
            real_capability={r: column.most[at] for r, column in columns.items()},
            deserved={r: part for r, column in columns.items() if (part := column.part[at])},
            known=True,
        )
        if number % AT_ONCE == AT_ONCE - 1:
            yield
    known.clear()
    known.update(columns)
    return found


def _changed(before: Columns, after: Columns) -> set[int]:
    """Returns the places of queues for which something is different."""
    if before.keys() != after.keys():
        return set(range(len(next(iter((before | after).values())).asked)))
    found = set[int]()
    for resource, column in after.items():
        old = before[resource]
        if old is not column:
            for one, other in ((old.kept, column.kept), (old.most, column.most), (old.part, column.part)):
                if one != other:
                    found.update(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
    return found


def _divide(
    there: int, resource: str, queues: Sequence[Queue], asked: list[int], shape: Shape, before: Column | None
) -> Column:
    """Divides one resource anew, in those families of which something has changed since ``before``."""
    if before is None or before.there != there:
        before, stale = _unasked(there, resource, queues, shape), {parent for parent, _ in shape.families}
    else:
        stale = set[int]()
    kept, most, wanted, part = before.kept, before.most, list(before.wanted), list(before.part)
    stale |= _ask(before, asked, wanted, shape)
    for parent, children in shape.families:
        amount = there if parent < 0 else part[parent]
        if parent in stale or (parent >= 0 and amount != before.part[parent]):
            bids = [Bid(queues[at].weight, kept[at], max(kept[at], min(wanted[at], most[at]))) for at in children]
            for at, own in zip(children, divide(amount, bids), strict=True):
                part[at] = own
    return Column(there, asked, kept, most, wanted, part)


def _unasked(there: int, resource: str, queues: Sequence[Queue], shape: Shape) -> Column:
    """Returns the guarantees that can be kept and the bounds that follow, as if nobody requested anything."""
    sure = [min(queue.guarantee.get(resource, 0), queue.capability.get(resource, UNLIMITED)) for queue in queues]
    for parent, children in reversed(shape.families):
        if parent >= 0:
            most = queues[parent].capability.get(resource, UNLIMITED)
            sure[parent] = min(most, max(sure[parent], sum(sure[at] for at in children)))
    kept, bounds, nothing = [0] * len(queues), [0] * len(queues), [0] * len(queues)
    for parent, children in shape.families:
        room = there if parent < 0 else bounds[parent]
        lows = _fitting(room, [sure[at] for at in children])
        left = room - sum(lows)
        for at, low in zip(children, lows, strict=True):
            kept[at], bounds[at] = low, min(queues[at].capability.get(resource, room), left + low)
    return Column(there, nothing, kept, bounds, nothing, nothing)


def _fitting(room: int, guarantees: list[int]) -> list[int]:
    """Returns the part of each guarantee that can be kept: in sum what their parent may use, divided in proportion."""
    if sum(guarantees) <= room:
        return guarantees
    return divide(room, [Bid(max(1, amount), 0, amount) for amount in guarantees])


def _ask(before: Column, asked: list[int], wanted: list[int], shape: Shape) -> set[int]:
    """Sets ``wanted`` to what is asked for now, up to the root; returns parents whose children want more or less."""
    stale, inner, most = set[int](), {parent for parent, _ in shape.families}, before.most
    for leaf, (now, then) in enumerate(zip(asked, before.asked, strict=True)):
        if now == then or leaf in inner:
            continue
        at = leaf
        more = now - wanted[at]
        while at >= 0 and more:
            bound, before_it = most[at], wanted[at]
            wanted[at] += more
            more, at = min(wanted[at], bound) - min(before_it, bound), shape.parents[at]
            if more:
                stale.add(at)
    return stale
