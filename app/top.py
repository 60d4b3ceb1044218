"""``quotaward top``: shows quotas, queues, reservations and waiting pods in a terminal, refreshed regularly."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.amounts import readable
from app.client import CannotAsk, Server
from policy.objects.quantity import InvalidQuantity, to_milli

BAR = 24
"""Characters of a bar."""
RESERVATIONS = 5
"""Maximum number of reservations that are shown."""
AROUND = 11
"""Lines of a frame beside rows and reservations."""
JOBS = "quotaward_pending_jobs"
ASKED = (
    "quotaward_pending_pods",
    "quotaward_gated_pods",
    JOBS,
    "quotaward_extender_last_request_timestamp_seconds",
    "quotaward_store_synced",
    "quotaward_leader",
    "quotaward_observing",
)
"""Metrics that are read."""
REASONS = {"no-room": "no room on nodes", "other": "another reason", "untried": "not tried yet"}
"""Names of the reasons in ``quotaward_pending_pods`` that are no rules."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A server's answers and their time (seconds since the epoch).

    ``samples``: their sums by metric and value of its first label.
    """

    server: str
    at: float
    quotas: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    reservations: list[dict[str, Any]]
    samples: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Row:
    """One resource of a quota or a queue, in quantities; None for a bound that does not exist."""

    name: str
    resource: str
    used: str
    own: str | None
    most: str | None
    note: str

    @property
    def fullness(self) -> float:
        """The part of ``most``, else of ``own``, that is used; if that is zero: 1 if anything is used, else 0."""
        bound = _milli(self.most) if self.most is not None else _milli(self.own)
        used = _milli(self.used)
        return used / bound if bound else float(used > 0)


def show_once(server: Server) -> None:
    """Prints one frame with every row. Raises CannotAsk."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = 200
    console.print(frame(_fetch(server), rows=None))


def show_live(server: Server, interval: float) -> None:
    """Shows a frame every ``interval`` seconds until interrupted. Raises CannotAsk if the first cannot be fetched."""
    console = Console(highlight=False, markup=False, emoji=False)
    shown = _fetch(server)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(frame(shown, rows=max(4, console.height - AROUND - RESERVATIONS)), refresh=True)
            time.sleep(interval)
            try:
                shown = _fetch(server)
            except CannotAsk as problem:
                live.update(Group(Text(str(problem), style="red"), frame(shown, rows=4)), refresh=True)
                time.sleep(interval)


