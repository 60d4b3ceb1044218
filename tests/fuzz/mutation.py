"""Inputs that are nearly right: of bytes alone, chance would hardly ever make an object.

An input is a number of lines, each a JSON document, which a word may stand before.
"""

import json
from random import Random
from typing import Any

AT_MOST = 64_000
"""Bytes of an input."""
QUANTITIES = (
    *("0", "1", "500m", "1.5Gi", "-1", "1n", "0.0001", "1e3", "1E", "1e-9", "1e999999999", "1e-999999999"),
    *("9223372036854775807", "9223372036854775808", "99999999999999999999Ei", "9" * 400, "+1", ".5", "1.", "NaN"),
)
NUMBERS = (
    *(0, 1, -1, 2, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e308),
)
TIMES = (
    "2026-11-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999-23:59",
)
WORDS = (
    *("a", "b", "q", "n1", "n2", "n3", "g", "default", "cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage"),
    *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "NoSchedule", "DoNotSchedule", "Always", "Never"),
    *("True", "False", "Ready", "PodScheduled", "Unschedulable", "Pending", "Running", "Succeeded", "Failed", "Closed"),
    *("zone", "kubernetes.io/hostname", "metadata.name", "quotaward.dev/quota", "Starving", "Reclaim", "pods/p"),
    *("", " ", "\x00", "\u2028", "\ud800", "é" * 40, "x" * 3000, "../..", "<script>", "{{7*7}}", "%s%n", 'a"b\\'),
)
SHAPES: tuple[Any, ...] = (None, True, False, [], {}, [None], [[]], {"": None}, {"a": {}}, [{}])
VALUES: tuple[Any, ...] = (*QUANTITIES, *NUMBERS, *TIMES, *WORDS, *SHAPES)


def mutated(data: bytes, others: list[bytes], chance: Random) -> bytes:
    """The input with some small things changed; ``others`` are inputs of which lines may be taken."""
    lines = data.split(b"\n")
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(lines))
        what = chance.random()
        if what < 0.8:
            lines[at] = _line(lines[at], chance)
        elif what < 0.85:
            lines.insert(at, lines[chance.randrange(len(lines))])
        elif what < 0.9 and len(lines) > 1:
            del lines[at]
        elif what < 0.95:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines.insert(at, chance.choice(chance.choice(others).split(b"\n")))
    return b"\n".join(lines)[:AT_MOST]


def _line(line: bytes, chance: Random) -> bytes:
    start = line.find(b"{")
    try:
        document = json.loads(line[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        document = None
    if document is None or chance.random() < 0.05:
        return _bytes(line, chance)
    return line[:start] + json.dumps(_document(document, chance)).encode()


def _bytes(data: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    length = chance.choice((0, 1, 1, 2, 8))
    put = chance.choice(
        (b"", bytes([chance.randrange(256)]), b'"', b"{", b"[" * 2000, b"\\u0000", b"\xed\xa0\x80", b"1e9")
    )
    return data[:at] + put + data[at + length :]


def _document(document: Any, chance: Random) -> Any:
    places = list(_places(document))
    if not places:
        return chance.choice(VALUES)
    inner, key = chance.choice(places)
    what = chance.random()
    if what < 0.55:
        inner[key] = _instead_of(inner[key], chance)
    elif what < 0.7:
        del inner[key]
    elif what < 0.8:  # something that stands elsewhere
        other, there = chance.choice(places)
        inner[key] = json.loads(json.dumps(other[there]))
    elif what < 0.9 and isinstance(inner, dict):
        inner[str(chance.choice((*WORDS, *QUANTITIES)))] = chance.choice((inner[key], *VALUES))
    elif isinstance(inner, list):
        inner.insert(key, inner[key])
    else:
        inner[key] = [inner[key]]
    return document


def _instead_of(value: Any, chance: Random) -> Any:
    """Mostly something of the same kind, which gets further than what is refused at once."""
    if chance.random() < 0.3:
        return chance.choice(VALUES)
    if isinstance(value, str):
        return chance.choice((*QUANTITIES, *TIMES) if value[:1].isdigit() else WORDS)
    return chance.choice(NUMBERS if isinstance(value, int | float) else SHAPES)


def _places(document: Any) -> Any:
    """Everything in a document: what it stands in, and its key or index there."""
    inside = [document]
    while inside:
        each = inside.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            yield each, key
            inside.append(each[key])
