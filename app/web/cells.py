"""The cells of tables: text, times, and links to the pages of objects."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from app.amounts import amount
from app.times import rfc3339_or_empty
from app.web.figures import Bar, TenantRow
from policy.cluster.cluster import Cluster
from policy.objects.job import short
from policy.objects.queued_job import is_member
from policy.objects.reservation import Reservation
from policy.objects.resources import Resources

NODES = 3
"""Maximum number of nodes of a job that are named."""


@dataclass(frozen=True, slots=True)
class Link:
    """The page of an object, by the parts of its path; without a path it is text."""

    text: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Time:
    """A time in RFC 3339; empty if it is not known."""

    text: str


Cell = str | Link | Time


def queue_link(cluster: Cluster, name: str) -> Link:
    """Returns a link to the page of a queue; text if it does not exist."""
    return Link(name, ("queues", name) if name in cluster.queues else ())


def path_of(namespace: str, name: str, kind: str = "Pod", *, is_group: bool = False) -> tuple[str, ...]:
    """Returns the path of the page of a pod, a job that waits as a whole, or a pod group."""
    if is_group:
        return "gangs", namespace, kind, name
    if kind == "Pod":
        return "pods", namespace, name
    return ("jobs", namespace, name) if kind == "Job" else ("jobs", namespace, kind.lower(), name)


def kept_for(reservation: Reservation) -> Link:
    """Returns a link to the page of the pod that a reservation is for, or of its Job if this pod does not exist yet."""
    pod = reservation.pod
    if is_member(pod.uid):
        return Link(pod.title, path_of(pod.namespace, short(reservation.job), "Job"))
    return Link(pod.title, path_of(pod.namespace, pod.name))


def sums(amounts: Resources) -> str:
    """Formats amounts in one line, without those that are zero, and without the number of pods."""
    return ", ".join(
        f"{name} {amount(name, value)}" for name, value in sorted(amounts.items()) if value and name != "pods"
    )


def used(bars: Iterable[Bar]) -> str:
    """Formats what is used of bars."""
    return sums({bar.resource: bar.used for bar in bars})


def own(bars: Iterable[Bar]) -> str:
    """Formats what the owner of bars is sure of."""
    return sums({bar.resource: bar.own or 0 for bar in bars})


def few(names: Iterable[str]) -> str:
    """Formats names in one line: of many only the first."""
    everything = list(names)
    first = ", ".join(nsmallest(NODES, everything))
    return f"{first} and {len(everything) - NODES} more" if len(everything) > NODES else first


def time_cell(seconds: float) -> Time:
    """Returns a time in seconds since the epoch; 0 is not known."""
    return Time(rfc3339_or_empty(seconds))


def tenant_cells(row: TenantRow, namespace: str) -> tuple[Cell, Cell, Cell, Cell, Cell]:
    """Returns the namespace, its weight and share in its queue, what it uses there, and what it is entitled to."""
    return (
        Link(namespace, ("namespaces", namespace)),
        str(row.weight),
        f"{row.share * 100:.1f}%",
        used(row.bars),
        own(row.bars),
    )
