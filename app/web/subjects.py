"""The pages of single objects, as data: of a queue, a quota, a namespace, a node and a pod group.

Each is bounded: bars are of resources that operators name, and tables have at most ``ROWS`` rows and a next page.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, TypeVar

import yaml

from app.amounts import amount
from app.api.jobs import group_model
from app.api.models import WaitingJobModel
from app.api.waiting import ORDERS, Wanted, job_of, waiting
from app.history.reading import changes_of
from app.history.recorder import QUEUE, QUOTA, Name, Recorder
from app.observability.evictions import Evicted, Evictions
from app.pause import Pause
from app.problems import Problem
from app.settings import Settings
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.kind import Kind
from app.store.kinds import KINDS
from app.store.namespaces import NAMESPACES
from app.store.nodes import NODES as NODE_KIND
from app.store.queues import QUEUES
from app.times import rfc3339_or_empty
from app.web.ahead import Ahead, ahead
from app.web.figures import Bar, QueueRow, TenantRow, queue_row, quota_rows, tenant_row
from app.web.plots import Happened, happened
from app.whatif.expected_starts import ExpectedStarts
from app.whatif.rendering import group_manifest, namespace_manifest, node_manifest, queue_manifest, quota_manifest
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import shown
from policy.explain.terminating import conditions_of_queue
from policy.nodes.table import Placed
from policy.objects.conditions import Condition
from policy.objects.pod import Pod
from policy.objects.resources import Resources, add

ROWS = 50
"""Maximum number of rows of a table; the next page has more."""
WAITING_ORDERS = (("Job", "name"), ("Pods", "pods"), ("Queue", "queue"), ("Since", "since"), ("Why it waits", "rule"))
"""The orders of who waits, by column."""
LINES = 200
"""Maximum number of lines of a manifest that are shown."""
LATEST = 1e12
"""Seconds since the epoch that are never reached, to sort the latest first."""
NODES = 3
"""Maximum number of nodes of a job that are named."""
Made = TypeVar("Made")


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


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, the first cell of which names the row. ``following``: what ``param`` has to be for the next page.

    ``sortable``: all rows are there, so that a browser can sort them. Else ``orders`` has by column the order that the
    server knows, and ``order`` is the present one.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    param: str
    nobody: str
    following: str = ""
    sortable: bool = False
    orders: tuple[tuple[str, str], ...] = ()
    order: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """An object: what it is, its figures, tables of what belongs to it, and commands about it.

    ``own`` and ``most`` say what these parts of the bars are. ``manifest`` is the object as YAML, as far as the rules
    know it.
    """

    kind: str
    title: str
    above: tuple[Link, ...]
    facts: tuple[tuple[str, Cell], ...]
    bars: tuple[Bar, ...] = ()
    own: str = ""
    most: str = ""
    conditions: tuple[Condition, ...] = ()
    happened: Happened | None = None
    tables: tuple[Table, ...] = ()
    commands: tuple[str, ...] = ()
    manifest: str = ""
    ahead: Ahead | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The cluster with its history, expected starts, and the page of each table that is asked for, by its ``param``."""

    cluster: Cluster
    recorder: Recorder
    evictions: Evictions
    settings: Settings
    starts: ExpectedStarts
    now: float
    pages: dict[str, str]

    def after(self, param: str) -> str:
        """Returns the key of the row before the first that is asked for; empty: from the beginning."""
        return self.pages.get(param, "")

    def happened(self, name: Name, bars: Iterable[Bar], own: str, most: str) -> Happened | None:
        """Returns the plots of the last day, the scarcest resource first."""
        scarcity = {bar.resource: bar.scarcity for bar in bars}
        return happened(self.recorder, name, own, most, lambda resource: scarcity.get(resource, 0.0))


@dataclass(slots=True)
class PlacedJob:
    """The pods of a job that are on nodes, or admitted and expected there."""

    link: Link
    pods: int = 0
    nodes: set[str] = field(default_factory=set)
    request: dict[str, int] = field(default_factory=dict)


