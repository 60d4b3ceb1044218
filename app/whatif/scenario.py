"""A folder of manifests as a story: when objects come, and for how long pods run, stands in annotations of theirs."""

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from app.settings import Settings
from app.sources import manifests
from app.sources.manifests import Fault, Manifest
from app.store.heeded import AT, FOR
from app.store.kinds import KINDS, POD_GROUPS, PODS
from app.store.objects import group_of, pod_of, seconds
from policy.cluster.cluster import Cluster
from policy.simulate.simulation import Simulation
from policy.simulate.timeline import START, Arrival, Story, Timeline

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)
_DATES = frozenset(
    {"creationTimestamp", "startTime", "startedAt", "finishedAt", "lastTransitionTime", "lastHeartbeatTime"}
)
"""Fields that say when something happened to an object of a cluster."""
_ORDER = {kind.label: number for number, kind in enumerate(KINDS)}


class InvalidDuration(ValueError):
    """The text is no duration."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What comes when, how long pods run by UID, and what is wrong with the folder.

    ``start`` is the time of its beginning, in seconds since the epoch: that at which the objects were taken from a
    cluster, as far as they tell, so that what has waited there has waited for as long here.
    """

    arrivals: list[Arrival]
    durations: dict[str, float]
    problems: list[str]
    start: float = START


def duration(text: str) -> float:
    """Seconds of a duration like ``90``, ``2m30s`` or ``1d12h``. Raises InvalidDuration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise InvalidDuration(f"{text!r} is not a duration, like 90, 2m30s or 1d12h")
    sizes = (_UNITS["d"], _UNITS["h"], _UNITS["m"], 1)
    return sum(float(part) * size for part, size in zip(match.groups(), sizes, strict=True) if part)


def read(directory: Path, legacy: str = "auto") -> Scenario:
    """A folder as a story. Objects of a moment come in the order of kinds, and then as they stand in the folder."""
    folder = manifests.read(directory, legacy)
    problems = [str(problem) for problem in folder.problems]
    documents = [msgspec.json.decode(manifest.raw) for manifest in folder.manifests]
    scenario = Scenario([], {}, problems, _taken_at(documents))
    found = zip(folder.manifests, documents, strict=True)
    for number, (manifest, document) in enumerate(sorted(found, key=lambda each: _ORDER[each[0].kind.label])):
        annotations = _annotations(document)
        try:
            at = duration(str(annotations[AT])) if AT in annotations else 0.0
            if FOR in annotations:
                scenario.durations[str(manifest.key)] = duration(str(annotations[FOR]))
        except InvalidDuration as error:
            scenario.problems.append(
                str(Fault(manifest.file, 0, f"{manifest.kind.name} {manifest.obj.metadata.name}: {error}"))
            )
            continue
        show = _anew if AT in annotations or manifest.obj.metadata.creation_timestamp is None else _as_it_was
        scenario.arrivals.append(Arrival(at, show(manifest, number / 1e6), manifest.kind is PODS))
    return scenario


def play(scenario: Scenario, settings: Settings, until: float) -> Generator[None, None, tuple[Story, Cluster]]:
    """What happens in a story, and the cluster as it is in the end."""
    cluster = Cluster(settings.rules, settle_time=0)
    terms = settings.reserve.terms
    timeline = Timeline(Simulation(cluster, terms, scenario.start), terms, scenario.arrivals, scenario.durations)
    yield from timeline.play(until)
    return timeline.story, cluster


def standing(arrivals: Iterable[Arrival], settings: Settings, epoch: float) -> Cluster:
    """A cluster where all of this is there already."""
    cluster = Cluster(settings.rules, settle_time=0)
    for arrival in arrivals:
        arrival.show(cluster, epoch)
    for _ in cluster.divide():
        pass
    return cluster


def _anew(manifest: Manifest, order: float) -> Callable[[Cluster, float], None]:
    """How an object comes that is created then; of those of a moment the ones that stand first a bit earlier."""
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
    """How an object comes that was created before, and says when."""

    def show(cluster: Cluster, now: float) -> None:
        manifest.kind.upsert(cluster, manifest.obj, now)

    return show


def _taken_at(documents: Iterable[dict[str, Any]]) -> float:
    """When the objects were taken from a cluster: the last time that any of them names. What comes later says so."""
    times = [time for document in documents if AT not in _annotations(document) for time in _times(document)]
    return max(times, default=START)


def _times(value: Any) -> Iterator[float]:
    """All times in an object, in seconds since the epoch; what cannot be read is none."""
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
