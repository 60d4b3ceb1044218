"""Walks: one step after the other, each chosen among those that are possible; hypothesis chooses, or dice do.

Hypothesis shortens a walk that fails. Dice are many times faster, so they go much further.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

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
    try:
        for _ in range(length):
            pick(walker.steps())(pick)
            walker.check()
        walker.finish()
    except BaseException as failure:
        failure.add_note("\n".join(walker.trace))
        raise


def by_dice(seed: int) -> Pick:
    """Picks by chance, the same for the same seed in every version of Python."""
    chance = Random(seed).random
    return lambda options: options[int(chance() * len(options))]


def by_hypothesis(data: st.DataObject) -> Pick:
    """Picks what hypothesis draws; the first of the options is the simplest."""
    return lambda options: options[data.draw(st.integers(0, len(options) - 1))]
