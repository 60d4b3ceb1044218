"""Long work on the cluster gives way to the scheduler: all that decides runs in one loop."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from typing import ClassVar, TypeVar

T = TypeVar("T")

SLICE = 0.0003
"""Seconds of work after which the scheduler is answered first; one more step like the last would go beyond them."""
TURNS = 3
"""Turns of the loop in which a question is answered: it is seen in one, read in the next, and answered in the third.

With fewer it would wait for one more slice in each of them.
"""


class TimeIsUp(Exception):
    """The work takes longer than it may."""


class Pause:
    """Measures the work of whoever made it, and lets others go first when it is time.

    All who work at the same time do a slice each, in turn.
    """

    _in_turn: ClassVar[deque["Pause"]] = deque()

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._before = 0.0
        self._since = self._stepped = clock()

    def worked(self) -> float:
        """Seconds of work so far, without the pauses."""
        return self._before + self._clock() - self._since

    async def if_due(self) -> float:
        """To be called after each step. Pauses after a slice of work; returns the time on the clock after that."""
        now = self._clock()
        if now - self._since + now - self._stepped > SLICE:
            self._before += now - self._since
            await self._let_others_go_first()
            now = self._since = self._clock()
        self._stepped = now
        return now

    async def _let_others_go_first(self) -> None:
        self._in_turn.append(self)
        try:
            while self._in_turn[0] is not self:  # else the next slice would be somebody else's
                await asyncio.sleep(0)
            for _ in range(TURNS):
                await asyncio.sleep(0)
        finally:
            self._in_turn.remove(self)


async def at_leisure(work: Generator[None, None, T], deadline: float = float("inf"), pause: Pause | None = None) -> T:
    """What work returns that pauses often, done in slices. Raises TimeIsUp after ``deadline`` on the clock.

    ``pause``, if given, has measured the work afterwards.
    """
    pause = pause or Pause()
    with closing(work):
        while True:
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            if await pause.if_due() > deadline:
                raise TimeIsUp
