"""Whoever a write fails for stands aside, so that others go on."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


FIRST, LONGEST = 1.0, 300.0
"""Seconds, where nothing else is said."""


class Aside(Generic[Key]):
    """Who stands aside until when: ``first`` seconds, twice as long after each further failure, at most ``longest``."""

    def __init__(self, first: float = FIRST, longest: float = LONGEST) -> None:
        self._first = first
        self._longest = longest
        self._known: dict[Key, tuple[float, float]] = {}
        self._tidy_at = 0.0

    def put(self, key: Key, now: float) -> float:
        """A write has failed; returns until when nothing is tried."""
        if now >= self._tidy_at:  # what has not been tried again for long is gone
            self._known = {each: known for each, known in self._known.items() if now - known[0] < self._longest}
            self._tidy_at = now + self._longest
        wait = min(2 * self._known[key][1], self._longest) if key in self._known else self._first
        self._known[key] = now + wait, wait
        return now + wait

    def clear(self, key: Key) -> None:
        """A write was done."""
        self._known.pop(key, None)

    def holds(self, key: Key, now: float) -> bool:
        """Whether nothing is to be tried yet."""
        return key in self._known and now < self._known[key][0]

    def __contains__(self, key: Key) -> bool:
        """Whether the last write failed."""
        return key in self._known

    def next(self, now: float) -> float:
        """When the first of those who stand aside may be tried again; infinity where nobody does."""
        return min((until for until, _ in self._known.values() if until > now), default=float("inf"))
