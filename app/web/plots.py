"""Plots of the last day: lines and areas over time, as the paths of an SVG, with the same in words and as a table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from app.amounts import amount
from app.history.reading import Period, Series, Story, period_of, story_of
from app.history.recorder import DESERVED, MAX, MIN, USED, Name, Recorder
from app.history.rows import MINUTES
from app.times import rfc3339

STEP = 5
"""Minutes of a step of a plot."""
HOUR = 60
SHOWN = 4
"""Maximum number of resources that are plotted, the scarcest first."""
HEIGHT = 100
"""Height of a plot in its own units; it is as wide as it has steps."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line or area of a plot: ``kind`` is its class, ``path`` the data of an SVG path."""

    name: str
    kind: str
    path: str
    last: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over the same time. ``words`` says what they show."""

    title: str
    width: int
    top: str
    lines: tuple[Line, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Happened:
    """The last day of a queue or quota: plots, and a table by the hour. Times are in RFC 3339."""

    since: str
    counted_since: str
    evictions_since: str
    lacking: str
    plots: tuple[Plot, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def happened(recorder: Recorder, name: Name, own: str, most: str, scarce: Callable[[str], float]) -> Happened | None:
    """Draws the history of a queue or quota; None if there is none yet.

    ``own`` and ``most`` are what the page calls its bounds. The resources for which ``scarce`` is largest come first.
    """
    if name not in recorder.recorded:
        return None
    fine = story_of(recorder, name, period_of(recorder, MINUTES, STEP))
    period = period_of(recorder, MINUTES, HOUR)
    resources = sorted(fine.resources, key=lambda resource: (-scarce(resource), resource))[:SHOWN]
    plots = [_of_resource(fine, resource, own, most) for resource in resources]
    plots.append(_of_numbers("Waiting pods", (("waiting", "waiting", fine.waiting),)))
    refused = _sum(fine.refused.values(), fine.evicted)
    events = (("admitted", "kept", fine.admitted), ("refused", "waiting", refused), ("evicted", "beyond", fine.evicted))
    plots += [_of_numbers(f"Pods {title}", ((title, kind, series),)) for title, kind, series in events]
    coarse = story_of(recorder, name, period)
    columns, rows = _table(coarse, resources, period)
    minutes = recorder.since, recorder.counted_since, recorder.evictions_since
    since, counted, evictions = (rfc3339(minute * 60) for minute in minutes)
    return Happened(since, counted, evictions, "; ".join(recorder.all_lacking), tuple(plots), columns, rows)


def _of_resource(story: Story, resource: str, own: str, most: str) -> Plot:
    series = story.resources[resource]
    own_figure = DESERVED if DESERVED in series else MIN
    used, mine, limit = series[USED], series.get(own_figure, ()), series.get(MAX, ())
    guaranteed = series.get(MIN, ()) if own_figure == DESERVED else ()
    top = max((value for value in (*used, *mine, *guaranteed) if value is not None), default=0)
    highest = max((value for value in limit if value is not None), default=0)
    is_near = highest <= top * 4 or own_figure == MIN  # the limit of a queue is often the whole cluster
    top = max(ceil(top * 1.1), highest if is_near else 0, 1)
    drawn = [("used", "used", used), (own, "own", mine), ("guaranteed", "kept", guaranteed)]
    drawn += [(most, "limit", limit)] if is_near else []
    lines = _lines(drawn, top, lambda value: amount(resource, value))
    return Plot(resource, len(used), amount(resource, top), lines, _words(resource, used, lines, resource))


def _of_numbers(title: str, drawn: tuple[tuple[str, str, Series], ...]) -> Plot:
    numbers = drawn[0][2]
    top = max([1, *(value for _, _, series in drawn for value in series if value is not None)])
    lines = _lines(list(drawn), top, str, area=True)
    return Plot(title, len(numbers), str(top), lines, _words(title, numbers, lines, ""))


def _lines(
    drawn: list[tuple[str, str, Series]], top: int, text: Callable[[int], str], *, area: bool = False
) -> tuple[Line, ...]:
    found = list[Line]()
    for name, kind, series in drawn:
        known = [value for value in series if value is not None]
        if known and (any(known) or kind in ("used", "limit") or area):
            path = "".join(area_path(series, top) if area or kind == "used" else _outline(series, top))
            found.append(Line(name, kind, path, text(known[-1])))
    return tuple(found)


def _words(title: str, series: Series, lines: tuple[Line, ...], resource: str) -> str:
    """Says in words what a plot shows."""
    known = [value for value in series if value is not None]
    if not known:
        return f"{title}: nothing is known"
    highest = amount(resource, max(known)) if resource else str(max(known))
    return f"{title}: highest {highest}; now {', '.join(f'{line.name} {line.last}' for line in lines)}"


def _height(value: int, top: int) -> str:
    return f"{HEIGHT - HEIGHT * min(value, top) / top:.1f}".removesuffix(".0")


def _runs(series: Series) -> Iterator[tuple[int, int, int]]:
    """Yields the stretches of equal known values: the first step, the step after it, and the value."""
    begin = 0
    for index in range(1, len(series) + 1):
        if index == len(series) or series[index] != series[begin]:
            value = series[begin]
            if value is not None:
                yield begin, index, value
            begin = index


def _outline(series: Series, top: int) -> Iterator[str]:
    """Yields the path of a line in steps, with gaps where nothing is known."""
    before = -1
    for begin, end, value in _runs(series):
        yield f"V{_height(value, top)}H{end}" if begin == before else f"M{begin} {_height(value, top)}H{end}"
        before = end


def area_path(series: Series, top: int) -> Iterator[str]:
    """Yields the path of the area below a line."""
    before = -1
    for begin, end, value in _runs(series):
        if begin != before:
            yield f"{f'V{HEIGHT}Z' if before >= 0 else ''}M{begin} {HEIGHT}"
        yield f"V{_height(value, top)}H{end}"
        before = end
    if before >= 0:
        yield f"V{HEIGHT}Z"


def _sum(parts: Iterable[Series], like: Series) -> Series:
    """Adds up refusals by all rules; where ``like`` is not known, they are not known either."""
    rows = list(parts)
    return tuple(None if known is None else sum(row[index] or 0 for row in rows) for index, known in enumerate(like))


def _table(story: Story, resources: list[str], period: Period) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Makes a table by the hour, the latest first, without hours of which nothing is known."""
    columns = ("From", *resources, "Waiting", "Admitted", "Refused", "Evicted")
    refused = _sum(story.refused.values(), story.evicted)
    numbers = (story.waiting, story.admitted, refused, story.evicted)
    rows = list[tuple[str, ...]]()
    for index, minute in reversed(list(enumerate(period.starts))):
        used = [story.resources[resource][USED][index] for resource in resources]
        values = [series[index] for series in numbers]
        if any(value is not None for value in (*used, *values)):
            amounts = [
                "" if value is None else amount(name, value) for name, value in zip(resources, used, strict=True)
            ]
            rows.append((rfc3339(minute * 60), *amounts, *("" if value is None else str(value) for value in values)))
    return columns, tuple(rows)