async def queue_page(asked: Asked, name: str) -> Subject:
    """Shows a queue with all below it. Raises Problem (404) if it does not exist."""
    cluster = asked.cluster
    if name not in cluster.queues:
        raise Problem(404, f"there is no queue {name}")
    row, tree = queue_row(cluster, name, 0), cluster.ledger.queues.tree
    inside = frozenset(tree.inside(name))
    accounts = cluster.ledger.queues
    namespaces = {each for queue in inside for each in accounts.known(queue).tenants}
    tenants = accounts.known(name).tenants
    children = await _table(
        asked,
        "Queues below it",
        ("Queue", "Weight", "State", "Allocated", "Deserved"),
        "children",
        tree.children_of(name),
        lambda child: _child_cells(queue_row(cluster, child, 0)),
    )
    members = await _table(
        asked,
        "Namespaces",
        ("Namespace", "Weight", "Share", "Allocated", "Entitled to"),
        "namespaces",
        tenants,
        lambda namespace: _tenant_cells(tenant_row(cluster, namespace, tenants[namespace]), namespace),
    )
    waits = await _waiting(asked, None, inside)
    coming = await ahead(cluster, asked.starts, lambda pod: cluster.queue_of(pod) in inside, asked.now)
    return Subject(
        "Queue",
        name,
        tuple(Link(each, ("queues", each)) for each in row.above),
        (
            ("State", row.state),
            ("Weight", str(row.weight)),
            ("Priority", str(row.priority)),
            ("Others may take back what it borrows", "yes" if row.reclaimable else "no"),
        ),
        _scarce_first(row.bars),
        "deserved",
        "capability",
        tuple(conditions_of_queue(cluster, name)),
        asked.happened((QUEUE, name), row.bars, "deserved", "capability"),
        (
            *(table for table in (children, members) if table.total),
            waits,
            await _placed(asked, _in_namespaces(cluster, namespaces), lambda pod: cluster.queue_of(pod) in inside),
            await _evicted(asked, lambda gone: gone.queue in inside),
            await _changed(asked, (QUEUE, name)),
        ),
        (
            _command("kubectl", "get", "queues.scheduling.volcano.sh", name, "-o", "yaml"),
            _command("kubectl", "edit", "queues.scheduling.volcano.sh", name),
            _command("quotaward", "waiting", "--queue", name),
            _command("quotaward", "queues", "--tree"),
        ),
        _yaml(QUEUES, queue_manifest(cluster.queues[name])),
        coming,
    )


async def queues_page(asked: Asked) -> Subject:
    """Shows all queues in a compact table, a queue before those below it."""
    cluster = asked.cluster
    tree = cluster.ledger.queues.tree
    queues = {"/".join([*reversed(list(tree.above(name))), name]): name for name in cluster.queues}

    def cells(path: str) -> tuple[Cell, ...]:
        row = queue_row(cluster, queues[path], 0)
        wanted = _sums({bar.resource: bar.wanted or 0 for bar in row.bars})
        states = ", ".join([*row.states, *([] if row.state == "Open" else [row.state])])
        return Link(path, ("queues", row.name)), str(row.weight), _used(row.bars), _own(row.bars), wanted, states

    columns = ("Queue", "Weight", "Allocated", "Deserved", "Asked for", "State")
    table = await _table(asked, "All queues", columns, "queues", queues, cells, "There is no Queue.")
    return Subject("Queues", "", (), (), tables=(table,), commands=(_command("quotaward", "queues", "--tree"),))


async def quota_page(asked: Asked, namespace: str, name: str) -> Subject:
    """Shows an elastic quota. Raises Problem (404) if it does not exist."""
    row = next((row for row in quota_rows(asked.cluster, namespace, 0) if row.name == name), None)
    if row is None:
        raise Problem(404, f"there is no ElasticQuota {namespace}/{name}")
    return Subject(
        "ElasticQuota",
        f"{namespace}/{name}",
        (Link(f"Namespace {namespace}", ("namespaces", namespace)),),
        (("In force", "yes" if row.in_force else "no"),),
        _scarce_first(row.bars),
        "min",
        "max",
        row.conditions,
        asked.happened((QUOTA, namespace), row.bars, "min", "max") if row.in_force else None,
        await _of_namespace(asked, namespace),
        (
            _command("kubectl", "-n", namespace, "get", "elasticquotas.scheduling.x-k8s.io", name, "-o", "yaml"),
            _command("kubectl", "-n", namespace, "edit", "elasticquotas.scheduling.x-k8s.io", name),
            _command("quotaward", "quotas", "-n", namespace),
            _command("quotaward", "waiting", "-n", namespace),
        ),
        _yaml(ELASTIC_QUOTAS, quota_manifest(asked.cluster.quotas[namespace][name])),
    )


