"""What changes on a page while somebody looks at it, as server-sent events.

Each who looks on asks the board again and again, and the board does the work once for all. A client that reads slowly
is waited for, so that nothing piles up; one that was away is told what it lacks.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec

from app.web.board import INTERVAL, Board, Changes

WATCHERS = 32
"""How many may look on at a time."""
PER_EVENT = 100
"""How many changes are sent at once."""
SILENCE = 15.0
"""Seconds after which something is sent that says nothing, so that a connection that is dead is noticed."""
ANEW = 30.0
"""Seconds after which a pod is looked at again although nothing that is watched has changed."""
CALM = 2.0
"""Seconds between looks at a pod at least: to explain one may take a while."""
FULL = b'data: {"full":true}\n\n'
NOTHING = b":\n\n"
REOPEN = b"retry: 2000\n\n"
"""Milliseconds until a browser that has lost the connection tries again."""


class Live:
    """Sends changes to a bounded number of pages."""

    def __init__(self, board: Board, is_stopping: Callable[[], bool], watchers: int = WATCHERS) -> None:
        """Once it ``is_stopping``, all who look on are let go."""
        self._board = board
        self._is_stopping = is_stopping
        self._free = watchers

    async def page(self, since: str) -> AsyncIterator[bytes]:
        """What changes on the page, beginning with what a page of that version lacks."""
        with self._place() as free:
            if not free:
                yield FULL
                return
            yield REOPEN
            silent = 0.0
            while not self._is_stopping():
                await self._board.refresh()
                changes = self._board.changes(since)
                since = changes.version
                silent += INTERVAL
                for event in _events(changes):
                    silent = 0.0
                    yield event
                if silent >= SILENCE:
                    silent = 0.0
                    yield NOTHING
                await asyncio.sleep(INTERVAL)

    async def pod(self, state: Callable[[], Any]) -> AsyncIterator[bytes]:
        """That something is different from before, whenever ``state`` is, and now and then in any case."""
        with self._place() as free:
            if not free:
                yield FULL
                return
            yield REOPEN
            before, unchanged = state(), 0.0
            while not self._is_stopping():
                await asyncio.sleep(INTERVAL)
                now, unchanged = state(), unchanged + INTERVAL
                if (now != before and unchanged >= CALM) or unchanged >= ANEW:
                    before, unchanged = now, 0.0
                    yield _event(Changes("", reload=True))

    @contextmanager
    def _place(self) -> Iterator[bool]:
        """One of the places, if one is free."""
        if not self._free:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1


def _events(changes: Changes) -> Iterator[bytes]:
    """The changes in pieces; only the last one says which version that makes."""
    if not (changes.reload or changes.changed or changes.removed):
        return
    parts = [changes.changed[start : start + PER_EVENT] for start in range(0, len(changes.changed), PER_EVENT)] or [()]
    for part in parts[:-1]:
        yield _event(Changes("", part))
    yield _event(replace(changes, changed=parts[-1]))


def _event(changes: Changes) -> bytes:
    version = f"id: {changes.version}\n".encode() if changes.version else b""
    return version + b"data: " + msgspec.json.encode(changes) + b"\n\n"
