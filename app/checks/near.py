"""Which of the names that are known somebody has probably meant."""

from collections.abc import Iterable
from functools import lru_cache

SURELY = 8
"""Letters of a name for each of which one may be wrong."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that another one is a misspelling of; empty if there is none, or if the name itself is known."""
    return _nearest(name, frozenset(known))


@lru_cache(maxsize=4096)
def _nearest(name: str, known: frozenset[str]) -> str:
    """The same: many objects have the same labels."""
    if name in known:
        return ""
    candidates = [each for each in known if abs(len(name) - len(each)) <= _wrong_in(each)]
    best, closest = min(((distance(name.lower(), each.lower()), each) for each in candidates), default=(0, ""))
    return closest if closest and best <= _wrong_in(closest) else ""


def _wrong_in(name: str) -> int:
    """How many letters of a name may be wrong."""
    return max(1, len(name) // SURELY)


def distance(one: str, other: str) -> int:
    """How many letters have to be added, left out, changed or swapped with their neighbour to make one of the other."""
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
