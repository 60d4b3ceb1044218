"""Reads the history of a queue or quota in steps of some minutes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from app.history.recorder import (
    ADMITTED,
    DESERVED,
    EVICTED,
    MAX,
    MIN,
    REFUSED,
    RESERVED,
    USED,
    WAITING,
    Name,
    Recorded,
    Recorder,
    bound_at,
)
from app.history.rows import MINUTES, Values, between, highest, latest, sums

Amount = int | None
Series = tuple[Amount, ...]
"""A value for each step, None where it is not known, or there is no limit."""
OF_RESOURCES = (USED, DESERVED, MIN, MAX)


@dataclass(frozen=True, slots=True)
class Period:
    """Steps of so many minutes, from a minute on (minutes since the epoch)."""

    first: int
    step: int
    steps: int

    @property
    def minutes(self) -> int:
        """The number of minutes."""
        return self.step * self.steps

    @property
    def starts(self) -> range:
        """The first minute of each step."""
        return range(self.first, self.first + self.minutes, self.step)


@dataclass(frozen=True, slots=True)
class Story:
    """The history of a queue or quota in the steps of a period.

    ``resources`` has by resource the highest ``used`` and the latest bounds, as far as any is known. ``waiting`` is the
    highest number of pods. The rest are numbers of events.
    """

    name: Name
    title: str
    resources: dict[str, dict[str, Series]]
    waiting: Series
    admitted: Series
    evicted: Series
    reserved: Series
    refused: dict[str, Series]


def period_of(recorder: Recorder, minutes: int, step: int) -> Period:
    """Returns the latest steps that cover these minutes up to now, at most a day; the last is the present minute's."""
    steps = -(-min(minutes, MINUTES) // step)
    return Period(recorder.minute + 1 - steps * step, step, steps)


@dataclass(frozen=True, slots=True)
class BoundChange:
    """A limit that has changed: when (a minute since the epoch), which, and its values; None for no limit."""

    minute: int
    figure: str
    resource: str
    before: Amount
    after: Amount


def changes_of(recorder: Recorder, name: Name) -> Iterator[BoundChange]:
    """Yields the changes of limits of a queue or quota that were seen in the last day."""
    each = recorder.recorded.get(name, Recorded(0))
    for (figure, resource), changes in each.bounds.items():
        for (_, before), (minute, after) in pairwise(changes):
            if minute > recorder.minute - MINUTES:
                yield BoundChange(minute, figure, resource, before, after)


def story_of(recorder: Recorder, name: Name, period: Period) -> Story:
    """Reads the history of a queue or quota; that of an unknown one has nothing in it."""
    each = recorder.recorded.get(name, Recorded(0))
    resources: dict[str, dict[str, Series]] = {}
    for figure in OF_RESOURCES:
        for kind, resource in each.rows:
            if kind == figure:
                values = _cut(recorder, each.rows[kind, resource], period)
                found = highest(values, period.step) if figure == USED else latest(values, period.step)
                resources.setdefault(resource, {})[figure] = _series(found)
        for (kind, resource), changes in each.bounds.items():
            if kind == figure and resource in resources:
                ends = (min(start + period.step - 1, recorder.minute) for start in period.starts)
                resources[resource][figure] = tuple(bound_at(changes, ends))
    waiting = each.rows.get((WAITING, ""))
    admitted, evicted, reserved = (
        _events(recorder, each.rows.get((figure, "")), period) for figure in (ADMITTED, EVICTED, RESERVED)
    )
    refused = {rule: _events(recorder, row, period) for (figure, rule), row in _keys(each) if figure == REFUSED}
    most = _series(highest(_cut(recorder, waiting, period), period.step))
    return Story(name, each.title, resources, most, admitted, evicted, reserved, refused)


def _keys(each: Recorded) -> list[tuple[tuple[str, str], Values]]:
    return sorted(each.rows.items(), key=lambda item: item[0])


def _cut(recorder: Recorder, row: Values | None, period: Period) -> Values:
    """Returns the values of a period, NaN for minutes that are not in the rows any more."""
    values = np.full(period.minutes, np.nan, dtype=np.float32)
    oldest = max(period.first, recorder.minute - MINUTES + 1)
    if row is not None:
        number = period.first + period.minutes - oldest
        values[oldest - period.first :] = between(row, oldest, number)
    return values


def _events(recorder: Recorder, row: Values | None, period: Period) -> Series:
    known = np.zeros(period.minutes, dtype=np.bool_)
    oldest = max(period.first, recorder.minute - MINUTES + 1)
    begin = oldest % MINUTES
    rolled = np.concatenate((recorder.known[begin:], recorder.known[:begin]))
    known[oldest - period.first :] = rolled[: period.first + period.minutes - oldest]
    return _series(sums(_cut(recorder, row, period), known, period.step))


def _series(values: Any) -> Series:
    return tuple(None if value != value else round(value) for value in values.tolist())  # noqa: PLR0124 - NaN