async def namespace_page(asked: Asked, namespace: str) -> Subject:
    """Shows a namespace with its quotas, and its part of its queue. Raises Problem (404) if it does not exist."""
    cluster = asked.cluster
    if not cluster.knows_namespace(namespace):
        raise Problem(404, f"there is no namespace {namespace}")
    known = cluster.membership.namespaces.get(namespace)
    queue = known.queue if known else ""
    quotas = {row.name: row for row in quota_rows(cluster, namespace, 0)}
    in_force = next((row for row in quotas.values() if row.in_force), None)
    facts: tuple[tuple[str, Cell], ...] = ()
    if queue:
        facts = (("Queue", Link(queue, ("queues", queue) if queue in cluster.queues else ())),)
        tenant = cluster.ledger.queues.known(queue).tenants.get(namespace)
        if tenant is not None:
            _, weight, share, used, entitled = _tenant_cells(tenant_row(cluster, namespace, tenant), namespace)
            facts += (
                ("Weight in the queue", weight),
                ("Share", share),
                ("Used in the queue", used),
                ("Entitled to", entitled),
            )
    table = await _table(
        asked,
        "Quotas",
        ("ElasticQuota", "In force"),
        "quotas",
        quotas,
        lambda name: (Link(name, ("quotas", namespace, name)), "yes" if quotas[name].in_force else "no"),
    )
    return Subject(
        "Namespace",
        namespace,
        (),
        facts,
        _scarce_first(in_force.bars) if in_force else (),
        "min",
        "max",
        in_force.conditions if in_force else (),
        asked.happened((QUOTA, namespace), in_force.bars, "min", "max") if in_force else None,
        (*([table] if quotas else []), *await _of_namespace(asked, namespace)),
        (
            _command("kubectl", "get", "namespace", namespace, "-o", "yaml"),
            _command("quotaward", "quotas", "-n", namespace),
            _command("quotaward", "waiting", "-n", namespace),
        ),
        _yaml(NAMESPACES, namespace_manifest(known)) if known else "",
    )


async def node_page(asked: Asked, name: str) -> Subject:
    """Shows a node, what runs there, and for whom room is kept there. Raises Problem (404) if it is not known."""
    cluster = asked.cluster
    site = cluster.table.site(name)
    if site is None or site.node is None:
        raise Problem(404, f"there is no node {name}")
    node, used = site.node, dict(site.used)
    here = [placed for uid in site.pods if (placed := cluster.table.placed(uid)) is not None]
    kept = {each.name: each for each in cluster.reservations.all() if each.node == name and not each.failed_at}
    for_whom = await _table(
        asked,
        "Who waits for room here",
        ("Pod", "Why", "Who goes for it", "Since"),
        "reservations",
        kept,
        lambda key: (
            Link(
                f"{kept[key].pod.namespace}/{kept[key].pod.name}", _path_of(kept[key].pod.namespace, kept[key].pod.name)
            ),
            kept[key].reason,
            _few([f"{each.namespace}/{each.name}" for each in kept[key].victims]) or "nobody",
            _time(kept[key].since),
        ),
        nobody="No room is kept here.",
    )
    taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    return Subject(
        "Node",
        name,
        (),
        (
            ("Ready", "yes" if node.ready else "no"),
            ("Takes new pods", "yes" if node.usable else "no"),
            ("Taints", _few(taints) or "none"),
        ),
        _scarce_first(
            Bar(resource, used.get(resource, 0), most=most)
            for resource, most in shown(cluster, node.allocatable).items()
            if most or used.get(resource)
        ),
        most="allocatable",
        tables=(for_whom, await _placed(asked, (here,), lambda _: True)),
        commands=(
            _command("kubectl", "describe", "node", name),
            _command("kubectl", "get", "node", name, "-o", "yaml"),
            _command("kubectl", "get", "pods", "-A", "--field-selector", f"spec.nodeName={name}"),
        ),
        manifest=_yaml(NODE_KIND, node_manifest(node)),
    )


