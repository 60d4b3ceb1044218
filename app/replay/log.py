"""The jobs of the log of a recorded workload, and the values that all forms of logs have in common."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from policy.objects.quantity import InvalidQuantity, amount_of_milli, to_milli
from policy.simulate.replay import RecordedJob

MOST_PROBLEMS = 20
"""Maximum number of lines that are named because they cannot be read."""
LARGEST = 2**53
"""The largest number that is read; times and durations beyond it are mistakes."""
_CLOCK = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)


class CannotRead(Exception):
    """The log or an option about it cannot be used; the text says why."""


@dataclass(slots=True)
class Log:
    """The jobs of a log, what could not be read, and how many jobs say nothing of what they used or how long they ran.

    ``nodes`` and ``cores``: of the cluster, if the log tells.
    """

    jobs: list[RecordedJob] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    wrong: int = 0
    without_run: int = 0
    nodes: int = 0
    cores: int = 0

    def take(self, line: int, read: Callable[[], RecordedJob | None]) -> None:
        """Adds the job of a line, or counts one that did not run (None), or that cannot be read (ValueError).

        The first lines that cannot be read are named.
        """
        try:
            job = read()
        except ValueError as error:
            self.wrong += 1
            if len(self.problems) < MOST_PROBLEMS:
                self.problems.append(f"line {line}: {error}")
            return
        if job is None:
            self.without_run += 1
        else:
            self.jobs.append(job)


def number(text: str) -> float:
    """Parses a number. Raises ValueError for what is none, or is not finite."""
    value = float(text)
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"{text!r} is out of range")
    return value


def count(text: str) -> int:
    """Parses a number of things, such as pods. Raises ValueError for less than one."""
    value = number(text)
    if value < 1 or value != int(value):
        raise ValueError(f"{text!r} is no number of pods")
    return int(value)


def time(text: str) -> float:
    """Parses seconds, or a date and time (ISO 8601, without a zone UTC), into seconds. Raises ValueError."""
    try:
        return number(text)
    except ValueError:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def duration(text: str) -> float:
    """Parses seconds, or ``[DAYS-][HOURS:]MINUTES:SECONDS``, into seconds. Raises ValueError for less than zero."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        value = number(text)
    else:
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        value = number(str(((days * 24 + hours) * 60 + minutes) * 60 + seconds))
    if value < 0:
        raise ValueError(f"{text!r} is less than zero")
    return value


def amount(resource: str, text: str) -> int:
    """Parses a quantity into an amount. Raises ValueError, also for one below zero."""
    try:
        milli = to_milli(text)
    except InvalidQuantity as error:
        raise ValueError(str(error)) from error
    if milli < 0:
        raise ValueError(f"{text!r} is less than zero")
    return amount_of_milli(resource, milli)
