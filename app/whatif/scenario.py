"""Reads a folder of manifests as a story: annotations say when objects appear, and how long pods run."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from app.job_kinds import Row
from app.settings import Settings
from app.sources import manifests
from app.sources.manifests import Fault, Manifest
from app.store.heeded import AT, FOR
from app.store.kinds import kinds_with
from app.store.metadata import seconds
from app.store.pod_groups import POD_GROUPS, group_of
from app.store.pods import PODS, pod_of
from app.times import InvalidDuration, parse_duration
from policy.cluster.cluster import Cluster
from policy.simulate.simulation import Simulation
from policy.simulate.timeline import START, Arrival, Story, Timeline
from policy.stepwise import Steps

_DATES = frozenset(
    {"creationTimestamp", "startTime", "startedAt", "finishedAt", "lastTransitionTime", "lastHeartbeatTime"}
)
"""Fields with the time of something that happened to an object."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The arrivals of a story, the durations of pods by UID, and the problems of the folder.

    ``start`` is the time at which it begins, in seconds since the epoch: when the objects were taken from a cluster, if
    they tell. So pods have waited as long here as there.
    """

    arrivals: list[Arrival]
    durations: dict[str, float]
    problems: list[str]
    start: float = START


def read(directory: Path, legacy: str = "auto", rows: Iterable[Row] = (), *, without: Path | None = None) -> Scenario:
    """Reads a folder as a story. Simultaneous objects come in the order of kinds, then in that of the folder.

    ``rows`` are those of the table of kinds of jobs. ``without`` is a file that is not read.
    """
    kinds = kinds_with(rows)
    order = {kind.label: number for number, kind in enumerate(kinds)}
    folder = manifests.read(directory, legacy, kinds, without=without)
    problems = [str(problem) for problem in folder.problems]
    documents = [msgspec.json.decode(manifest.raw) for manifest in folder.manifests]
    scenario = Scenario([], {}, problems, _taken_at(documents))
    found = zip(folder.manifests, documents, strict=True)
    for number, (manifest, document) in enumerate(sorted(found, key=lambda each: order[each[0].kind.label])):
        annotations = _annotations(document)
        try:
            at = parse_duration(str(annotations[AT])) if AT in annotations else 0.0
            if FOR in annotations:
                scenario.durations[str(manifest.key)] = parse_duration(str(annotations[FOR]))
        except InvalidDuration as error:
            scenario.problems.append(
                str(Fault(manifest.file, 0, f"{manifest.kind.name} {manifest.obj.metadata.name}: {error}"))
            )
            continue
        show = _anew if AT in annotations or manifest.obj.metadata.creation_timestamp is None else _as_it_was
        scenario.arrivals.append(Arrival(at, show(manifest, number / 1e6), manifest.kind is PODS))
    return scenario


def play_steps(
    scenario: Scenario, settings: Settings, until: float, is_over: Callable[[], bool] = lambda: False
) -> Steps[tuple[Story, Cluster]]:
    """Plays a story; returns what happens, and the cluster at the end. It is given up once ``is_over`` says so."""
    cluster = Cluster(settings.rules, settle_time=0)
    terms = settings.reserve.terms
    timeline = Timeline(Simulation(cluster, terms, scenario.start), terms, scenario.arrivals, scenario.durations)
    for _ in timeline.play_steps(until):
        if is_over():
            timeline.give_up()
            break
        yield
    return timeline.story, cluster


def initial_cluster(arrivals: Iterable[Arrival], settings: Settings, epoch: float) -> Cluster:
    """Builds a cluster in which all of this exists already."""
    cluster = Cluster(settings.rules, settle_time=0)
    for arrival in arrivals:
        arrival.show(cluster, epoch)
    for _ in cluster.divide_steps():
        pass
    return cluster


def _anew(manifest: Manifest, order: float) -> Callable[[Cluster, float], None]:
    """Returns the call that creates an object. Of simultaneous pods, earlier ones are created a bit earlier."""
    kind, obj = manifest.kind, manifest.obj

    def show(cluster: Cluster, now: float) -> None:
        if kind is PODS:
            pod = pod_of(obj)
            cluster.upsert_pod(replace(pod, created=now + order, started=now if pod.started else 0.0), now)
        elif kind in POD_GROUPS:
            cluster.upsert_group(replace(group_of(obj, kind.label), created=now))
        else:
            kind.upsert(cluster, obj, now)

    return show


def _as_it_was(manifest: Manifest, _: float) -> Callable[[Cluster, float], None]:
    """Returns the call that adds an object created before, with its own times."""

    def show(cluster: Cluster, now: float) -> None:
        manifest.kind.upsert(cluster, manifest.obj, now)

    return show


def _taken_at(documents: Iterable[dict[str, Any]]) -> float:
    """Returns when the objects were taken from a cluster: the last time in any of them that is not to come later."""
    times = [time for document in documents if AT not in _annotations(document) for time in _times(document)]
    return max(times, default=START)


def _times(value: Any) -> Iterator[float]:
    """Yields all times in an object, in seconds since the epoch; skips times that cannot be read."""
    if isinstance(value, list):
        for item in value:
            yield from _times(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in _DATES and isinstance(inner, str):
                with suppress(msgspec.ValidationError):
                    yield seconds(msgspec.convert(inner, datetime))
            else:
                yield from _times(inner)


def _annotations(document: dict[str, Any]) -> dict[str, Any]:
    return document["metadata"].get("annotations") or {}
