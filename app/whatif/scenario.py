"""A folder of manifests as a story: when objects come, and for how long pods run, stands in annotations of theirs."""

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from app.settings import Settings
from app.sources import manifests
from app.sources.manifests import Fault, Manifest
from app.store.kinds import KINDS, POD_GROUPS, PODS
from app.store.objects import group_of, pod_of
from policy.cluster import Cluster
from policy.simulation import Simulation
from policy.timeline import START, Arrival, Story, Timeline

AT = "simulation.quotaward.dev/at"
"""When an object comes, after the start; without it, it is there from the start."""
FOR = "simulation.quotaward.dev/for"
"""How long a pod runs once it has started; without it, for ever."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)
_ORDER = {kind.label: number for number, kind in enumerate(KINDS)}


class InvalidDuration(ValueError):
    """The text is no duration."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What comes when, how long pods run by UID, and what is wrong with the folder."""

    arrivals: list[Arrival]
    durations: dict[str, float]
    problems: list[str]


def duration(text: str) -> float:
    """Seconds of a duration like ``90``, ``2m30s`` or ``1d12h``. Raises InvalidDuration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise InvalidDuration(f"{text!r} is not a duration, like 90, 2m30s or 1d12h")
    sizes = (_UNITS["d"], _UNITS["h"], _UNITS["m"], 1)
    return sum(float(part) * size for part, size in zip(match.groups(), sizes, strict=True) if part)


def read(directory: Path) -> Scenario:
    """A folder as a story. Objects of a moment come in the order of kinds, and then as they stand in the folder."""
    folder = manifests.read(directory)
    scenario = Scenario([], {}, [str(problem) for problem in folder.problems])
    for number, manifest in enumerate(sorted(folder.manifests, key=lambda each: _ORDER[each.kind.label])):
        annotations = _annotations(manifest)
        try:
            at = duration(str(annotations[AT])) if AT in annotations else 0.0
            if FOR in annotations:
                scenario.durations[str(manifest.key)] = duration(str(annotations[FOR]))
        except InvalidDuration as error:
            scenario.problems.append(
                str(Fault(manifest.file, 0, f"{manifest.kind.name} {manifest.obj.metadata.name}: {error}"))
            )
            continue
        scenario.arrivals.append(Arrival(at, _shown(manifest, number / 1e6)))
    return scenario


def play(scenario: Scenario, settings: Settings, until: float) -> Generator[None, None, tuple[Story, Cluster]]:
    """What happens in a story, and the cluster as it is in the end."""
    cluster = Cluster(settings.rules, settle_time=0)
    terms = settings.reserve.terms
    timeline = Timeline(Simulation(cluster, terms, START), terms, scenario.arrivals, scenario.durations)
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


def _shown(manifest: Manifest, order: float) -> Callable[[Cluster, float], None]:
    """How an object comes. Created then, if it does not say when; of those that stand first a bit earlier."""
    kind, obj = manifest.kind, manifest.obj
    dated = obj.metadata.creation_timestamp is not None

    def show(cluster: Cluster, now: float) -> None:
        if kind is PODS and not dated:
            cluster.upsert_pod(replace(pod_of(obj), created=now + order), now)
        elif kind in POD_GROUPS and not dated:
            cluster.upsert_group(replace(group_of(obj, kind.label), created=now))
        else:
            kind.upsert(cluster, obj, now)

    return show


def _annotations(manifest: Manifest) -> dict[str, Any]:
    return msgspec.json.decode(manifest.raw)["metadata"].get("annotations") or {}
