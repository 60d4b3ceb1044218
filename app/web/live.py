"""PageChanges of a page while it is open, as server-sent events.

All viewers are woken when something has changed, and the board works once for all. The server waits for a slow
client, so that nothing piles up. A client that reconnects gets what it lacks.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec

from app.web.board import HEARTBEAT, INTERVAL, RESTRAINT, Board, PageChanges
from app.web.notifier import Notifier

WATCHERS = 32
"""Maximum number of viewers at a time."""
PER_EVENT = 100
"""Maximum number of changes in one event."""
SILENCE = 15.0
"""Seconds until an empty event is sent, so that a dead connection is noticed."""
ANEW = 30.0
"""Seconds after which a pod is explained again although nothing that is watched has changed."""
CALM = 0.5
"""Minimum number of seconds between explanations of a pod: one may take a while."""
FULL = b'data: {"full":true}\n\n'
NOTHING = b":\n\n"
REOPEN = b"retry: 2000\n\n"
"""Milliseconds until a browser that has lost the connection tries again."""


@dataclass(eq=False, slots=True)
class Place:
    """The place of a viewer; ``had`` becomes false when another viewer gets it."""

    asker: str
    had: bool = True


class Live:
    """Sends changes to a bounded number of pages. When all places are taken, the asker with the most loses one."""

    def __init__(
        self, board: Board, notifier: Notifier, is_stopping: Callable[[], bool], watchers: int = WATCHERS
    ) -> None:
        """Ends all streams once ``is_stopping``. The ``notifier`` is the board's."""
        self._board = board
        self._notifier = notifier
        self._is_stopping = is_stopping
        self._most = watchers
        self._places: list[Place] = []

    async def page(self, since: str, asker: str = "") -> AsyncIterator[bytes]:
        """Yields changes of the page, beginning with what a page of version ``since`` lacks."""
        with self._place(asker) as place:
            if place.had:
                yield REOPEN
            said = time.monotonic()
            while place.had and not self._is_stopping():
                await self._board.refresh()
                changes = self._board.changes(since)
                since = changes.version
                for event in _events(changes):
                    said = time.monotonic()
                    yield event
                if time.monotonic() - said >= SILENCE:
                    said = time.monotonic()
                    yield NOTHING
                await self._board.wait()
            if not place.had:
                yield FULL

    async def pod(self, state: Callable[[], str], since: str, asker: str = "") -> AsyncIterator[bytes]:
        """Yields an event when ``state`` differs from ``since``, and regularly without a change."""
        with self._place(asker) as place:
            if place.had:
                yield REOPEN
            said = time.monotonic() - CALM
            while place.had and not self._is_stopping():
                seen, started = self._notifier.generation, time.monotonic()
                now = state()
                looked = time.monotonic()
                if (now != since and looked - said >= CALM) or looked - said >= ANEW:
                    since, said = now, looked
                    yield _event(PageChanges("", reload=True))
                await asyncio.sleep(max(INTERVAL, RESTRAINT * (looked - started)))
                await self._notifier.wait(seen, HEARTBEAT)
            if not place.had:
                yield FULL

    @contextmanager
    def _place(self, asker: str) -> Iterator[Place]:
        """Takes a place. If there are too many, the asker with the most loses one, maybe this one."""
        place = Place(asker)
        self._places.append(place)
        if len(self._places) > self._most:
            number = Counter(each.asker for each in self._places)
            most = max(number.values())
            given_up = place if number[asker] == most else next(p for p in self._places if number[p.asker] == most)
            given_up.had = False
            self._places.remove(given_up)
        try:
            yield place
        finally:
            if place.had:
                self._places.remove(place)


def _events(changes: PageChanges) -> Iterator[bytes]:
    """Yields the changes in pieces; only the last names the version."""
    if not (changes.reload or changes.changed or changes.removed):
        return
    parts = [changes.changed[start : start + PER_EVENT] for start in range(0, len(changes.changed), PER_EVENT)] or [()]
    for part in parts[:-1]:
        yield _event(PageChanges("", part))
    yield _event(replace(changes, changed=parts[-1]))


def _event(changes: PageChanges) -> bytes:
    version = f"id: {changes.version}\n".encode() if changes.version else b""
    return version + b"data: " + msgspec.json.encode(changes) + b"\n\n"
