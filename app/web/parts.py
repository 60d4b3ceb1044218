"""The parts of the page, taken from the store in small steps, each ready to be compared with how it was before."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from app.api.jobs import reservation_model
from app.api.models import ReservationModel
from app.observability import metrics
from app.settings import Settings
from app.store.store import Store
from app.web.figures import Bar, Loan, Loans, cluster_bars, queue_row, quota_rows
from app.web.waiting import Crowd, count

ROWS = 2000
"""How many quotas, and how many queues, are shown; REST has them all."""
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
class Status:
    """Whether what is shown can be trusted, and how this process is run; ``unready`` says what is missing."""

    unready: str
    mode: str
    leads: bool
    controllers: str
    nodes: int
    cluster: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Calls:
    """When kube-scheduler last called a verb (epoch seconds, 0: never), and how often it was answered how."""

    verb: str
    last: int
    results: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """What the scheduler was told about a pod, and when (epoch seconds)."""

    at: int
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


def parts(store: Store, settings: Settings, decisions: Iterable[Any]) -> Iterator[Part | None]:
    """Everything, in the order of the page; None where nothing is ready yet. No step takes long.

    ``decisions`` are the latest verdicts, the last one first.
    """
    yield Part(("status",), "status", _status(store, settings))
    yield Part(("calls",), "calls", tuple(_calls()))
    crowd = Crowd()
    for crowd in count(store.cluster):  # noqa: B007 - the last one has counted all
        yield None
    yield Part(("waiting",), "waiting", crowd.waiting(store.cluster))
    between_quotas, between_queues = Loans(), Loans()
    yield from _quotas(store, crowd, between_quotas)
    yield from _queues(store, crowd, between_queues)
    yield Part(("lending",), "lending", Lending(between_quotas.result(), between_queues.result()))
    yield Part(("reservations",), "reservations", _reservations(store))
    yield Part(("decisions",), "decisions", tuple(_decided(each) for each in islice(decisions, DECISIONS)))


def _status(store: Store, settings: Settings) -> Status:
    return Status(
        store.unready(),
        settings.mode,
        any(sample.value for sample in _samples(metrics.LEADER)),
        settings.controllers,
        len(store.cluster.table.names),
        cluster_bars(store.cluster),
    )


def _calls() -> Iterator[Calls]:
    last = {sample.labels["verb"]: int(sample.value) for sample in _samples(metrics.LAST_REQUEST)}
    answers = [sample for sample in _samples(metrics.REQUESTS) if sample.value]
    for verb in VERBS:
        results = sorted((each.labels["result"], int(each.value)) for each in answers if each.labels["verb"] == verb)
        yield Calls(verb, last.get(verb, 0), tuple(results))


def _quotas(store: Store, crowd: Crowd, loans: Loans) -> Iterator[Part | None]:
    namespaces, shown = sorted(store.cluster.quotas), 0
    yield Part(("quotas",), "quotas", Listed(min(len(namespaces), ROWS), len(namespaces)))
    for namespace in namespaces:
        for row in quota_rows(store.cluster, namespace, crowd.by_namespace[namespace]):
            if row.in_force:
                loans.add(namespace, row.bars)
            if shown < ROWS:
                shown += 1
                yield Part(("quota", namespace, row.name), "quota", row, row_of="quotas")
            else:
                yield None


def _queues(store: Store, crowd: Crowd, loans: Loans) -> Iterator[Part | None]:
    names = sorted(store.cluster.queues)
    yield Part(("queues",), "queues", Listed(min(len(names), ROWS), len(names)))
    for index, name in enumerate(names):
        if name in store.cluster.queues:
            row = queue_row(store.cluster, name, crowd.by_queue[name])
            loans.add(name, row.bars)
            yield Part(("queue", name), "queue", row, row_of="queues") if index < ROWS else None


def _reservations(store: Store) -> Reservations:
    everything = [*store.cluster.reservations.values(), *store.cluster.reserved]
    first = sorted(everything, key=lambda each: (each.since, each.name))[:RESERVATIONS]
    return Reservations(tuple(reservation_model(each) for each in first), len(everything))


def _decided(decision: Any) -> Decided:
    name = f"{decision.pod.namespace}/{decision.pod.name}"
    return Decided(int(decision.at), name, decision.verdict, decision.refused.message if decision.refused else "")


def _samples(metric: Any) -> Any:
    return [sample for family in metric.collect() for sample in family.samples]
