"""Figures: what was measured, next to the bar that it has to meet and the goal."""

import json
import operator
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a table. ``unit`` is ``x`` for a ratio against a peer; ``at_least``: the bar is met from below.

    A figure without a bar is only told. ``detail`` says what stands behind it.
    """

    what: str
    value: float
    unit: str
    bar: float | None = None
    goal: float | None = None
    at_least: bool = False
    detail: str = ""

    @property
    def verdict(self) -> str:
        """How it stands against goal and bar."""
        meets = operator.ge if self.at_least else operator.le
        if self.goal is not None and meets(self.value, self.goal):
            return "goal"
        return "" if self.bar is None else "bar" if meets(self.value, self.bar) else "MISSED"


def show(figures: list[Figure]) -> None:
    """Prints a table for people, and as the last line the same as JSON."""
    print(f"\n{'':66} {'figure':>10} {'bar':>8} {'goal':>8}  {'met':8} detail")
    for each in figures:
        bar, goal = ("-" if bound is None else f"{bound:g}" for bound in (each.bar, each.goal))
        figure = f"{_rounded(each.value)} {each.unit}"
        print(f"{each.what:66} {figure:>10} {bar:>8} {goal:>8}  {each.verdict:8} {each.detail}")
    print(json.dumps([asdict(each) | {"verdict": each.verdict} for each in figures]), flush=True)


def middle(values: Sequence[float], unit: str) -> tuple[float, str]:
    """The median, and a text with the spread."""
    spread = f"{_rounded(min(values))}..{_rounded(max(values))} {unit}, {len(values)} times"
    return statistics.median(values), spread


def _rounded(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
