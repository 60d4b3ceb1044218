"""Backoff for keys whose last write failed, so that others are not delayed."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


FIRST, LONGEST = 1.0, 300.0
"""Default seconds."""


class KeyedBackoff(Generic[Key]):
    """Backoff by key: ``first`` seconds, twice as long after each further failure, at most ``longest``."""

    def __init__(self, first: float = FIRST, longest: float = LONGEST) -> None:
        self._first = first
        self._longest = longest
        self._known: dict[Key, tuple[float, float]] = {}
        self._tidy_at = 0.0

    def put(self, key: Key, now: float) -> float:
        """Notes a failed write; returns the time until which nothing is tried."""
        if now >= self._tidy_at:  # keys that were not tried again for long are gone
            self._known = {each: known for each, known in self._known.items() if now - known[0] < self._longest}
            self._tidy_at = now + self._longest
        wait = min(2 * self._known[key][1], self._longest) if key in self._known else self._first
        self._known[key] = now + wait, wait
        return now + wait

    def clear(self, key: Key) -> None:
        """Notes a successful write."""
        self._known.pop(key, None)

    def holds(self, key: Key, now: float) -> bool:
        """Whether the key must not be tried yet."""
        return key in self._known and now < self._known[key][0]

    def __contains__(self, key: Key) -> bool:
        """Whether the last write failed."""
        return key in self._known

    def next(self, now: float) -> float:
        """Returns the earliest time at which a key may be tried again; infinity if none waits."""
        return min((until for until, _ in self._known.values() if until > now), default=float("inf"))
