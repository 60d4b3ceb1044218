"""Work that pauses: a generator that yields between steps, so that others may work, and returns its result.

The name of each function that returns such work ends in ``_steps``. Calling it does nothing yet: its result comes from
``yield from``, or from ``at_once`` and the like (tests/unit/test_stepwise.py).
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from heapq import merge
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Work that pauses whenever it yields, and returns a ``T`` in the end."""
RUN = 100
"""Items that are sorted, or merged, between two pauses."""


def at_once(work: Steps[T]) -> T:
    """Runs the work to its end without pauses; returns its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def sorted_steps(items: list[T], key: Callable[[T], Any]) -> Steps[list[T]]:
    """Returns the items in the order of their keys. Sorts them in runs, and merges these, with pauses."""
    runs, found = list[list[T]](), list[T]()
    for start in range(0, len(items), RUN):
        runs.append(sorted(items[start : start + RUN], key=key))
        yield
    for number, item in enumerate(merge(*runs, key=key), start=1):
        found.append(item)
        if number % RUN == 0:
            yield
    return found


def within_steps(scope: Callable[[], AbstractContextManager[None]], work: Steps[T], at_a_time: int = 1) -> Steps[T]:
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
