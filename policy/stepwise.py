"""Work that pauses: a generator that is used up for what it returns, so that others may do theirs in between."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
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


def within(
    scope: Callable[[], AbstractContextManager[None]], work: Generator[None, None, T], at_a_time: int = 1
) -> Generator[None, None, T]:
    """The same work, in a scope that is left where it pauses: after so many of its steps."""
    while True:
        with scope():
            try:
                for _ in range(at_a_time):
                    next(work)
            except StopIteration as end:
                result: T = end.value
                return result
        yield
