"""Logs in the Standard Workload Format: a line of 18 numbers per job, and comments before them."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import partial

from app.replay.log import Log, number
from policy.simulate.replay import RecordedJob

FIELDS = 18
NUMBER = re.compile(r"[0-9]{1,9}")
JOB, SUBMIT, WAIT, RUN, PROCESSORS, WANTED, LIMIT = 0, 1, 2, 3, 4, 7, 8
TEAMS = {"user": (11, "u"), "group": (12, "g"), "queue": (14, "q"), "partition": (15, "p")}
"""The fields that may name teams, and the letter before the number in the name of a namespace."""


def read(lines: Iterable[str], team: str, pod_cores: int) -> Log:
    """Reads a log. ``team`` is a key of TEAMS; a job has a pod for each ``pod_cores`` processors, rounded up."""
    log = Log()
    for number_of_line, line in enumerate(lines, start=1):
        if line.startswith(";"):
            _read_comment(log, line)
        elif fields := line.split():
            log.take(number_of_line, partial(_job, fields, number_of_line, team, pod_cores))
    return log


def _job(fields: Sequence[str], line: int, team: str, pod_cores: int) -> RecordedJob | None:
    """Returns the job of a line; None if it did not run. Raises ValueError."""
    values, (column, letter) = [number(text) for text in fields], TEAMS[team]
    if len(values) < FIELDS:
        raise ValueError(f"it has {len(values)} of {FIELDS} fields")
    processors = int(values[PROCESSORS] if values[PROCESSORS] > 0 else values[WANTED])
    if values[RUN] <= 0 or processors <= 0:
        return None
    cores = min(processors, pod_cores)
    return RecordedJob(
        name=f"job-{int(values[JOB])}-{line}",
        team=f"{letter}{int(values[column])}",
        submitted=values[SUBMIT],
        run=values[RUN],
        pods=math.ceil(processors / cores),
        request={"cpu": 1000 * cores, "pods": 1},
        waited=values[WAIT] if values[WAIT] >= 0 else None,
        limit=max(0, math.ceil(values[LIMIT])),
    )


def _read_comment(log: Log, line: str) -> None:
    name, _, value = line.strip("; \n").partition(":")
    words = value.split()
    if words and NUMBER.fullmatch(words[0]):
        if name == "MaxNodes":
            log.nodes = int(words[0])
        elif name == "MaxProcs":
            log.cores = int(words[0])
