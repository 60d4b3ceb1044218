"""Pauses for long work on the cluster, since all decisions run in one loop: the scheduler comes first."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import ClassVar, TypeVar
from weakref import WeakKeyDictionary

from policy.stepwise import Steps

T = TypeVar("T")

SLICE = 0.0003
"""Seconds of work after which the scheduler is answered. A step like the last must not go beyond them."""
TURNS = 3
"""Turns of the loop that a question takes: it is seen in one, read in the next, and answered in the third.

With fewer turns, it would wait for another slice of work in each.
"""


class TimeIsUp(Exception):
    """The work takes longer than allowed."""


class Pause:
    """Measures its owner's work, and pauses when a slice is over.

    All who work at the same time, in one event loop, do a slice each, in turn.
    """

    _resting: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, deque["Pause"]]] = WeakKeyDictionary()

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._before = 0.0
        self._since = self._stepped = clock()

    def worked(self) -> float:
        """Returns the seconds of work so far, without pauses."""
        return self._before + self._clock() - self._since

    async def if_due(self) -> float:
        """Pauses after a slice of work; returns the time on the clock afterwards. Call it after each step."""
        now = self._clock()
        if now - self._since + now - self._stepped > SLICE:
            self._before += now - self._since
            await self._let_others_go_first()
            now = self._since = self._clock()
        self._stepped = now
        return now

    async def _let_others_go_first(self) -> None:
        in_turn = self._resting.setdefault(asyncio.get_running_loop(), deque())
        in_turn.append(self)
        try:
            while in_turn[0] is not self:  # otherwise the next slice would be another's
                await asyncio.sleep(0)
            for _ in range(TURNS):
                await asyncio.sleep(0)
        finally:
            in_turn.remove(self)


async def at_leisure(work: Steps[T], deadline: float = float("inf"), pause: Pause | None = None) -> T:
    """Runs work in slices, and returns its result. Raises TimeIsUp after ``deadline`` on the clock.

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