async def gang_page(asked: Asked, namespace: str, kind: str, name: str) -> Subject:
    """Shows a pod group with its members. Raises Problem (404) if it does not exist."""
    cluster, key = asked.cluster, (namespace, f"{kind}/{name}")
    if key not in cluster.membership.groups:
        raise Problem(404, f"there is no pod group {namespace}/{name}")
    of_kind = next(each for each in KINDS if each.label == kind)
    group = group_model(cluster, *key, asked.settings.reserve.terms, asked.now)
    pods = {pod.name: pod for pod in cluster.groups.members(key)}
    queue = cluster.queue_of(min(pods.values(), key=lambda pod: pod.name)) if pods else ""

    def cells(member: str) -> tuple[Cell, ...]:
        pod = pods[member]
        placed = cluster.table.placed(pod.uid)
        on = pod.node or (placed.site.name if placed else "")
        state = "admitted" if pod.uid in cluster.grants else "waits" if pod.pending else "runs" if pod.node else "ended"
        request = _sums(shown(cluster, pod.request))
        return Link(member, ("pods", namespace, member)), state, Link(on, ("nodes", on) if on else ()), request

    members = await _table(asked, "Members", ("Pod", "State", "Node", "Requests"), "members", pods, cells)
    waiting_member = next((name for name in sorted(pods) if pods[name].pending), "")
    return Subject(
        "Pod group",
        f"{namespace}/{name}",
        (Link(f"Namespace {namespace}", ("namespaces", namespace)),),
        (
            ("Kind", kind),
            ("Queue", Link(queue, ("queues", queue) if queue in cluster.queues else ())),
            ("Members that it takes", str(group.minimum)),
            ("Run or are admitted", str(group.ready)),
            ("Wait", str(group.pending)),
            ("Nodes that are reserved", str(group.reserved)),
        ),
        conditions=tuple(Condition(each.type, each.reason, each.message) for each in group.conditions),
        tables=(members,),
        commands=(
            _command("kubectl", "-n", namespace, "get", kind, name, "-o", "yaml"),
            *([_command("quotaward", "explain", f"{namespace}/{waiting_member}")] if waiting_member else []),
            _command("quotaward", "waiting", "-n", namespace),
        ),
        manifest=_yaml(of_kind, group_manifest(cluster.membership.groups[key])),
    )


async def _of_namespace(asked: Asked, namespace: str) -> tuple[Table, ...]:
    placed = _in_namespaces(asked.cluster, {namespace})
    return (
        await _waiting(asked, namespace, None),
        await _placed(asked, placed, lambda _: True),
        await _evicted(asked, lambda gone: gone.namespace == namespace),
        await _changed(asked, (QUOTA, namespace)),
    )


async def _changed(asked: Asked, name: Name) -> Table:
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
        return f"{what} of {change.resource}", _time(change.minute * 60), before, after

    columns = ("Limit", "When", "From", "To")
    return await _table(asked, "What changed lately", columns, "changed", changes, cells, "No limit has changed.")


async def _evicted(asked: Asked, is_meant: Callable[[Evicted], bool]) -> Table:
    """Makes the table of the latest evictions that are remembered, the latest first."""
    gone = {f"{LATEST - each.at:020.6f} {each.uid}": each for each in asked.evictions if is_meant(each)}
    return await _table(
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
        Link(f"{gone.namespace}/{gone.name}", _path_of(gone.namespace, gone.name)),
        _time(gone.at),
        Link(gone.node, ("nodes", gone.node) if gone.node else ()),
        Link(gone.for_whom, _path_of(namespace, name) if name else ()),
        gone.why,
    )


async def _waiting(asked: Asked, namespace: str | None, queues: Collection[str] | None) -> Table:
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
    path = _path_of(job.namespace, job.name, job.kind, is_group=bool(job.pod_names) and job.kind != "Pod")
    return (
        Link(f"{job.namespace}/{job.name}", path),
        str(job.pods),
        Link(job.queue, ("queues", job.queue) if job.queue in cluster.queues else ()),
        str(job.place or ""),
        Time(job.since),
        Time(job.expected_start.at if job.expected_start else ""),
        job.message,
    )


async def _placed(asked: Asked, parts: Iterable[Iterable[Placed]], is_meant: Callable[[Pod], bool]) -> Table:
    """Makes the table of what has a place, by job, so that a gang is one row. Pauses between parts, and inside them."""
    cluster, pause, jobs = asked.cluster, Pause(), dict[str, PlacedJob]()
    for part in parts:
        await pause.if_due()
        for placed in list(part):  # it may change during a pause
            await pause.if_due()
            if is_meant(placed.pod):
                _add(cluster, jobs, placed)
    return await _table(
        asked,
        "Who is in it",
        ("Job", "Pods", "Nodes", "Requests"),
        "placed",
        jobs,
        lambda key: (
            jobs[key].link,
            str(jobs[key].pods),
            Link(_few(jobs[key].nodes), ("nodes", *jobs[key].nodes) if len(jobs[key].nodes) == 1 else ()),
            _sums(jobs[key].request),
        ),
        nobody="Nobody runs or is admitted.",
    )


