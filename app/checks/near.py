"""Guesses which known name a misspelled name means."""

from collections.abc import Iterable
from functools import lru_cache

SURELY = 8
"""Letters of a name per wrong letter that is allowed."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns the known name that this one misspells; empty if there is none, or if the name itself is known."""
    return _nearest(name, frozenset(known))


@lru_cache(maxsize=4096)
def _nearest(name: str, known: frozenset[str]) -> str:
    """Finds the nearest name. Cached, as many objects have the same labels."""
    if name in known:
        return ""
    candidates = [each for each in known if abs(len(name) - len(each)) <= _wrong_in(each)]
    best, closest = min(((distance(name.lower(), each.lower()), each) for each in candidates), default=(0, ""))
    return closest if closest and best <= _wrong_in(closest) else ""


def _wrong_in(name: str) -> int:
    """Returns how many letters of a name may be wrong."""
    return max(1, len(name) // SURELY)


def distance(one: str, other: str) -> int:
    """Returns the edit distance of two names: letters to add, omit, change or swap with a neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        last, row = row, [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]
