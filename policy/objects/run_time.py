"""How long pods run, as far as somebody says so: in which form it is said, and what follows from all that is said.

Times that objects say are whole seconds. 0 (``NOT_SAID``): the object says none. Below 0 (``UNREADABLE``): it says
something that nobody can read. Then nobody knows what its author meant, and no time that is only said counts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from policy.objects.conditions import Condition

RUN_TIME = "quotaward.dev/run-time"
MIN_RUN_TIME = "quotaward.dev/min-run-time"
MAX_RUN_TIME = "quotaward.dev/max-run-time"
"""The annotations, as people are told of them too: how long pods run, at least, and at most."""
NOT_SAID, UNREADABLE = 0, -1
LONGEST = 2**31 - 1
"""The most seconds that count, some 68 years: a longer time is cut to it."""
MOST_CHARACTERS = 64
"""A longer text is not read."""
FORM = "a time like 90m, 2h30m or PT2H30M"
"""A readable text, as people are told of it."""

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_SHORT = re.compile(rf"{_NUMBER}(ns|us|µs|μs|ms|s|m|h|d)", re.ASCII)
_SIZES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
_ISO = re.compile(
    r"P(?:(\d+)W|(?:(\d+)D)?(?:T(?=\d)(?:(\d+(?:[.,]\d+)?)H)?(?:(\d+(?:[.,]\d+)?)M)?(?:(\d+(?:[.,]\d+)?)S)?)?)",
    re.ASCII,
)
_ISO_SIZES = (7 * 86400, 86400, 3600, 60, 1)


def seconds_of(text: str) -> int:
    """Returns the seconds that a text says, rounded up: the form of Go (``2h30m``, and days), or ISO 8601.

    Returns ``UNREADABLE`` for any other text, and for no time at all. Years and months have no certain length.
    """
    if len(text) > MOST_CHARACTERS:
        return UNREADABLE
    text = text.strip()
    iso = _ISO.fullmatch(text)
    if iso is not None:
        parts = zip(iso.groups(), _ISO_SIZES, strict=True)
        found = sum(float(part.replace(",", ".")) * size for part, size in parts if part)
    else:
        pieces = list(_SHORT.finditer(text))
        if "".join(piece.group() for piece in pieces) != text:
            return UNREADABLE
        found = sum(float(piece.group(1)) * _SIZES[piece.group(2)] for piece in pieces)
    return min(max(1, ceil(round(found, 9))), LONGEST) if found > 0 else UNREADABLE


def text_of(seconds: int) -> str:
    """Returns a time as people write it, which can be read again: ``2h30m``."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    return "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number) or "0s"


def of_all(times: Iterable[int]) -> int:
    """Returns the time after which all of several pods have ended; none if one of them says none."""
    said = list(times)
    if not said or UNREADABLE in said:
        return UNREADABLE if said else NOT_SAID
    return max(said) if NOT_SAID not in said else NOT_SAID


Key = tuple[str, str]
"""Namespace and name of an elastic quota; an empty namespace and the name of a queue."""


def keep_last(times: dict[Key, int] | dict[Key, float], key: Key, seconds: int) -> None:
    """Notes the time of a quota or a queue. If it cannot be read, the last one that could be stays in force."""
    if seconds > 0:
        times[key] = seconds
    elif seconds != UNREADABLE:
        times.pop(key, None)


def conditions(run_time: int, min_run_time: int, max_run_time: int) -> list[Condition]:
    """Returns the conditions of a Queue or an ElasticQuota about its times: what cannot be read, or cannot be."""
    found = []
    if run_time == UNREADABLE:
        message = f"annotation {RUN_TIME} is not {FORM}; it counts for nothing"
        found.append(Condition("RunTimeInvalid", "Unreadable", message))
    stays = f"is not {FORM}; the last one that could be read stays in force"
    if min_run_time == UNREADABLE:
        message = f"annotation {MIN_RUN_TIME} {stays}; without one, no pod is evicted for others until it can be read"
        found.append(Condition("MinRunTimeInvalid", "Unreadable", message))
    if max_run_time == UNREADABLE:
        message = f"annotation {MAX_RUN_TIME} {stays}, if there was one"
        found.append(Condition("MaxRunTimeInvalid", "Unreadable", message))
    if min_run_time > max_run_time > 0:
        message = f"annotation {MIN_RUN_TIME} exceeds {MAX_RUN_TIME}; both are in force"
        found.append(Condition("Invalid", "MinRunTimeExceedsMax", message))
    return found


@dataclass(frozen=True, slots=True)
class RunTime:
    """How long a pod runs at most, its grace period not included.

    ``since`` is when its Job has started if it counts from then, in seconds since the epoch; 0 if it counts from the
    start of the pod.
    """

    seconds: int
    since: float = 0.0
