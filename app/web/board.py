"""The board: every part of the page as it was last rendered, and which of them have changed since when.

Nothing is computed unless somebody looks, and then once for all who look. Work is cut into slices of a few
milliseconds, between which the loop answers the scheduler; only what has changed is looked at and rendered again.
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
from app.web.bell import Bell
from app.web.parts import Gone, Part

INTERVAL = 0.15
"""Seconds that the board stays as it is at least, however much changes."""
RESTRAINT = 4
"""How many times as long as it takes to bring the board up to date it is left alone afterwards."""
HEARTBEAT = 0.5
"""Seconds after which it is looked at though no bell has rung: time alone makes watches stale and grants old."""
REMEMBERED = 5000
"""How many changes are remembered, so that those who look on can be told."""
LONGEST = 20
"""Digits of a version that somebody may have sent."""

Look = Callable[[], Iterator[Part | Gone | None]]
Render = Callable[[str, dict[str, Any]], str]
Key = tuple[str, ...]


@dataclass(slots=True)
class Fragment:
    """A part, and the HTML of it."""

    part: Part
    html: Markup


@dataclass(frozen=True, slots=True)
class Change:
    """What has to be done to a page: put this HTML in place of the element with that id.

    Where there is none yet, it goes into the list ``row_of``, behind the element ``after``; without that, to the top.
    """

    id: str
    row_of: str
    after: str
    html: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed up to a version; ``reload`` where that cannot be told any more."""

    version: str
    changed: tuple[Change, ...] = ()
    removed: tuple[str, ...] = ()
    reload: bool = False


class Board:
    """Keeps the parts. ``look`` takes from the store what may have changed, ``render`` makes HTML of it."""

    def __init__(self, look: Look, render: Render, bell: Bell) -> None:
        """The ``bell`` rings when something in the store has changed."""
        self._look = look
        self._render = render
        self._bell = bell
        self._fragments: dict[Key, Fragment] = {}
        self._rows: dict[str, list[Key]] = {}
        self._log: deque[tuple[int, Key]] = deque(maxlen=REMEMBERED)
        self._forgotten = 0
        self._version = 0
        self._heard = -1
        self._again_at = float("-inf")
        self._lock = asyncio.Lock()
        self._process = secrets.token_hex(4)

    @property
    def version(self) -> str:
        """What a page that is made now shows; of no use to another process."""
        return f"{self._process}-{self._version}"

    async def refresh(self) -> None:
        """Brings the board up to date, unless that was done just now."""
        async with self._lock:
            if time.monotonic() < self._again_at:
                return
            self._heard = self._bell.rung
            taken = await self._bring_up_to_date()
            self._again_at = time.monotonic() + max(INTERVAL, RESTRAINT * taken)

    async def wait(self) -> None:
        """Waits until it may not be up to date any more, and was left alone for long enough."""
        await self._bell.wait(self._heard, HEARTBEAT)
        await asyncio.sleep(max(0.0, self._again_at - time.monotonic()))

    def html(self, name: str) -> Markup:
        """A part that is no row; empty while it has not been looked at."""
        fragment = self._fragments.get((name,))
        return fragment.html if fragment else Markup()

    def rows(self, of: str) -> list[Fragment]:
        """The rows of a list, in order."""
        return [self._fragments[key] for key in self._rows.get(of, ())]

    def changes(self, since: str) -> Changes:
        """What a page of that version lacks."""
        process, _, number = since.partition("-")
        seen = int(number) if number.isdecimal() and len(number) < LONGEST else -1
        if process != self._process or not self._forgotten <= seen <= self._version:
            return Changes(self.version, reload=True)
        touched = set[Key]()
        for version, key in reversed(self._log):
            if version <= seen:
                break
            touched.add(key)
        changed = tuple(self._change(key) for key in sorted(touched & self._fragments.keys()))
        return Changes(self.version, changed, tuple(id_of(key) for key in touched - self._fragments.keys()))

    async def _bring_up_to_date(self) -> float:
        """Looks at what may have changed; returns how many seconds of work that were."""
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
        """Whether a page shows it differently from now on."""
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

    def _change(self, key: Key) -> Change:
        fragment = self._fragments[key]
        row_of, after = fragment.part.row_of, ""
        if row_of and (place := bisect_left(self._rows[row_of], key)):
            after = id_of(self._rows[row_of][place - 1])
        return Change(id_of(key), row_of, after, str(fragment.html))


def id_of(key: Key) -> str:
    """The id of a part's element: names may hold anything, an id may not."""
    if len(key) == 1:
        return key[0]
    return f"{key[0]}-{blake2b(repr(key).encode(), digest_size=8).hexdigest()}"
