"""The parts of the page, each comparable with an earlier state, and the functions for those that exist only once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from app.api.jobs import reservation_model
from app.api.models import ReservationModel
from app.observability import metrics
from app.settings import Settings
from app.store.store import Store
from app.web.cells import Link, kept_for
from app.web.figures import Bar, Loan, cluster_bars

RESERVATIONS = 200
DECISIONS = 20
VERBS = ("filter", "prioritize", "preempt", "bind")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the page that changes as a whole: ``template`` shows ``model``.

    ``key`` identifies it. ``row_of`` is the list of which it is a row, if any.
    """

    key: tuple[str, ...]
    template: str
    model: Any
    row_of: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """A row that no longer exists."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of this process: ``unready`` says why the page cannot be trusted; the rest is how the process runs.

    ``warnings``: what is wrong although the page can be trusted.
    """

    unready: str
    mode: str
    leads: bool
    controllers: str
    nodes: int
    cluster: tuple[Bar, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Calls:
    """The last call of a verb by kube-scheduler (epoch seconds, 0: never), and how often each result was given."""

    verb: str
    last: int
    results: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """An answer to the scheduler about a pod, and its time (epoch seconds)."""

    at: float
    pod: str
    verdict: str
    message: str


@dataclass(frozen=True, slots=True)
class Listed:
    """The number of rows that a list shows, and the number that exist."""

    shown: int
    total: int


@dataclass(frozen=True, slots=True)
class Lending:
    """Lending between quotas and between queues."""

    between_quotas: tuple[Loan, ...]
    between_queues: tuple[Loan, ...]


@dataclass(frozen=True, slots=True)
class Reservations:
    """Reservations that are shown, each with the page of whom it is for, and the number of all."""

    items: tuple[tuple[ReservationModel, Link], ...]
    total: int


def status(store: Store, settings: Settings) -> Status:
    """Returns the state of this process."""
    return Status(
        store.unready(),
        settings.mode,
        any(sample.value for sample in _samples(metrics.LEADER)),
        settings.controllers,
        len(store.cluster.table.names),
        cluster_bars(store.cluster),
        tuple(store.warnings),
    )


def calls() -> Iterator[Calls]:
    """Yields the scheduler's calls of each verb."""
    last = {sample.labels["verb"]: int(sample.value) for sample in _samples(metrics.LAST_REQUEST)}
    answers = [sample for sample in _samples(metrics.REQUESTS) if sample.value]
    for verb in VERBS:
        results = sorted((each.labels["result"], int(each.value)) for each in answers if each.labels["verb"] == verb)
        yield Calls(verb, last.get(verb, 0), tuple(results))


def reservations(store: Store) -> Reservations:
    """Returns the reservations, the oldest first."""
    everything = [*store.cluster.reservations.plans.values(), *store.cluster.reservations.reserved]
    first = sorted(everything, key=lambda each: (each.since, each.name))[:RESERVATIONS]
    return Reservations(tuple((reservation_model(each), kept_for(each)) for each in first), len(everything))


def latest(decisions: Iterable[Any]) -> tuple[Decided, ...]:
    """Returns the first of the decisions."""
    return tuple(_decided(each) for each in islice(decisions, DECISIONS))


def _decided(decision: Any) -> Decided:
    name = f"{decision.namespace}/{decision.name}"
    return Decided(decision.at, name, decision.verdict, decision.refused.message if decision.refused else "")


def _samples(metric: Any) -> Any:
    return [sample for family in metric.collect() for sample in family.samples]
