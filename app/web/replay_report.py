"""The report of a replay: one HTML page without scripts, which needs no other file."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from app.amounts import amount
from app.replay.course import Course
from app.web.plots import Line, Plot, area_path
from app.web.rendering import environment, rounded_duration


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of texts: the columns, and rows of as many cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the report about one policy: a note, the course, and a row for each team."""

    note: str
    course: Course
    teams: Rows


def page(log: str, policies: Rows, parts: Sequence[Part]) -> str:
    """Returns the report of a log that was played with some policies, of which each has a part."""
    style = Markup((files("app.web") / "static/page.css").read_text(encoding="utf-8"))  # noqa: S704 - it is ours
    most = max((number for part in parts for number in part.course.waiting), default=0)
    drawn = [
        (part, (_of_use(part.course), _of_waiting(part.course, most)), rounded_duration(part.course.length))
        for part in parts
    ]
    return environment().get_template("replay.html").render(style=style, log=log, policies=policies, parts=drawn)


def _of_use(course: Course) -> Plot:
    mean = sum(course.used) / max(1, len(course.used) * course.capacity)
    return _plot(
        f"Used {course.resource}",
        "used",
        course.used,
        course.capacity,
        f"{mean:.1%} on average",
        amount(course.resource, course.capacity),
    )


def _of_waiting(course: Course, most: int) -> Plot:
    """Draws the jobs that waited; ``most`` is the largest number with any policy, so that plots can be compared."""
    return _plot("Waiting jobs", "waiting", course.waiting, most, f"{max(course.waiting)} at most", str(most))


def _plot(title: str, kind: str, series: tuple[int, ...], top: int, says: str, top_says: str) -> Plot:
    line = Line("", kind, "".join(area_path(series, max(1, top))), says)
    return Plot(title, len(series), top_says, (line,), f"{title}: {says}")