def _in_namespaces(cluster: Cluster, namespaces: Iterable[str]) -> Iterator[Iterable[Placed]]:
    return (cluster.table.in_namespaces({namespace}) for namespace in namespaces)


def _add(cluster: Cluster, jobs: dict[str, PlacedJob], placed: Placed) -> None:
    """Adds a pod to its job."""
    pod, (kind, name) = placed.pod, job_of(cluster, placed.pod)
    key = f"{pod.namespace}/{name}/{kind}"
    if (job := jobs.get(key)) is None:
        path = _path_of(pod.namespace, name, kind, is_group=kind != "Pod" and pod.stands_for is None)
        job = jobs[key] = PlacedJob(Link(f"{pod.namespace}/{name}", path))
    job.pods += pod.counts_for
    job.nodes.add(placed.site.name)
    add(job.request, shown(cluster, pod.request))


async def _table(
    asked: Asked,
    title: str,
    columns: tuple[str, ...],
    param: str,
    keys: Iterable[str],
    cells: Callable[[str], tuple[Cell, ...]],
    nobody: str = "There are none.",
) -> Table:
    """Makes the page of a table that is asked for; rows stand in the order of their keys."""
    everything, after = list(keys), asked.after(param)
    first = nsmallest(ROWS + 1, (key for key in everything if key > after))
    page = first[:ROWS]
    following = page[-1] if len(first) > len(page) else ""
    rows, pause = list[tuple[Cell, ...]](), Pause()
    for key in page:
        rows.append(cells(key))
        await pause.if_due()
    sortable = not after and not following
    return Table(title, columns, tuple(rows), len(everything), param, nobody, following, sortable=sortable)


def _child_cells(row: QueueRow) -> tuple[Cell, ...]:
    return Link(row.name, ("queues", row.name)), str(row.weight), row.state, _used(row.bars), _own(row.bars)


def _tenant_cells(row: TenantRow, namespace: str) -> tuple[Cell, Cell, Cell, Cell, Cell]:
    return (
        Link(namespace, ("namespaces", namespace)),
        str(row.weight),
        f"{row.share * 100:.1f}%",
        _used(row.bars),
        _own(row.bars),
    )


def _path_of(namespace: str, name: str, kind: str = "Pod", *, is_group: bool = False) -> tuple[str, ...]:
    if is_group:
        return "gangs", namespace, kind, name
    if kind == "Pod":
        return "pods", namespace, name
    return ("jobs", namespace, name) if kind == "Job" else ("jobs", namespace, kind.lower(), name)


def _scarce_first(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    return tuple(sorted(bars, key=lambda bar: (-bar.scarcity, bar.resource)))


def _sums(amounts: Resources) -> str:
    """Formats amounts in one line, without those that are zero, and without the number of pods."""
    return ", ".join(
        f"{name} {amount(name, value)}" for name, value in sorted(amounts.items()) if value and name != "pods"
    )


def _used(bars: Iterable[Bar]) -> str:
    return _sums({bar.resource: bar.used for bar in bars})


def _own(bars: Iterable[Bar]) -> str:
    """Formats what the owner of bars is sure of."""
    return _sums({bar.resource: bar.own or 0 for bar in bars})


def _few(names: Iterable[str]) -> str:
    everything = list(names)
    first = ", ".join(nsmallest(NODES, everything))
    return f"{first} and {len(everything) - NODES} more" if len(everything) > NODES else first


def _time(seconds: float) -> Time:
    return Time(rfc3339_or_empty(seconds))


def _yaml(kind: Kind, manifest: dict[str, Any]) -> str:
    """Formats an object; of one with thousands of lines only the first are shown."""
    whole = {"apiVersion": kind.api_version, "kind": kind.name} | manifest
    text = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)
    lines = text.splitlines()
    return text if len(lines) <= LINES else "\n".join((*lines[:LINES], "# and more"))


def _command(*words: str) -> str:
    return shlex.join(words)
