"""Logs that are tables: CSV with a map of its columns, and what ``sacct --parsable2`` prints."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from app.replay.log import CannotRead, Log, amount, count, duration, number, time
from policy.objects.quantity import InvalidQuantity, to_milli
from policy.simulate.replay import RecordedJob

TIMES = ("submit", "start", "end")
COLUMNS = ("id", "team", *TIMES, "wait", "run", "pods", "priority", "queue", "limit")
"""Names of columns; every other name is that of a resource, of which each pod requests as much."""
GPU = "nvidia.com/gpu"
HIGHEST = 1_000_000_000
"""The highest priority of users in Kubernetes; greater ones are those of the system, which nothing may evict."""
SHORT = {"gpu": GPU, "gpus": GPU, "gres/gpu": GPU, "mem": "memory"}
"""Other names of resources."""
OF_SACCT = ("JobID", "Submit", "Start", "End")
"""Columns that ``sacct`` has to print.

Also read are Account, User, NNodes, AllocTRES, ReqTRES, NCPUS, Priority and Timelimit.
"""

Row = Mapping[str, str]


def read_csv(lines: Iterable[str], columns: Mapping[str, str], team: str) -> Log:
    """Reads a CSV whose first line names its columns. ``columns``: the column for each of COLUMNS and of resources.

    ``team``: the column of teams, if it is not called so. Raises CannotRead if a column is missing.
    """
    rows = csv.DictReader(lines)
    there = rows.fieldnames or []
    names = {name: name for name in there} | dict(columns) | ({"team": team} if team else {})
    for name, column in names.items():
        if column not in there:
            raise CannotRead(f"--column: there is no column {column!r} for {name}; there are {', '.join(there)}")
    for name, others in (("submit", ()), ("run", ("start", "end"))):
        if name not in names and not (others and all(each in names for each in others)):
            raise CannotRead(f"--column: no column is {name}{' (nor are start and end)' if others else ''}")
    resources = [name for name in names if name not in COLUMNS and (name in columns or _is_resource(name))]
    log = Log()
    for row in rows:
        log.take(rows.line_num, partial(_job_of_csv, row, names, resources, rows.line_num))
    return log


def read_sacct(lines: Iterable[str], team: str) -> Log:
    """Reads what ``sacct --parsable2`` prints, with the columns of OF_SACCT. Steps of jobs are skipped.

    ``team``: the column of teams; empty for Account, or User where that is not printed. Raises CannotRead.
    """
    rows = csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE)
    there = rows.fieldnames or []
    if missing := [name for name in OF_SACCT if name not in there]:
        raise CannotRead(f"there is no column {', '.join(missing)}: is it of sacct --parsable2 --format=...?")
    teams = team or ("Account" if "Account" in there else "User")
    if teams not in there:
        raise CannotRead(f"--team: there is no column {teams!r}; there are {', '.join(there)}")
    log = Log()
    for row in rows:
        if "." not in (row["JobID"] or ""):
            log.take(rows.line_num, partial(_job_of_sacct, row, teams, rows.line_num))
    return log


def _job_of_csv(row: Row, names: Row, resources: Sequence[str], line: int) -> RecordedJob | None:
    given = {name: (row[names[name]] or "").strip() for name in COLUMNS if name in names}
    request = {
        SHORT.get(name, name): amount(SHORT.get(name, name), text)
        for name in resources
        if (text := (row[names[name]] or "").strip())
    }
    return _job(given, request, line)


def _job_of_sacct(row: Row, teams: str, line: int) -> RecordedJob | None:
    pods = count(row.get("NNodes") or row.get("AllocNodes") or "1")
    given = {
        "id": row["JobID"],
        "team": row[teams],
        "submit": row["Submit"],
        "start": row["Start"] if _is_time(row["Start"]) else "",
        "end": row["End"] if _is_time(row["End"]) else "",
        "pods": str(pods),
        "priority": row.get("Priority") or "",
        "limit": limit if (limit := row.get("Timelimit") or "")[:1].isdigit() else "",  # UNLIMITED, Partition_Limit
    }
    return _job(
        given, _per_pod(row.get("AllocTRES") or row.get("ReqTRES") or f"cpu={row.get('NCPUS') or 1}", pods), line
    )


def _job(given: Row, request: dict[str, int], line: int) -> RecordedJob | None:
    """Returns a job; None if it does not say how long it ran. Raises ValueError that names a field at fault."""
    read = {name: _read(name, text) for name, text in given.items() if text}
    submit, start, end = (read.get(name) for name in TIMES)
    if submit is None:
        raise ValueError("submit: it is missing")
    run = read.get("run", end - start if start is not None and end is not None else None)
    if run is None or run <= 0:
        return None
    pods = read.get("pods", 1.0)
    return RecordedJob(
        name=f"{given.get('id') or 'job'}-{line}",
        team=given.get("team") or "default",
        submitted=submit,
        run=run,
        pods=int(pods),
        request=request | {"pods": 1},
        waited=read.get("wait", start - submit if start is not None else None),
        priority=min(HIGHEST, max(-HIGHEST, int(read.get("priority", 0.0)))),
        queue=given.get("queue", ""),
        limit=math.ceil(read.get("limit", 0.0)),
    )


def _read(name: str, text: str) -> float:
    try:
        if name in TIMES:
            return time(text)
        if name in ("wait", "run", "limit"):
            return duration(text)
        return {"pods": count, "priority": number}.get(name, lambda _: 0.0)(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _is_resource(name: str) -> bool:
    return name in ("cpu", "memory", "ephemeral-storage", *SHORT) or "/" in name


def _is_time(text: str | None) -> bool:
    return bool(text) and text not in ("Unknown", "None")


def _per_pod(tres: str, pods: int) -> dict[str, int]:
    """Returns the amounts of a pod from those of a job (``cpu=4,mem=8G,gres/gpu=2``), rounded up."""
    found: dict[str, int] = {}
    for each in tres.split(","):
        name, _, value = each.partition("=")
        resource = SHORT.get(name, name)
        if resource not in ("cpu", "memory", GPU):
            continue
        try:  # Slurm's units are binary
            milli = to_milli(f"{value}i" if value[-1:] in ("K", "M", "G", "T", "P") else value)
        except InvalidQuantity as error:
            raise ValueError(f"{name}: {error}") from error
        total = milli if resource == "cpu" else -(-milli // 1000)
        if total < 0:
            raise ValueError(f"{name}: {value!r} is less than zero")
        found[resource] = -(-total // pods)
    return found
