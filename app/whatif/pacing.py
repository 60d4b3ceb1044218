"""Long computations in one event loop with the scheduler's questions: a little at a time, and not for ever."""

import gc
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

from app.pause import Pause

T = TypeVar("T")


class TimeIsUp(Exception):
    """The computation takes longer than it may."""


async def at_leisure(
    work: Generator[None, None, T], deadline: float, clock: Callable[[], float] = time.perf_counter
) -> T:
    """What a computation returns that pauses often, done in slices. Raises TimeIsUp after ``deadline`` on the clock."""
    pause = Pause(clock)
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if await pause.if_due() > deadline:
            raise TimeIsUp


def at_once(work: Generator[None, None, T]) -> T:
    """What a computation returns, for whoever has nothing else to do."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


@contextmanager
def undisturbed() -> Iterator[None]:
    """While many objects come into being that stay for a moment, nobody looks for garbage among them.

    That would take a tenth of a second at a time, with which the scheduler's questions would have to wait.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
