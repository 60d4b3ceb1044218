"""Writes of a controller: with a seat, counted, and with backoff where they fail."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog
from prometheus_client import Counter

from app.actuators.protocol import ActionFailed
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.write_seats import WriteSeats

log = structlog.get_logger(__name__)

Key = TypeVar("Key", bound=Hashable)


class Writes(Generic[Key]):
    """Does writes of one sort, and counts each as ``written`` or ``failed``.

    The controller takes one of the ``seats`` before each write, and asks ``failed`` whether the key has to wait.
    """

    def __init__(
        self, seats: WriteSeats, failed: KeyedBackoff[Key], clock: Callable[[], float], counter: Counter, failure: str
    ) -> None:
        """``failure`` is the text that is logged if a write fails."""
        self.seats = seats
        self.failed = failed
        self._clock = clock
        self._counter = counter
        self._failure = failure

    async def succeeds(self, namespace: str, key: Key, write: Awaitable[None], /, **said: str) -> bool:
        """Writes with the seat that was taken for the namespace; returns whether it was done. Logs a failure."""
        try:
            with self.seats.writing_in(namespace):
                await write
        except ActionFailed as failure:
            self.failed.put(key, self._clock())
            self._counter.labels("failed").inc()
            log.warning(self._failure, **said, error=str(failure))
            return False
        self.failed.clear(key)
        self._counter.labels("written").inc()
        return True
