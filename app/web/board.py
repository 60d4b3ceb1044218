"""The board: every part of the page as last rendered, and which parts have changed since which version.

Nothing is computed unless a page is open, and then once for all viewers. Work is cut into slices of a few
milliseconds, between which the loop answers the scheduler. Only changes are looked at and rendered again.
"""

import asyncio
import secrets
import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from markupsafe import Markup

from app.pause import Pause
from app.web.notifier import Notifier
from app.web.parts import Gone, Part

INTERVAL = 0.15
"""Minimum number of seconds between two updates of the board, however much changes."""
RESTRAINT = 4
"""Multiple of an update's duration for which the board rests afterwards."""
HEARTBEAT = 0.5
"""Seconds after which the board is updated without a notification: time alone makes watches stale and grants old."""
REMEMBERED = 5000
"""Number of changes that are remembered for open pages."""
LONGEST = 20
"""Maximum number of digits of a version in a request."""

Look = Callable[[], Iterator[Part | Gone | None]]
Render = Callable[[str, dict[str, Any]], str]
Key = tuple[str, ...]


@dataclass(slots=True)
class Fragment:
    """A part and its HTML."""

    part: Part
    html: Markup


@dataclass(frozen=True, slots=True)
class ElementChange:
    """A change of a page: this HTML replaces the element with that id.

    If there is no such element, the HTML goes into the list ``row_of``, after the element ``after``; if that is empty,
    to the top.
    """

    id: str
    row_of: str
    after: str
    html: str


@dataclass(frozen=True, slots=True)
class PageChanges:
    """The changes up to a version; ``reload`` if they are no longer known."""

    version: str
    changed: tuple[ElementChange, ...] = ()
    removed: tuple[str, ...] = ()
    reload: bool = False


class Board:
    """Keeps the parts. ``look`` yields what may have changed in the store, ``render`` makes HTML of it."""

    def __init__(self, look: Look, render: Render, notifier: Notifier) -> None:
        """The ``notifier`` tells when something in the store has changed."""
        self._look = look
        self._render = render
        self._notifier = notifier
        self._fragments: dict[Key, Fragment] = {}
        self._rows: dict[str, list[Key]] = {}
        self._log: deque[tuple[int, Key]] = deque(maxlen=REMEMBERED)
        self._forgotten = 0
        self._version = 0
        self._seen = -1
        self._again_at = float("-inf")
        self._lock = asyncio.Lock()
        self._process = secrets.token_hex(4)

    @property
    def version(self) -> str:
        """The version of a page that is made now; other processes do not know it."""
        return f"{self._process}-{self._version}"

    async def refresh(self) -> None:
        """Updates the board, unless that was done just now."""
        async with self._lock:
            if time.monotonic() < self._again_at:
                return
            self._seen = self._notifier.generation
            taken = await self._bring_up_to_date()
            self._again_at = time.monotonic() + max(INTERVAL, RESTRAINT * taken)

    async def wait(self) -> None:
        """Waits until the board may be out of date and has rested for long enough."""
        await self._notifier.wait(self._seen, HEARTBEAT)
        await asyncio.sleep(max(0.0, self._again_at - time.monotonic()))

    def html(self, name: str) -> Markup:
        """Returns the HTML of a part that is no row; empty before the first update."""
        fragment = self._fragments.get((name,))
        return fragment.html if fragment else Markup()

    def rows(self, of: str) -> list[Fragment]:
        """Returns the rows of a list, in order."""
        return [self._fragments[key] for key in self._rows.get(of, ())]

    def changes(self, since: str) -> PageChanges:
        """Returns what a page of that version lacks."""
        process, _, number = since.partition("-")
        seen = int(number) if number.isdecimal() and len(number) < LONGEST else -1
        if process != self._process or not self._forgotten <= seen <= self._version:
            return PageChanges(self.version, reload=True)
        touched = set[Key]()
        for version, key in reversed(self._log):
            if version <= seen:
                break
            touched.add(key)
        changed = tuple(self._change(key) for key in sorted(touched & self._fragments.keys()))
        return PageChanges(self.version, changed, tuple(id_of(key) for key in touched - self._fragments.keys()))

    async def _bring_up_to_date(self) -> float:
        """Looks at what may have changed; returns the seconds of work."""
        version, pause = self._version + 1, Pause()
        for part in self._look():
            if part is not None and self._take(part):
                if len(self._log) == REMEMBERED:
                    self._forgotten = self._log[0][0]
                self._log.append((version, part.key))
            await pause.if_due()
        if self._log and self._log[-1][0] == version:
            self._version = version
        return pause.worked()

    def _take(self, part: Part | Gone) -> bool:
        """Takes in a part; returns whether a page shows it differently now."""
        known = self._fragments.get(part.key)
        if isinstance(part, Gone):
            if known is not None:
                del self._fragments[part.key]
                keys = self._rows[known.part.row_of]
                del keys[bisect_left(keys, part.key)]
            return known is not None
        if known is not None and known.part == part:
            return False
        html = Markup(self._render(part.template, {"id": id_of(part.key), "part": part.model}))  # noqa: S704 - escaped
        if known is not None and known.html == html:
            known.part = part
            return False
        self._fragments[part.key] = Fragment(part, html)
        if known is None and part.row_of:
            insort(self._rows.setdefault(part.row_of, []), part.key)
        return True

    def _change(self, key: Key) -> ElementChange:
        fragment = self._fragments[key]
        row_of, after = fragment.part.row_of, ""
        if row_of and (place := bisect_left(self._rows[row_of], key)):
            after = id_of(self._rows[row_of][place - 1])
        return ElementChange(id_of(key), row_of, after, str(fragment.html))


def id_of(key: Key) -> str:
    """Returns the id of a part's element: names may contain any character, an id may not."""
    if len(key) == 1:
        return key[0]
    return f"{key[0]}-{blake2b(repr(key).encode(), digest_size=8).hexdigest()}"
