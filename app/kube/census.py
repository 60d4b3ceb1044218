"""Compares the number of objects of a kind with the number known, to notice changes that a watch has not delivered.

A resumed watch brings all that happened meanwhile. If the API server or a proxy lost a change, nobody would notice.
So the API server is asked for the number of objects when a watch is resumed, which is cheap. Once the watch has
reached that version, as many objects must be known. See Versions for changes that come late or twice.
"""

import time
from collections.abc import Collection

from app.store.kind import Key
from app.store.metadata import number_of

AGAIN = 600.0
"""Seconds until all is listed again because a number differed: API servers may give it roughly."""


class Incomplete(Exception):
    """The number of objects differs from the number known."""


class Census:
    """The keys of all objects that a list or a watch has delivered, and the number that there has to be."""

    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self._awaited: tuple[int, int] | None = None
        self._differed_at = float("-inf")

    def begin(self, keys: Collection[Key]) -> None:
        """Starts again with the keys of a complete list."""
        self.keys = set(keys)
        self._awaited = None

    def expect(self, version: str, number: int) -> bool:
        """Expects this many objects at a version. Returns whether changes are due, as another number is known."""
        self._awaited = None
        if number_of(version) and time.monotonic() - self._differed_at >= AGAIN:
            self._awaited = number_of(version), number
        return self._awaited is not None and number != len(self.keys)

    def reach(self, version: int) -> None:
        """Notes that all changes before this version were delivered. Raises Incomplete."""
        if self._awaited is not None and version > self._awaited[0]:
            self.compare()

    def compare(self) -> None:
        """Compares the numbers once everything was delivered. Raises Incomplete."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None and awaited[1] != len(self.keys):
            self._differed_at = time.monotonic()
            raise Incomplete(f"there are {awaited[1]}, and {len(self.keys)} are known")
