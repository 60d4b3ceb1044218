"""Six policies for one recorded workload, played by ``quotaward replay``: the tables of docs/replay.md.

``python -m tests.bench.policies LOG --from 33d --to 34d``; LOG is in the Standard Workload Format, and further options
are those of replay. Each team has a min, or a queue with a weight, of its part of what all teams use in that time.

Jobs declare how long they run: eight of ten exactly, one nothing, and one a fifth too little. That one is ended then.
"""

import argparse
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from app.replay import swf
from app.replay.player import Window, in_window
from app.times import parse_duration
from tests.unit.app.given import namespace, queue, quota

QUOTAWARD = str(Path(sys.executable).with_name("quotaward"))
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
HOUR = 3600
NEVER = 10 * 365 * 24 * HOUR
"""Seconds after which no job of a log starves, and which no pod is short enough for."""
MISSING = SHORT = 0.1
"""Parts of the jobs that declare nothing, and that declare ``TOO_LITTLE`` of their run time."""
TOO_LITTLE = 0.8
IN_ALL = 1000
"""Sum of the weights of queues."""


def replay(options: list[str]) -> int:
    """Runs the command; returns its status."""
    return subprocess.run([QUOTAWARD, "replay", *options], check=False).returncode


def main(arguments: list[str], play: Callable[[list[str]], int] = replay) -> int:
    """Writes the policies, and plays the log with them: ``play`` gets the options of replay."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.policies", description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--from", dest="begin", default="0")
    parser.add_argument("--to", dest="end", required=True)
    parser.add_argument("--starving-after", type=int, default=HOUR)
    parser.add_argument("--only", nargs="+", help="names of policies; all by default")
    asked, others = parser.parse_known_args(arguments)
    with asked.log.open() as lines:
        log = swf.read(lines, "user", 1)
    origin = min(job.submitted for job in log.jobs)
    window = Window(origin + parse_duration(asked.begin), origin + parse_duration(asked.end))
    used: dict[str, float] = {}
    for job in in_window(log.jobs, window):
        used[job.team] = used.get(job.team, 0.0) + job.pods * job.run
    parts = {team: amount / sum(used.values()) for team, amount in sorted(used.items())}
    with TemporaryDirectory() as folder:
        declared = Path(folder) / asked.log.name
        declared.write_text("".join(declaring(asked.log.read_text().splitlines(keepends=True))))
        options = [
            str(declared),
            "--from",
            asked.begin,
            "--to",
            asked.end,
            "--jobs",
            "gangs",
            "--run-times",
            "enforced",
        ]
        for name, files in policies(parts, log.cores, asked.starving_after).items():
            if asked.only and name not in asked.only:
                continue
            (policy := Path(folder) / name).mkdir()
            for file, content in files.items():
                (policy / file).write_text(content)
            options += ["--policy", str(policy)]
        return play([*options, *others])


def declaring(lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a log, in which jobs declare how long they run."""
    dice = random.Random(0)
    for line in lines:
        fields = line.split()
        if line.startswith(";") or len(fields) <= swf.LIMIT:
            yield line
            continue
        run, chance = float(fields[swf.RUN]), dice.random()
        fields[swf.LIMIT] = "-1" if chance < MISSING else str(run if chance >= MISSING + SHORT else TOO_LITTLE * run)
        yield " ".join(fields) + "\n"


def policies(parts: Mapping[str, float], cores: int, starving_after: int) -> dict[str, dict[str, str]]:
    """Returns the files of each policy for teams with these parts of all that is used."""
    least = {team: {"cpu": f"{int(part * cores * 1000)}m"} for team, part in parts.items()}
    own = [queue(team, weight=max(1, round(part * IN_ALL))) for team, part in parts.items()]
    objects: dict[str, list[Any]] = {
        "none": [],
        "static": [quota(team, min=amount, max=amount) for team, amount in least.items()],
        "elastic": [quota(team, min=amount) for team, amount in least.items()],
        "queues": [*own, *(namespace(team, **{QUEUE_NAME: team}) for team in parts)],
        "reservations": [],
        "backfill": [],
    }
    reserve = {name: {"starvingAfter": NEVER} for name in objects} | {
        "reservations": {"starvingAfter": starving_after, "backfillMargin": NEVER},
        "backfill": {"starvingAfter": starving_after},
    }
    return {
        name: {"all.yaml": yaml.safe_dump_all(found), "settings.yaml": yaml.safe_dump({"reserve": reserve[name]})}
        for name, found in objects.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
