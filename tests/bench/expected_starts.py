"""How good expected starts are on a recorded workload that is played with backfill.

``python -m tests.bench.expected_starts LOG --from 41d --to 42d``, with the options of ``tests.bench.policies``. Once an
hour the starts of all that wait are computed, as a server does when somebody asks. Of each job the first answer counts,
if it is by declared run times, against the real start. Nobody asks about most jobs that wait for less than an hour.
"""

import sys
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any

from typer.testing import CliRunner

from app.cli import app
from app.replay import player
from policy.simulate.expected_start import DECLARED, Forecast
from policy.simulate.replay import Replay
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import Steps, at_once
from tests.bench import policies

EVERY = 3600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The first answer about a job: when it was asked, and when the job was expected to start; seconds of the log."""

    asked_at: float
    expected_at: float


class Foretold(Replay):
    """A replay in which somebody asks once an hour. ``last`` is the latest replay."""

    last: "Foretold"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.expected: dict[str, Asked] = {}
        self.without = set[str]()
        self._asked_at = -inf
        Foretold.last = self

    def play_steps(self, until: float = inf) -> Steps[None]:
        known = 0
        for _ in super().play_steps(until):
            if len(self.states) != known and self.at >= self._asked_at + EVERY:
                self._asked_at = self.at
                self._ask()
            known = len(self.states)
            yield

    def _ask(self) -> None:
        simulation = self._simulation
        copy = at_once(copy_steps(snapshot(self._cluster, simulation.now)))
        forecast = Forecast(copy, self._gangs, simulation.now, 0.0)
        at_once(forecast.play_steps())
        for uid in {pod.uid for pod in self._cluster.pending.values()}:
            name = uid.rpartition("/")[0]
            start = forecast.found.get(uid)
            if start is None or start.basis != DECLARED:
                self.without |= {name} - self.expected.keys()
            elif name not in self.without:
                self.expected.setdefault(name, Asked(self.at, start.at - self._begin))


def main(arguments: list[str]) -> int:
    player.Replay = Foretold
    status = policies.main(
        [*arguments, "--only", "backfill"], lambda options: CliRunner().invoke(app, ["replay", *options]).exit_code
    )
    told = Foretold.last
    real = {name: each for name in told.expected if (each := told.played[name]).first is not None}
    errors = {name: abs(each.first - told.expected[name].expected_at) for name, each in real.items()}
    parts = [errors[name] / max(1.0, each.wait) for name, each in real.items()]
    print(f"{len(parts)} jobs had a start by declared run times, {len(told.without)} none")
    if parts:
        print(f"error p50 {median(errors.values()):.0f} s, of the wait p50 {median(parts):.1%}")
        early = sum(each.first > told.expected[name].expected_at + 60 for name, each in real.items())
        print(f"{early} started more than a minute later than expected")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
