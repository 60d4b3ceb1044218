"""How many objects of a kind there are, so that it is noticed when a watch has not told of one.

A watch that is resumed brings all that has happened meanwhile. Should the API server, or something before it, have lost
a change, nobody would ever know. So it is asked for the number of objects when a watch is resumed, which costs little,
and once the watch is as far, as many have to be known. See also Versions, for what comes late or twice.
"""

import time
from collections.abc import Collection

from app.store.kinds import Key
from app.store.objects import number_of

AGAIN = 600.0
"""Seconds until all is listed again for a number that differed: API servers may say it roughly."""


class Incomplete(Exception):
    """There are more objects than are known, or fewer."""


class Census:
    """The keys of all objects of which a list or a watch has told, and how many there have to be."""

    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self._awaited: tuple[int, int] | None = None
        self._differed_at = float("-inf")

    def begin(self, keys: Collection[Key]) -> None:
        """All were listed."""
        self.keys = set(keys)
        self._awaited = None

    def expect(self, version: str, number: int) -> bool:
        """There were so many at a version; whether that is other than is known now, and may be told of soon."""
        self._awaited = None
        if number_of(version) and time.monotonic() - self._differed_at >= AGAIN:
            self._awaited = number_of(version), number
        return self._awaited is not None and number != len(self.keys)

    def reach(self, version: int) -> None:
        """All before this version was told of. Raises Incomplete."""
        if self._awaited is not None and version > self._awaited[0]:
            self.compare()

    def compare(self) -> None:
        """All there was to tell was told. Raises Incomplete."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None and awaited[1] != len(self.keys):
            self._differed_at = time.monotonic()
            raise Incomplete(f"there are {awaited[1]}, and {len(self.keys)} are known")
