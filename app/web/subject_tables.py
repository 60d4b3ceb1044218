"""Tables of several kinds of pages: who waits, who has a place, who was evicted lately, and what has changed."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from app.amounts import amount
from app.api.models import WaitingJobModel
from app.api.waiting import ORDERS, Wanted, job_of, waiting
from app.history.reading import changes_of
from app.history.recorder import QUOTA, Name
from app.observability.evictions import Evicted
from app.pause import Pause
from app.web.asked import Asked
from app.web.cells import Cell, Link, Time, few, path_of, queue_link, sums, time_cell
from app.web.tables import ROWS, Table, table_of
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import shown
from policy.nodes.table import Placed
from policy.objects.pod import Pod
from policy.objects.resources import add

WAITING_ORDERS = (("Job", "name"), ("Pods", "pods"), ("Queue", "queue"), ("Since", "since"), ("Why it waits", "rule"))
"""The orders of who waits, by column."""
LATEST = 1e12
"""Seconds since the epoch that are never reached, to sort the latest first."""


@dataclass(slots=True)
class PlacedJob:
    """The pods of a job that are on nodes, or admitted and expected there."""

    link: Link
    pods: int = 0
    nodes: set[str] = field(default_factory=set)
    request: dict[str, int] = field(default_factory=dict)


async def tables_of_namespace(asked: Asked, namespace: str) -> tuple[Table, ...]:
    """Makes all of these tables for a namespace."""
    placed = in_namespaces(asked.cluster, {namespace})
    return (
        await waiting_table(asked, namespace, None),
        await placed_table(asked, placed, lambda _: True),
        await evicted_table(asked, lambda gone: gone.namespace == namespace),
        await changed_table(asked, (QUOTA, namespace)),
    )


async def changed_table(asked: Asked, name: Name) -> Table:
    """Makes the table of the limits that have changed in the last day, the latest first."""
    changes = {
        f"{LATEST - change.minute * 60:020.6f} {change.figure} {change.resource}": change
        for change in changes_of(asked.recorder, name)
    }

    def cells(key: str) -> tuple[Cell, ...]:
        change = changes[key]
        before, after = (
            "none" if each is None else amount(change.resource, each) for each in (change.before, change.after)
        )
        what = {("queue", "min"): "guarantee", ("queue", "max"): "limit"}.get((name[0], change.figure), change.figure)
        return f"{what} of {change.resource}", time_cell(change.minute * 60), before, after

    columns = ("Limit", "When", "From", "To")
    return await table_of(asked, "What changed lately", columns, "changed", changes, cells, "No limit has changed.")


async def evicted_table(asked: Asked, is_meant: Callable[[Evicted], bool]) -> Table:
    """Makes the table of the latest evictions that are remembered, the latest first."""
    gone = {f"{LATEST - each.at:020.6f} {each.uid}": each for each in asked.evictions if is_meant(each)}
    return await table_of(
        asked,
        "Who was evicted lately",
        ("Pod", "When", "From", "For whom", "Why"),
        "evicted",
        gone,
        lambda key: _evicted_cells(gone[key]),
        nobody="This replica remembers no eviction.",
    )


def _evicted_cells(gone: Evicted) -> tuple[Cell, ...]:
    namespace, _, name = gone.for_whom.partition("/")
    return (
        Link(f"{gone.namespace}/{gone.name}", path_of(gone.namespace, gone.name)),
        time_cell(gone.at),
        Link(gone.node, ("nodes", gone.node) if gone.node else ()),
        Link(gone.for_whom, path_of(namespace, name) if name else ()),
        gone.why,
    )


async def waiting_table(asked: Asked, namespace: str | None, queues: Collection[str] | None) -> Table:
    """Makes the table of who waits: rows of ``/api/v1/waiting``."""
    order = asked.after("sort")
    order = order if order in ORDERS else "since"
    wanted = Wanted(namespace, queues, None, order, ROWS, asked.after("waiting"))
    await asked.starts.renew()
    found = await waiting(asked.cluster, wanted, asked.starts, observe=asked.settings.observes)
    return Table(
        "Who waits",
        ("Job", "Pods", "Queue", "Place", "Since", "Expected start", "Why it waits"),
        tuple(_waiting_cells(asked.cluster, each) for each in found.items),
        found.total,
        "waiting",
        "Nobody waits.",
        found.continue_,
        orders=WAITING_ORDERS,
        order=order,
    )


def _waiting_cells(cluster: Cluster, job: WaitingJobModel) -> tuple[Cell, ...]:
    path = path_of(job.namespace, job.name, job.kind, is_group=bool(job.pod_names) and job.kind != "Pod")
    return (
        Link(f"{job.namespace}/{job.name}", path),
        str(job.pods),
        queue_link(cluster, job.queue),
        str(job.place or ""),
        Time(job.since),
        Time(job.expected_start.at if job.expected_start else ""),
        job.message,
    )


async def placed_table(asked: Asked, parts: Iterable[Iterable[Placed]], is_meant: Callable[[Pod], bool]) -> Table:
    """Makes the table of what has a place, by job, so that a gang is one row. Pauses between parts, and inside them."""
    cluster, pause, jobs = asked.cluster, Pause(), dict[str, PlacedJob]()
    for part in parts:
        await pause.if_due()
        for placed in list(part):  # it may change during a pause
            await pause.if_due()
            if is_meant(placed.pod):
                _add(cluster, jobs, placed)
    return await table_of(
        asked,
        "Who is in it",
        ("Job", "Pods", "Nodes", "Requests"),
        "placed",
        jobs,
        lambda key: (
            jobs[key].link,
            str(jobs[key].pods),
            Link(few(jobs[key].nodes), ("nodes", *jobs[key].nodes) if len(jobs[key].nodes) == 1 else ()),
            sums(jobs[key].request),
        ),
        nobody="Nobody runs or is admitted.",
    )


def in_namespaces(cluster: Cluster, namespaces: Iterable[str]) -> Iterator[Iterable[Placed]]:
    """Yields what has a place, a namespace at a time."""
    return (cluster.table.in_namespaces({namespace}) for namespace in namespaces)


def _add(cluster: Cluster, jobs: dict[str, PlacedJob], placed: Placed) -> None:
    """Adds a pod to its job."""
    pod, (kind, name) = placed.pod, job_of(cluster, placed.pod)
    key = f"{pod.namespace}/{name}/{kind}"
    if (job := jobs.get(key)) is None:
        path = path_of(pod.namespace, name, kind, is_group=kind != "Pod" and pod.stands_for is None)
        job = jobs[key] = PlacedJob(Link(f"{pod.namespace}/{name}", path))
    job.pods += pod.counts_for
    job.nodes.add(placed.site.name)
    add(job.request, shown(cluster, pod.request))
