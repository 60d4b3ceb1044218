"""Checks for annotations, labels and gates that are nearly known keys, and for values without a meaning."""

from collections.abc import Iterator
from typing import Any

from app.checks.finding import Finding, warning
from app.checks.near import nearest
from app.store.heeded import ANNOTATION, CONFUSED, GATE_NAME, KEYS, LABEL, OUR_DOMAINS, Key

_BY_PART = {part: {key.name: key for key in KEYS if key.part == part} for part in (ANNOTATION, LABEL, GATE_NAME)}


def key_findings(where: str, kind: str, document: dict[str, Any]) -> Iterator[Finding]:
    """Checks an object and its pod templates."""
    metadata, spec = document.get("metadata"), document.get("spec")
    if isinstance(metadata, dict):
        for part, field in ((ANNOTATION, "annotations"), (LABEL, "labels")):
            given = metadata.get(field)
            for name, value in given.items() if isinstance(given, dict) else ():
                yield from _of_key(where, kind, part, str(name), value)
    if kind == "Pod" and isinstance(spec, dict):
        yield from _of_gates(where, spec.get("schedulingGates"))
    if kind != "Pod":
        for template in pod_templates(spec):
            yield from key_findings(f"{where}, its pods", "Pod", template)


def pod_templates(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the pod templates anywhere in an object's spec."""
    if isinstance(value, list):
        for item in value:
            yield from pod_templates(item)
    elif isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield value
        else:
            for inner in value.values():
                yield from pod_templates(inner)


def _of_key(where: str, kind: str, part: str, name: str, value: Any) -> Iterator[Finding]:
    known = _BY_PART[part].get(name)
    what = f"{where}: {part} {name}"
    if known is not None:
        if known.kinds and kind not in known.kinds:
            yield warning(f"{what} is only read on {' and '.join(f'{each}s' for each in known.kinds)}")
        elif known.values and value not in known.values:
            yield warning(f"{what}: {value!r} has no meaning: {_values(known)}")
    elif elsewhere := next((other for other, keys in _BY_PART.items() if name in keys), ""):
        yield warning(f"{what} is not read: it must be {_an(elsewhere)}")
    elif name in CONFUSED:
        yield warning(f"{what} {CONFUSED[name]}")
    elif close := nearest(name, (key.name for key in KEYS)):
        yield warning(f"{what} is not read: did you mean {close}?")
    elif name.rpartition("/")[0] in OUR_DOMAINS:
        yield warning(f"{what} is not read: there is no such key")


def _of_gates(where: str, gates: Any) -> Iterator[Finding]:
    names = [gate.get("name") for gate in gates if isinstance(gate, dict)] if isinstance(gates, list) else []
    for name in names:
        if isinstance(name, str) and (close := nearest(name, _BY_PART[GATE_NAME])):
            yield warning(f"{where}: {GATE_NAME} {name} is not known, and nothing opens it: did you mean {close}?")


def _values(key: Key) -> str:
    return f"it must be {' or '.join(f'{chr(34)}{value}{chr(34)}' for value in key.values)}, as text"


def _an(part: str) -> str:
    return f"an {part}" if part[0] in "aeiou" else f"a {part}"
