"""Walks: one step after the other, each chosen among those that are possible; hypothesis chooses, or dice do.

Hypothesis shortens a walk that fails. Dice are many times faster, so they go much further.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from random import Random
from typing import Any, Protocol

from hypothesis import settings
from hypothesis import strategies as st

Pick = Callable[[Sequence[Any]], Any]


class Walker(Protocol):
    """What takes the steps, and writes down in ``trace`` what it did."""

    trace: list[str]

    def steps(self) -> list[Callable[[Pick], None]]:
        """The steps that are possible now; what stands there twice is twice as likely."""

    def check(self) -> None:
        """Asserts all that has to hold after every step."""

    def finish(self) -> None:
        """Asserts all that has to hold in the end."""


def walk(walker: Walker, pick: Pick, length: int) -> None:
    """Takes that many steps. A failure tells what was done until then."""
    walk_by(walker, repeat(pick, length))


def walk_by(walker: Walker, picks: Iterable[Pick]) -> None:
    """Takes a step with each of these, so that a walk that fails may still do so with some of them left out."""
    try:
        for pick in picks:
            pick(walker.steps())(pick)
            walker.check()
        walker.finish()
    except BaseException as failure:
        failure.add_note("\n".join(walker.trace))
        raise


def scaled(usual: int) -> int:
    """How many walks, worlds or examples there are where it is usually so many: other profiles have fewer or more."""
    return max(1, usual * settings().max_examples // settings.get_profile("repeatable").max_examples)


def by_dice(seed: int) -> Pick:
    """Picks by chance, the same for the same seed in every version of Python."""
    chance = Random(seed).random
    return lambda options: options[int(chance() * len(options))]


def by_hypothesis(data: st.DataObject) -> Pick:
    """Picks what hypothesis draws; the first of the options is the simplest."""
    return lambda options: options[data.draw(st.integers(0, len(options) - 1))]


def by_number(number: int) -> Pick:
    """Picks by chance, but always the first option where the number is 0, which hypothesis looks for."""
    return by_dice(number) if number else lambda options: options[0]
