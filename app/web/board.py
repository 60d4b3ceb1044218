"""The board: every part of the page as it was last rendered, and which of them have changed since when.

Nothing is computed unless somebody looks, and then once for all who look. Work is cut into slices of a few
milliseconds, between which the loop answers the scheduler; only what has changed is rendered again.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from markupsafe import Markup

from app.pause import Pause
from app.web.parts import Part

INTERVAL = 0.4
"""Seconds that the board stays as it is at least, however many look."""
RESTRAINT = 4
"""How many times as long as it takes to bring the board up to date it is left alone afterwards."""
REMEMBERED = 1000
"""How many removed parts are remembered, so that those who look on can be told."""
LONGEST = 20
"""Digits of a version that somebody may have sent."""

Render = Callable[[str, dict[str, Any]], str]


@dataclass(slots=True)
class Fragment:
    """A part, the HTML of it, and the version of the board that it has changed with."""

    part: Part
    html: Markup
    version: int


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
    """Keeps the parts. ``parts`` takes them from the store, ``render`` makes HTML of a template and its variables."""

    def __init__(self, parts: Callable[[], Iterable[Part | None]], render: Render) -> None:
        self._parts = parts
        self._render = render
        self._fragments: dict[str, Fragment] = {}
        self._order: list[str] = []
        self._removed: deque[tuple[int, str]] = deque(maxlen=REMEMBERED)
        self._forgotten = 0
        self._version = 0
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
            taken = await self._look()
            self._again_at = time.monotonic() + max(INTERVAL, RESTRAINT * taken)

    def html(self, key: str) -> Markup:
        """A part that is no row; empty while it has not been looked at."""
        fragment = self._fragments.get(id_of((key,)))
        return fragment.html if fragment else Markup()

    def rows(self, of: str) -> list[Fragment]:
        """The rows of a list, in order."""
        fragments = (self._fragments[each] for each in self._order)
        return [fragment for fragment in fragments if fragment.part.row_of == of]

    def changes(self, since: str) -> Changes:
        """What a page of that version lacks."""
        process, _, number = since.partition("-")
        seen = int(number) if number.isdecimal() and len(number) < LONGEST else -1
        if process != self._process or not self._forgotten <= seen <= self._version:
            return Changes(self.version, reload=True)
        removed = tuple(each for version, each in self._removed if version > seen and each not in self._fragments)
        return Changes(self.version, tuple(self._changed_after(seen)), removed)

    async def _look(self) -> float:
        """Looks at everything once; returns how many seconds of work that were."""
        version, order, pause = self._version + 1, list[str](), Pause()
        for part in self._parts():
            if part is not None:
                order.append(self._take(part, version))
            await pause.if_due()
        for gone in self._fragments.keys() - order:
            del self._fragments[gone]
            if len(self._removed) == REMEMBERED:
                self._forgotten = self._removed[0][0]
            self._removed.append((version, gone))
        self._order, self._version = order, version
        return pause.worked()

    def _take(self, part: Part, version: int) -> str:
        element = id_of(part.key)
        known = self._fragments.get(element)
        if known is None or known.part != part:
            html = Markup(self._render(part.template, {"id": element, "part": part.model}))  # noqa: S704 - escaped
            if known is None or known.html != html:
                self._fragments[element] = Fragment(part, html, version)
            else:
                known.part = part
        return element

    def _changed_after(self, version: int) -> Iterator[Change]:
        after = dict[str, str]()
        for element in self._order:
            fragment = self._fragments[element]
            row_of = fragment.part.row_of
            if fragment.version > version:
                yield Change(element, row_of, after.get(row_of, "") if row_of else "", str(fragment.html))
            after[row_of] = element


def id_of(key: tuple[str, ...]) -> str:
    """The id of a part's element: names may hold anything, an id may not."""
    if len(key) == 1:
        return key[0]
    return f"{key[0]}-{blake2b(repr(key).encode(), digest_size=8).hexdigest()}"
