"""The Proportion Policy: how much of the cluster each queue deserves.

Seeds: Queue API (Proportion Policy), queue guarantee. Resources that a queue does not ask for go to the others by
weight, by water filling. A guarantee is kept free for its queue whether it asks for it or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policy.objects.queue import Queue
from policy.objects.resources import NOTHING, Resources
from policy.quota.water_filling import Bid, divide
from policy.stepwise import Steps

AT_ONCE = 100
"""Queues whose parts are written between two pauses."""


@dataclass(frozen=True, slots=True)
class Division:
    """A queue's part of the cluster.

    ``real_capability`` bounds what it may use, as others' guarantees are kept free. A resource that no node has is
    absent and bounded by zero, except for extended ones that no node lists (QueueLedger.lists). ``guarantee`` is the
    part of the spec's that can be kept. ``known``: it was worked out.
    """

    guarantee: Resources = field(default_factory=dict)
    real_capability: Resources = field(default_factory=dict)
    deserved: Resources = field(default_factory=dict)
    known: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One resource, divided: how much there is, and by queue the pods' requests, the guarantee kept, and the part.

    Queues stand in the order of their names. ``kept`` is the part of its guarantee that can be kept, ``most`` its
    bound.
    """

    there: int
    asked: list[int]
    kept: list[int]
    most: list[int]
    part: list[int]


Columns = dict[str, Column]
"""All resources by name, for the same queues."""


def divisions_steps(
    available: Resources, queues: Mapping[str, Queue], requests: Mapping[str, Resources], known: Columns
) -> Steps[dict[str, Division]]:
    """Divides what is available among queues by weighted max-min fairness, each resource on its own.

    ``requests`` has the sum of the requests of each queue's pods, running and waiting. The parts sum to no more than
    there is. The caller may pause in between. ``known`` is the result of last time, and is set to the result of now.
    Only what has changed is computed. Returns only the parts that have changed.
    """
    names = sorted(queues)
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
            columns[resource] = _divide(there, resource, in_order, asked, is_guaranteed=resource in guaranteed)
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


def _divide(there: int, resource: str, queues: list[Queue], asked: list[int], *, is_guaranteed: bool) -> Column:
    lows = _guarantees_kept(there, queues, resource) if is_guaranteed else [0] * len(queues)
    left = there - sum(lows)
    most = [min(queue.capability.get(resource, there), left + own) for queue, own in zip(queues, lows, strict=True)]
    wanted = [min(each, bound) for each, bound in zip(asked, most, strict=True)]
    bids = [Bid(queue.weight, low, max(low, high)) for queue, low, high in zip(queues, lows, wanted, strict=True)]
    return Column(there, asked, lows, most, divide(there, bids))


def _guarantees_kept(there: int, queues: list[Queue], resource: str) -> list[int]:
    """Returns the part of each guarantee that can be kept: at most the queue's capability, and in sum what is there."""
    wanted = [
        min(queue.guarantee.get(resource, 0), queue.capability.get(resource, queue.guarantee.get(resource, 0)))
        for queue in queues
    ]
    if sum(wanted) <= there:
        return wanted
    return divide(there, [Bid(max(1, amount), 0, amount) for amount in wanted])