def frame(shown: Snapshot, rows: int | None) -> RenderableType:
    """Renders a frame with so many rows of quotas and queues together, the fullest of each, or with every row."""
    queues = _fullest_first(_rows_of_queues(shown))
    quotas = _fullest_first(_rows_of_quotas(shown))
    for_queues = len(queues) if rows is None else min(len(queues), max(2, rows // 3))
    for_quotas = len(quotas) if rows is None else max(2, rows - for_queues)
    return Group(
        Text(f"Quotaward {shown.server}  {time.strftime('%H:%M:%S', time.localtime(shown.at))}  {_state(shown)}"),
        Text(_waiting(shown)),
        Text(),
        _table(("QUOTA", "MIN", "MAX"), quotas[:for_quotas], len(quotas)),
        Text(),
        _table(("QUEUE", "DESERVED", "CAPABILITY"), queues[:for_queues], len(queues)),
        Text(),
        _reservations(shown.reservations[: None if rows is None else RESERVATIONS], len(shown.reservations)),
    )


def _fetch(server: Server) -> Snapshot:
    quotas, queues, reservations = (
        server.ask(f"/api/v1/{kind}")["items"] for kind in ("elasticquotas", "queues", "reservations")
    )
    text = server.text("/metrics")
    lines = [line for line in text.splitlines() if line.startswith(ASKED)]
    samples: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families("\n".join(lines)):
        for sample in family.samples:
            key = sample.name, next(iter(sample.labels.values()), "")
            samples[key] = samples.get(key, 0.0) + sample.value
    return Snapshot(server.url, time.time(), quotas, queues, reservations, samples)


def _state(shown: Snapshot) -> str:
    samples = shown.samples
    called = samples.get(("quotaward_extender_last_request_timestamp_seconds", "filter"), 0)
    acts = "its controllers act" if samples.get(("quotaward_leader", "")) else "its controllers do not act"
    parts = (
        "in sync" if samples.get(("quotaward_store_synced", "")) else "NOT IN SYNC",
        "ONLY OBSERVES: no pods are refused or evicted" if samples.get(("quotaward_observing", "")) else acts,
        f"filter called {max(0, shown.at - called):.0f} s ago" if called else "NO SCHEDULER HAS CALLED FILTER YET",
    )
    return ", ".join(parts)


def _waiting(shown: Snapshot) -> str:
    by_rule = {rule: int(value) for (name, rule), value in shown.samples.items() if name == ASKED[0] and value}
    in_order = sorted(by_rule.items(), key=lambda each: (-each[1], each[0]))
    why = ", ".join(f"{REASONS.get(rule, rule)} {number}" for rule, number in in_order)
    gated = int(shown.samples.get(("quotaward_gated_pods", ""), 0))
    jobs = int(sum(value for (name, _), value in shown.samples.items() if name == JOBS))
    parts = [f"{sum(by_rule.values())} pods wait: {why}"] * bool(by_rule) + [f"{gated} at gates"] * bool(gated)
    parts += [f"{jobs} Jobs wait as a whole"] * bool(jobs)
    return "; ".join(parts) or "No pods wait."


def _rows_of_quotas(shown: Snapshot) -> Iterator[Row]:
    for quota in shown.quotas:
        note = ", ".join(condition["type"] for condition in quota["conditions"])
        for resource in {**quota["min"], **quota["max"]}:
            own = quota["min"].get(resource, "0") if resource in quota["borrowed"] else None
            used, most = quota["used"].get(resource, "0"), quota["max"].get(resource)
            yield Row(f"{quota['namespace']}/{quota['name']}", resource, used, own, most, note)


def _rows_of_queues(shown: Snapshot) -> Iterator[Row]:
    for queue in shown.queues:
        note = ", ".join(condition["type"] for condition in queue["conditions"])
        for resource, own in queue["deserved"].items():
            used, most = queue["allocated"].get(resource, "0"), queue["realCapability"].get(resource)
            yield Row(queue["name"], resource, used, own, most, note)


def _fullest_first(rows: Iterator[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-row.fullness, row.name, row.resource))


def _table(titles: tuple[str, str, str], rows: list[Row], total: int) -> RenderableType:
    name, own, most = titles
    if not total:
        return Text(f"no {name.lower()}s")
    table = Table(box=None, pad_edge=False)
    for title in (name, "RESOURCE", ""):
        table.add_column(title, no_wrap=True)
    for title in ("USED", own, most):
        table.add_column(title, no_wrap=True, justify="right")
    table.add_column("", no_wrap=True)
    for row in rows:
        figures = (readable(row.resource, each) if each else "-" for each in (row.used, row.own, row.most))
        table.add_row(Text(row.name), Text(row.resource), _bar(row), *figures, row.note)
    return Group(table, Text(f"and {total - len(rows)} more")) if total > len(rows) else table


def _bar(row: Row) -> Text:
    """Draws what is used of ``own``, what is used beyond it, what is left of it, and the rest up to ``most``."""
    used, own, most = (_milli(each) for each in (row.used, row.own, row.most))
    within = used if row.own is None else min(used, own)
    scale = max(used, own, most, 1)
    cells = [round(BAR * part / scale) for part in (within, used, max(used, own), max(used, own, most))]
    text = Text()
    start = 0
    for end, (character, style) in zip(
        cells, (("█", "blue"), ("▓", "yellow"), ("░", "cyan"), ("·", "dim")), strict=True
    ):
        text.append(character * (end - start), style)
        start = end
    return text


def _reservations(first: list[dict[str, Any]], total: int) -> RenderableType:
    if not total:
        return Text("no reservations")
    table = Table(box=None, pad_edge=False)
    for title in ("NODE", "KEPT FOR", "REASON", "VICTIMS", "SINCE"):
        table.add_column(title, no_wrap=True)
    for each in first:
        victims = ", ".join(each["victims"]) or "none"
        table.add_row(*(Text(cell) for cell in (each["node"], each["pod"], each["reason"], victims, each["since"])))
    return Group(table, Text(f"and {total - len(first)} more")) if total > len(first) else table


def _milli(quantity: str | None) -> int:
    """Returns a quantity in thousandths; 0 for None and for an invalid one."""
    try:
        return to_milli(quantity) if quantity is not None else 0
    except InvalidQuantity:
        return 0
