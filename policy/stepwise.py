"""Work that pauses: a generator that is used up for what it returns, so that others may do theirs in between."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def at_once(work: Generator[None, None, T]) -> T:
    """What it returns, for whoever has nothing else to do."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
