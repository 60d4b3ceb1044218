"""``quotaward replay``: plays a recorded workload with one policy or several, and prints a summary of each."""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from app.cli_output import console, table_of
from app.replay import swf, tables
from app.replay.course import Course, course
from app.replay.log import CannotRead, Log
from app.replay.player import Manner, Played, Player, Policy, Window, in_window, jittered, nodes_of, parse_nodes
from app.replay.summary import Summary, Team, Waits, recorded, summary
from app.settings import Settings
from app.web import replay_report
from app.web.replay_report import Rows
from policy.simulate.replay import RecordedJob

FORMATS = {".swf": "swf", ".csv": "csv"}
"""The form of a log by the end of its name; every other one is taken for what sacct prints."""
WAITS = ("WAIT", "P50", "P95", "MAX", "SLOWDOWN")
"""Columns of waits."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The question: the options of the command; see ``quotaward replay --help``."""

    log: Path
    policies: Sequence[Path]
    form: str
    columns: Sequence[str]
    team: str
    nodes: str
    pod_cores: int
    begin: float | None
    end: float | None
    manner: Manner
    runs: int
    jitter: float
    time_limit: float


def read(asked: Asked) -> Log:
    """Reads the log. Raises CannotRead."""
    form = asked.form or FORMATS.get(asked.log.suffix.lower(), "sacct")
    columns = {}
    for each in asked.columns:
        name, equals, column = each.partition("=")
        if not (name and equals and column):
            raise CannotRead(f"--column: {each!r} must be NAME=COLUMN, like submit=queued_at")
        columns[name] = column
    try:
        with asked.log.open(encoding="utf-8", newline="") as lines:
            if form == "swf":
                if (team := asked.team or "user") not in swf.TEAMS:
                    raise CannotRead(f"--team: {team!r} must be one of {', '.join(swf.TEAMS)}")
                return swf.read(lines, team, asked.pod_cores)
            if form == "csv":
                return tables.read_csv(lines, columns, asked.team)
            return tables.read_sacct(lines, asked.team)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CannotRead(f"{asked.log} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Answer:
    """A summary and the course of each policy, the jobs that were played, and the problems of policies."""

    summaries: list[Summary]
    courses: list[Course]
    jobs: list[RecordedJob]
    problems: list[str]


def play(asked: Asked, log: Log, settings: Settings) -> Answer:
    """Plays the log with each policy.

    Raises CannotRead, InvalidSettings and PingPong.
    """
    origin = min((job.submitted for job in log.jobs), default=0.0)
    window = Window(
        origin + asked.begin if asked.begin is not None else -math.inf,
        origin + asked.end if asked.end is not None else math.inf,
    )
    jobs = in_window(log.jobs, window)
    if not jobs:
        raise CannotRead("no jobs are in the log, or in the window of --from and --to, of which it says how they ran")
    nodes = parse_nodes(asked.nodes) if asked.nodes else nodes_of(log)
    player = Player(settings, nodes, asked.manner, window)
    policies = [Policy(each.name or str(each), each) for each in asked.policies] or [Policy("none", None)]
    screen, summaries, courses = Console(stderr=True), list[Summary](), list[Course]()
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
        for policy in policies:
            runs = list[Played]()
            for run in range(asked.runs):
                task = bar.add_task(f"{policy.name} {run + 1}/{asked.runs}", total=1.0)
                moved = jittered(jobs, asked.jitter, run)
                runs.append(player.play(policy, moved, asked.time_limit, _follow(bar, task)))
                bar.remove_task(task)
            summaries.append(summary(runs))
            courses.append(course(runs[0], summaries[-1].resource))
    return Answer(summaries, courses, jobs, player.problems)


def _follow(bar: Progress, task: Any) -> Callable[[float], None]:
    return lambda part: bar.update(task, completed=part)


def print_summaries(answer: Answer, output: str) -> None:
    """Prints summaries as a table, JSON or CSV, with the waits as they were recorded first."""
    summaries, waits = answer.summaries, recorded(answer.jobs)
    if output == "json":
        print(json.dumps({"recorded": _rounded(waits), "policies": [_rounded(each) for each in summaries]}, indent=2))
    elif output == "csv":
        print(_as_csv(summaries), end="")
    else:
        _print(_policies(summaries, waits))
        for each in summaries:
            if note := _note(each):
                console.print(f"{each.policy}: {note}")
        for each in summaries:
            console.print()
            _print(_teams(each))


def report(answer: Answer, log: str) -> str:
    """Returns the summaries, teams and courses as an HTML page."""
    both = zip(answer.summaries, answer.courses, strict=True)
    parts = [replay_report.Part(_note(each), course, _teams(each)) for each, course in both]
    return replay_report.page(log, _policies(answer.summaries, recorded(answer.jobs)), parts)


def _print(rows: Rows) -> None:
    table = table_of(*rows.columns)
    for row in rows.rows:
        table.add_row(*row)
    console.print(table)


def _policies(summaries: Sequence[Summary], waits: Waits) -> Rows:
    """Returns a row per policy."""
    rows = list[tuple[str, ...]]()
    if waits.mean is not None:
        rows.append(("(as recorded)", "", "", *_figures(waits), "", "", ""))
    for each in summaries:
        spread = f" ({_time(each.spread[0])} to {_time(each.spread[1])})" if each.spread else ""
        mean, *figures = _figures(each.waits)
        parts = f"{each.utilisation:.1%} of {each.resource}", f"{each.again:.1%}"
        counts = str(each.evictions), str(each.never_started)
        rows.append((each.policy, *parts, f"{mean}{spread}", *figures, _time(each.big.mean), *counts))
    return Rows(("POLICY", "USED", "DONE TWICE", *WAITS, "BIG JOBS", "EVICTIONS", "NEVER"), tuple(rows))


def _note(summary: Summary) -> str:
    """Says what became of promised starts; empty if there were none."""
    kept = ", ".join(f"{number} {outcome}" for outcome, number in summary.promises.items())
    return f"promised starts: {kept}" if any(summary.promises.values()) else ""


def _teams(summary: Summary) -> Rows:
    """Returns a row per team."""
    rows = list[tuple[str, ...]]()
    for team in summary.teams:
        least = "-" if team.deserved is None else f"{team.deserved:g}"
        figures = (str(team.jobs), least, f"{team.used:.1f}", f"{team.lost:.1f}", *_figures(team.waits))
        rows.append((team.team, *figures, str(team.evictions), str(team.never_started)))
    sums = ("JOBS", "MIN", f"{summary.resource} HOURS", "LOST")
    return Rows((f"TEAM ({summary.policy})", *sums, *WAITS, "EVICTIONS", "NEVER"), tuple(rows))


def _figures(waits: Waits) -> tuple[str, str, str, str, str]:
    slowdown = "-" if waits.slowdown is None else f"{waits.slowdown:.1f}"
    return _time(waits.mean), _time(waits.p50), _time(waits.p95), _time(waits.max), slowdown


def _time(seconds: float | None) -> str:
    """Formats seconds: ``45s``, ``12m``, ``3.5h`` or ``2.1d``."""
    if seconds is None:
        return "-"
    for least, size, unit in ((172_800, 86_400, "d"), (5400, 3600, "h"), (90, 60, "m")):
        if seconds >= least:
            return f"{seconds / size:.1f}{unit}"
    return f"{seconds:.0f}s"


def _rounded(figures: Summary | Team | Waits) -> Any:
    """Returns figures as a document for JSON, without more digits than anybody reads."""
    return json.loads(json.dumps(asdict(figures)), parse_float=lambda text: round(float(text), 4))


def _as_csv(summaries: Sequence[Summary]) -> str:
    """Returns a line per policy and team."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    waits = [each.name for each in fields(Waits)]
    writer.writerow(["policy", "team", "jobs", "never_started", "evictions", "used_hours", "lost_hours", "min", *waits])
    for each in summaries:
        for team in map(_rounded, each.teams):
            sums = [team[name] for name in ("team", "jobs", "never_started", "evictions", "used", "lost", "deserved")]
            writer.writerow([each.policy, *sums, *(team["waits"][name] for name in waits)])
    return out.getvalue()
