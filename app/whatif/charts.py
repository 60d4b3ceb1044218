"""A story as a chart, as text or as a page: a row per pod over time, and the use of quotas and queues."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from app.inert import inert
from policy.objects.quantity import render
from policy.objects.resources import Resources
from policy.simulate.timeline import Life, Moment, Story

WAITS, RESERVED, RUNS = "·", "▒", "█"
LEVELS = " ▁▂▃▄▅▆▇█"
LEGEND = f"{WAITS} waits   {RESERVED} a node is reserved for it   {RUNS} runs   x evicted"
COLOURS = {WAITS: "#c9c9c9", RESERVED: "#e0a030", RUNS: "#3572b0"}
HIDDEN = ("pods", "ephemeral-storage")
ROW, LABEL, LONG = 18, 190, 720
"""Sizes of the page in pixels: the height of a row, and the widths of names and of bars."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of a resource over time, by a quota or a queue."""

    name: str
    resource: str
    amounts: tuple[tuple[float, int], ...]

    @property
    def most(self) -> int:
        """The largest amount."""
        return max(amount for _, amount in self.amounts)


def text_chart(story: Story, width: int) -> list[str]:
    """Returns the lines of a chart of this many characters."""
    names = [life.pod.title for life in story.lives.values()]
    used = usages(story.moments)
    label = max((len(name) for name in [*names, *(_label(each) for each in used)]), default=0) + 1
    columns, length = max(20, width - label), story.length or 1.0
    lines = [" " * label + _axis(length, columns)]
    lines += [f"{life.pod.title:{label}}{_bar(life, length, columns)}" for life in story.lives.values()]
    lines += ["", LEGEND, ""]
    lines += [f"{_label(each):{label}}{_sparkline(each, length, columns)}" for each in used]
    return [line.rstrip() for line in lines]


def page(story: Story, title: str) -> str:
    """Returns the chart as a page, without anything from elsewhere."""
    length, lives = story.length or 1.0, list(story.lives.values())
    used = usages(story.moments)
    height = ROW * (len(lives) + 3 * len(used) + 3)
    parts = [
        f'<text x="{LABEL + LONG * tick / 4:.0f}" y="12" text-anchor="middle">{time_text(length * tick / 4)}</text>'
        for tick in range(5)
    ]
    for number, life in enumerate(lives, start=1):
        top = ROW * number
        parts.append(f'<text x="0" y="{top + 13}">{_escaped(life.pod.title)}</text>')
        parts += [
            f'<rect x="{LABEL + LONG * start / length:.1f}" y="{top + 2}"'
            f' width="{max(1, LONG * (end - start) / length):.1f}"'
            f' height="{ROW - 4}" fill="{COLOURS[state]}">{_title(_told(life, state, start, end))}</rect>'
            for state, start, end in _phases(life, length)
            if end > start or state == _last_state(life)
        ]
        if life.end == "evicted" and life.ended is not None:
            parts.append(f'<text x="{LABEL + LONG * life.ended / length:.0f}" y="{top + 13}">✕</text>')
    for number, each in enumerate(used):
        bottom = ROW * (len(lives) + 3 * number + 4) - 4
        parts.append(f'<text x="0" y="{bottom}">{_escaped(_label(each))}</text>')
        parts.append(f'<polyline points="{_corners(each, length, bottom)}" fill="none" stroke="{COLOURS[RUNS]}"/>')
    body, name = "\n".join(parts), _escaped(title)
    attributes = f'width="{LABEL + LONG + 40}" height="{height}" role="img" aria-label="{name}"'
    return "\n".join(
        (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>',
            f"<h1>{name}</h1>",
            f'<svg {attributes} font-family="sans-serif" font-size="12">',
            f"{body}\n</svg>",
            f"<p>{_escaped(LEGEND)}</p></html>\n",
        )
    )


def usages(moments: Sequence[Moment]) -> list[Usage]:
    """Returns the use of each resource that is used of a quota or a queue at some time."""
    found = list(_usages("", [(moment.at, moment.quotas) for moment in moments]))
    return found + list(_usages("queue ", [(moment.at, moment.queues) for moment in moments]))


