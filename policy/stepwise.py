"""Work that pauses: a generator that yields between steps, so that others may work, and returns its result."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import TypeVar

T = TypeVar("T")


def at_once(work: Generator[None, None, T]) -> T:
    """Runs the work to its end without pauses; returns its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def within(
    scope: Callable[[], AbstractContextManager[None]], work: Generator[None, None, T], at_a_time: int = 1
) -> Generator[None, None, T]:
    """Runs the work inside ``scope``. Leaves the scope at each pause, which comes after ``at_a_time`` steps."""
    while True:
        with scope():
            try:
                for _ in range(at_a_time):
                    next(work)
            except StopIteration as end:
                result: T = end.value
                return result
        yield
