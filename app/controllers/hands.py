"""A few writes at a time, none of which keeps others waiting for long: a webhook of one namespace may hang."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.actuators.protocol import ActionFailed, Blocked
from app.controllers.aside import Aside

SLOW = 0.25
"""Seconds that a write may keep its hand."""
SLOW_AT_MOST = 64
"""Writes that take longer and are under way, beside those that hold hands; with more of them hands are kept.

Where the last has failed after long, no other is begun then: what hangs again and again keeps no hand.
"""
KNOWN = 1000
"""Namespaces of which it is remembered that the last write took long; of more of them, that is found out anew."""
AGAIN = (5.0, 60.0)
"""Seconds until something is written again in a namespace in which that took long and failed: at first, and at most."""


class Hands:
    """So many writes are under way at a time, not counting those that take long.

    While one takes long, no other is begun in its namespace; ``ended`` is called after that, for whoever does not look
    again before long anyway. Where it has happened before, a write gives its hand back at once. Those that take long
    and are done, as with an API server that is slow altogether, make it two at a time, four and so on, up to as many as
    there are hands.
    """

    def __init__(self, number: int, clock: Callable[[], float], ended: Callable[[], None] = lambda: None) -> None:
        self._free = asyncio.Semaphore(number)
        self._number = number
        self._clock = clock
        self._ended = ended
        self._under_way: Counter[str] = Counter()
        self._slow: dict[str, int] = {}  # where the last has taken long, and how many may at a time
        self._aside: Aside[str] = Aside(*AGAIN)

    async def take(self) -> None:
        """Waits for a hand."""
        await self._free.acquire()

    async def take_for(self, namespace: str) -> bool:
        """Waits for a hand to write in a namespace with; false, and none taken, if nothing is to be written there."""
        if self.are_kept_from(namespace):
            return False
        await self.take()
        if self.are_kept_from(namespace):  # since then
            self.give_back()
            return False
        return True

    def give_back(self) -> None:
        """The hand that was taken is not needed."""
        self._free.release()

    def are_kept_from(self, namespace: str) -> bool:
        """Whether nothing is to be written in a namespace now."""
        too_many = self._under_way[namespace] >= self._slow.get(namespace, 1)
        would_keep_its_hand = namespace in self._aside and self._under_way.total() >= SLOW_AT_MOST
        return too_many or would_keep_its_hand or self._aside.holds(namespace, self._clock())

    def are_slow_in(self, namespace: str) -> bool:
        """Whether the last write in a namespace has taken long."""
        return namespace in self._slow

    @contextmanager
    def at_work(self, namespace: str) -> Iterator[None]:
        """A write in a namespace, with the hand that was taken, which goes back by itself."""
        loop, kept = asyncio.get_running_loop(), True

        def go_back() -> None:
            nonlocal kept
            if self._under_way.total() < SLOW_AT_MOST:
                kept = False
                self._under_way[namespace] += 1
                self._free.release()

        started = loop.time()
        if namespace in self._slow:
            go_back()
        timer = loop.call_later(SLOW, go_back) if kept else None
        try:
            yield
        except Blocked:  # the API server was well
            self._note_done(namespace, after=loop.time() - started)
            raise
        except ActionFailed:
            if loop.time() - started >= SLOW:
                self._put_aside(namespace)
            raise
        else:
            self._note_done(namespace, after=loop.time() - started)
        finally:
            if timer is not None:
                timer.cancel()
            if kept:
                self._free.release()
            else:
                self._under_way -= Counter([namespace])
                self._ended()

    def _put_aside(self, namespace: str) -> None:
        now = self._clock()
        self._note_slow(namespace, 1)
        if not self._aside.holds(namespace, now):  # as it does if several have failed at a time
            self._aside.put(namespace, now)

    def _note_done(self, namespace: str, after: float) -> None:
        self._aside.clear(namespace)
        if after < SLOW:
            self._slow.pop(namespace, None)
        else:
            self._note_slow(namespace, min(2 * self._slow.get(namespace, 1), self._number))

    def _note_slow(self, namespace: str, at_a_time: int) -> None:
        if len(self._slow) >= KNOWN:  # most of them are gone, or were slow once
            self._slow.clear()
        self._slow[namespace] = at_a_time