def _usages(prefix: str, moments: Sequence[tuple[float, Mapping[str, Resources]]]) -> Iterator[Usage]:
    names = sorted({(name, resource) for _, of in moments for name, used in of.items() for resource in used})
    for name, resource in names:
        if resource not in HIDDEN:
            amounts = tuple((at, of.get(name, {}).get(resource, 0)) for at, of in moments)
            yield Usage(prefix + name, resource, amounts)


def _phases(life: Life, length: float) -> Iterator[tuple[str, float, float]]:
    """Yields the phases of a pod with their start and end."""
    end = length if life.ended is None else life.ended
    started = end if life.started is None else life.started
    reserved = started if life.reserved is None else life.reserved
    yield WAITS, life.created, reserved
    yield RESERVED, reserved, started
    yield RUNS, started, end


def _last_state(life: Life) -> str:
    """Returns the last phase of a pod; it is drawn even if the pod came only at the end."""
    if life.started is not None:
        return RUNS
    return WAITS if life.reserved is None else RESERVED


def _bar(life: Life, length: float, columns: int) -> str:
    cells = [" "] * columns
    for state, start, end in _phases(life, length):
        first, last = min(columns - 1, round(start / length * columns)), round(end / length * columns)
        if end > start or state == _last_state(life):
            cells[first : max(last, first + 1)] = [state] * (max(last, first + 1) - first)
    if life.end == "evicted" and life.ended is not None:
        cells[min(columns - 1, round(life.ended / length * columns))] = "x"
    return "".join(cells)


def _sparkline(usage: Usage, length: float, columns: int) -> str:
    most = usage.most or 1
    cells = []
    for column in range(columns):
        at = (column + 0.5) / columns * length
        amount = next((used for since, used in reversed(usage.amounts) if since <= at), 0)
        cells.append(LEVELS[-(-amount * (len(LEVELS) - 1) // most)])
    return "".join(cells)


def _corners(usage: Usage, length: float, bottom: int) -> str:
    points, height, most = [], 2 * ROW, usage.most or 1
    for (at, amount), (after, _) in zip(usage.amounts, [*usage.amounts[1:], (length, 0)], strict=True):
        level = bottom - height * amount / most
        points += [f"{LABEL + LONG * when / length:.1f},{level:.1f}" for when in (at, after)]
    return " ".join(points)


def _axis(length: float, columns: int) -> str:
    """Returns the times above the columns, as many as fit."""
    ticks = max(1, min(4, columns // 14)) if length > 1 else 1
    line = [" "] * (columns + 10)
    for tick in range(ticks):
        for offset, letter in enumerate(time_text(length * tick / ticks)):
            line[round(columns * tick / ticks) + offset] = letter
    return "".join(line).rstrip()


def time_text(seconds: float) -> str:
    """Formats seconds in fitting units: ``0s``, ``90s``, ``5m``, ``1d 12h``."""
    whole = round(seconds)
    if whole < 120:  # noqa: PLR2004
        return f"{whole}s"
    days, hours, minutes = whole // 86400, whole % 86400 // 3600, whole % 3600 // 60
    if days:
        return f"{days}d {hours}h" if hours else f"{days}d"
    return (f"{hours}h {minutes}m" if minutes else f"{hours}h") if hours else f"{minutes}m"


def _title(text: str) -> str:
    return f"<title>{_escaped(text)}</title>"


def _told(life: Life, state: str, start: float, end: float) -> str:
    what = {WAITS: "waits", RESERVED: "a node is reserved for it", RUNS: f"runs on {life.node}"}[state]
    return f"{life.pod.title} {what}, {time_text(start)} to {time_text(end)}"


def _label(usage: Usage) -> str:
    return f"{usage.name} {usage.resource} (peak {render(usage.resource, usage.most)})"


def _escaped(text: str) -> str:
    """Escapes text for a page."""
    return escape(inert(text))
