"""The parts of the page, each ready to be compared with how it was before, and those that there are only once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from app.api.jobs import reservation_model
from app.api.models import ReservationModel
from app.observability import metrics
from app.settings import Settings
from app.store.store import Store
from app.web.figures import Bar, Loan, cluster_bars

RESERVATIONS = 200
DECISIONS = 20
VERBS = ("filter", "prioritize", "preempt", "bind")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the page that changes as a whole: ``template`` shows ``model``.

    ``key`` tells it from the others. ``row_of`` is the list that it is a row of, if it is one.
    """

    key: tuple[str, ...]
    template: str
    model: Any
    row_of: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """A row that is not there any more."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """Whether what is shown can be trusted, and how this process is run; ``unready`` says what is missing.

    ``warnings``: what is not as it should be, although it can be trusted.
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
    """When kube-scheduler last called a verb (epoch seconds, 0: never), and how often it was answered how."""

    verb: str
    last: int
    results: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """What the scheduler was told about a pod, and when (epoch seconds)."""

    at: float
    pod: str
    verdict: str
    message: str


@dataclass(frozen=True, slots=True)
class Listed:
    """How many rows a list has, of how many there are."""

    shown: int
    total: int


@dataclass(frozen=True, slots=True)
class Lending:
    """Who uses what others leave unused."""

    between_quotas: tuple[Loan, ...]
    between_queues: tuple[Loan, ...]


@dataclass(frozen=True, slots=True)
class Reservations:
    """What is kept for whom, and how many reservations there are in all."""

    items: tuple[ReservationModel, ...]
    total: int


def status(store: Store, settings: Settings) -> Status:
    """How this process stands."""
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
    """What the scheduler has asked of it."""
    last = {sample.labels["verb"]: int(sample.value) for sample in _samples(metrics.LAST_REQUEST)}
    answers = [sample for sample in _samples(metrics.REQUESTS) if sample.value]
    for verb in VERBS:
        results = sorted((each.labels["result"], int(each.value)) for each in answers if each.labels["verb"] == verb)
        yield Calls(verb, last.get(verb, 0), tuple(results))


def reservations(store: Store) -> Reservations:
    """What is kept for whom, the oldest first."""
    everything = [*store.cluster.reservations.values(), *store.cluster.reserved]
    first = sorted(everything, key=lambda each: (each.since, each.name))[:RESERVATIONS]
    return Reservations(tuple(reservation_model(each) for each in first), len(everything))


def latest(decisions: Iterable[Any]) -> tuple[Decided, ...]:
    """The first of the decisions."""
    return tuple(_decided(each) for each in islice(decisions, DECISIONS))


def _decided(decision: Any) -> Decided:
    name = f"{decision.pod.namespace}/{decision.pod.name}"
    return Decided(decision.at, name, decision.verdict, decision.refused.message if decision.refused else "")


def _samples(metric: Any) -> Any:
    return [sample for family in metric.collect() for sample in family.samples]
