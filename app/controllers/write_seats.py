"""Seats (concurrency slots) for writes, none of which delays others for long: a webhook of one namespace may hang."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from app.actuators.protocol import ActionFailed, Blocked
from app.controllers.keyed_backoff import KeyedBackoff

SLOW = 0.25
"""Seconds for which a write may keep its seat."""
UNANSWERED = 2.0
"""Seconds for which a write may keep its seat if the API server answers nothing at all."""
SLOW_AT_MOST = 64
"""Slow writes that may be under way without a seat; beyond that number writes keep their seats.

Then no write begins in a namespace whose last write was slow and failed: a webhook that hangs again and again takes
no seat.
"""
KNOWN = 1000
"""Namespaces that are remembered as slow; beyond that number all are forgotten, and found out again."""
AGAIN = (5.0, 60.0)
"""Seconds until the next write in a namespace whose last write was slow and failed: at first, and at most."""


@dataclass(slots=True)
class _Write:
    """A write that is under way, and when it began. ``slow``: whether it was found to be so; None: its time tells."""

    namespace: str
    began: float
    has_seat: bool = True
    slow: bool | None = None

    def is_slow(self, now: float) -> bool:
        """Whether it is slow, or was if it is done."""
        return self.slow if self.slow is not None else now - self.began >= SLOW


class WriteSeats:
    """Bounds the writes that are under way at a time, not counting slow ones.

    While a write is slow, no other begins in its namespace. ``ended`` is called when it ends, for controllers that
    would not look again soon. In a namespace known as slow, a write gives its seat back at once. When slow writes
    succeed, the API server may be slow as a whole. So the namespace may have two writes at a time, then four and so on,
    up to the number of seats.

    ``answered`` returns once the API server has answered something that has to do with no namespace. Where it is given,
    a write counts as slow only once that answer has come, or has not come within ``UNANSWERED`` seconds, and the write
    is still under way. On a busy machine all writes take long for a moment, and nobody is to lose its turn by that. In
    a namespace known as slow, the time of a write tells.
    """

    def __init__(
        self,
        number: int,
        clock: Callable[[], float],
        ended: Callable[[], None] = lambda: None,
        answered: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._free = asyncio.Semaphore(number)
        self._number = number
        self._clock = clock
        self._ended = ended
        self._answered = answered
        self._under_way: Counter[str] = Counter()
        self._slow: dict[str, int] = {}  # writes that may run at a time, by namespace whose last was slow
        self._backoff: KeyedBackoff[str] = KeyedBackoff(*AGAIN)

    async def take(self) -> None:
        """Waits for a seat."""
        await self._free.acquire()

    async def take_for(self, namespace: str) -> bool:
        """Waits for a seat to write in a namespace. Returns false, without a seat, if nothing may be written there."""
        if self.are_kept_from(namespace):
            return False
        await self.take()
        if self.are_kept_from(namespace):  # this may have changed meanwhile
            self.give_back()
            return False
        return True

    def give_back(self) -> None:
        """Gives back a seat that was not needed."""
        self._free.release()

    def are_kept_from(self, namespace: str) -> bool:
        """Whether nothing may be written in a namespace now."""
        too_many = self._under_way[namespace] >= self._slow.get(namespace, 1)
        would_keep_its_seat = namespace in self._backoff and self._under_way.total() >= SLOW_AT_MOST
        return too_many or would_keep_its_seat or self._backoff.holds(namespace, self._clock())

    def is_slow_in(self, namespace: str) -> bool:
        """Whether the last write in a namespace was slow."""
        return namespace in self._slow

    @contextmanager
    def writing_in(self, namespace: str) -> Iterator[None]:
        """Runs a write in a namespace within the context, and gives the seat back."""
        loop = asyncio.get_running_loop()
        write = _Write(namespace, loop.time())
        if namespace in self._slow:
            self._go_on_without_seat(write)
        timer = self._once_slow(write) if write.has_seat else None
        try:
            yield
        except Blocked:  # the API server answered as it should
            self._note_done(namespace, slow=write.is_slow(loop.time()))
            raise
        except ActionFailed:
            if write.is_slow(loop.time()):
                self._back_off(namespace)
            raise
        else:
            self._note_done(namespace, slow=write.is_slow(loop.time()))
        finally:
            if timer is not None:
                timer.cancel()
            if write.has_seat:
                self._free.release()
            else:
                self._under_way -= Counter([namespace])
                self._ended()

    def _go_on_without_seat(self, write: _Write) -> None:
        if self._under_way.total() < SLOW_AT_MOST:
            write.has_seat = False
            self._under_way[write.namespace] += 1
            self._free.release()

    def _once_slow(self, write: _Write) -> asyncio.TimerHandle | asyncio.Task[None]:
        """Takes its seat from a write that has just begun, once it is slow; returns what cancels that."""
        loop = asyncio.get_running_loop()
        if self._answered is None:
            return loop.call_later(SLOW, self._go_on_without_seat, write)
        write.slow = False
        return loop.create_task(self._once_slower_than_others(write, self._answered))

    async def _once_slower_than_others(self, write: _Write, answered: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(SLOW / 2)
        with suppress(TimeoutError):
            async with asyncio.timeout(UNANSWERED):  # wait_for may swallow that the write has ended just then
                await answered()
        await asyncio.sleep(SLOW / 2)
        write.slow = True
        self._go_on_without_seat(write)

    def _back_off(self, namespace: str) -> None:
        now = self._clock()
        self._note_slow(namespace, 1)
        if not self._backoff.holds(namespace, now):  # it holds already if several writes fail at a time
            self._backoff.put(namespace, now)

    def _note_done(self, namespace: str, *, slow: bool) -> None:
        self._backoff.clear(namespace)
        if slow:
            self._note_slow(namespace, min(2 * self._slow.get(namespace, 1), self._number))
        else:
            self._slow.pop(namespace, None)

    def _note_slow(self, namespace: str, at_a_time: int) -> None:
        if len(self._slow) >= KNOWN:  # most of them are gone, or were slow once
            self._slow.clear()
        self._slow[namespace] = at_a_time
