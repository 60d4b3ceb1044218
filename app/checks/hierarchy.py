"""Converts Volcano's older form of a tree, annotations of queues, to ``spec.parent``.

A queue was annotated with the way to it, ``root/eng/prod``, and the weights on the way, ``1/2/8``. Only the last place
was a Queue. Here each place is one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from app.checks.documents import of_all
from app.store.metadata import LONGEST_NAME
from policy.objects.queue import LARGEST_WEIGHT, ROOT

WAY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
Json = dict[str, Any]


@dataclass(slots=True)
class Converted:
    """The queues to apply, those above others first, and what people should look at."""

    queues: list[Json] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def converted(directory: Path) -> Converted:
    """Returns the queues of a folder that have such an annotation, with ``spec.parent`` instead, and those above."""
    given = {_name(each.content): each.content for each in of_all(directory) if each.kind == "Queue"}
    ways = {name: _parts(queue, WAY) for name, queue in sorted(given.items()) if _parts(queue, WAY)}
    found, named = Converted(), {tuple(way): name for name, way in ways.items()}
    weights = _weights(given, ways, found)
    for way in ways.values():
        for end in range(1, len(way)):
            if tuple(way[:end]) not in named:
                named[tuple(way[:end])] = _free("-".join(way[:end]), {*given, *named.values()})
    for place in sorted(named, key=lambda place: (len(place), place)):
        queue = given.get(named[place]) if place in map(tuple, ways.values()) else None
        found.queues.append(_queue(named[place], queue, named.get(place[:-1], ROOT), weights[place]))
    for name in sorted(given.keys() - ways.keys()) if ways else ():
        if not isinstance(given[name].get("spec"), dict) or not given[name]["spec"].get("parent"):
            found.remarks.append(f"Queue {name} has no annotation {WAY}: it stands right below the root, as before")
    return found


def as_yaml(found: Converted) -> str:
    """Returns manifests of the queues, with the remarks as comments above."""
    remarks = "".join(f"# {remark}\n" for remark in found.remarks)
    return remarks + yaml.safe_dump_all(found.queues, sort_keys=False)


def _weights(given: dict[str, Json], ways: dict[str, list[str]], found: Converted) -> dict[tuple[str, ...], int]:
    """Returns the weight at each place; remarks where queues do not agree about it."""
    weights: dict[tuple[str, ...], int] = {}
    for name, way in ways.items():
        said = [_weight(each) for each in _parts(given[name], WEIGHTS)]
        said += [1] * (len(way) - len(said))
        for end, weight in enumerate(said[: len(way)], start=1):
            if weights.setdefault(tuple(way[:end]), weight) != weight:
                place = "/".join((ROOT, *way[:end]))
                text = f"Queue {name} gives {place} the weight {weight}, another one {weights[tuple(way[:end])]}"
                found.remarks.append(f"{text}: the latter is taken")
    return weights


def _queue(name: str, before: Json | None, parent: str, weight: int) -> Json:
    metadata: Json = dict(before["metadata"]) if before is not None else {"name": name}
    kept = {key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key not in (WAY, WEIGHTS)}
    spec = before.get("spec") if before is not None else None
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata | ({"annotations": kept} if kept else {}),
        "spec": (spec if isinstance(spec, dict) else {}) | {"weight": weight, "parent": parent},
    }


def _parts(queue: Json, key: str) -> list[str]:
    """Returns the parts of an annotation below the root; none where it is missing or unreadable."""
    metadata = queue.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(key) if isinstance(annotations, dict) else None
    return [part for part in text.split("/")[1:] if part] if isinstance(text, str) else []


def _weight(text: str) -> int:
    """Returns a weight as a whole number of at least 1, as it is read here; 1 for what is no number."""
    try:
        return max(1, min(round(float(text)), LARGEST_WEIGHT))
    except (ValueError, OverflowError):
        return 1


def _free(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    return next(each for each in _variants(name[: LONGEST_NAME - 8]) if each not in names)


def _variants(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _name(queue: Json) -> str:
    metadata = queue.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""
