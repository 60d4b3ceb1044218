"""Weighted max-min fairness of one resource, exactly: one level that all who are not satisfied reach by weight.

Seeds: Queue API (Proportion Policy), queue guarantee, namespace fair share. Computed with integers from the sorted
breakpoints, not by iterating to a fixed point: the result sums to what there is to divide, to the last unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bid:
    """One who takes part: gets ``low`` in any case, never more than ``high``, and between them by ``weight``.

    ``weight`` is at least 1, and ``low`` at most ``high``.
    """

    weight: int
    low: int
    high: int


def divide(amount: int, bids: Sequence[Bid]) -> list[int]:
    """What each bid gets, in order: ``clamp(level * weight, low, high)`` with the level at which it sums to ``amount``.

    If all ``high`` together are less than the amount, each gets its own; if all ``low`` are more, each gets its low.
    What rounding leaves over goes to the largest remainders, and among equals to who comes first.
    """
    lowest, highest = [bid.low for bid in bids], [bid.high for bid in bids]
    if sum(lowest) >= amount:
        return lowest
    if sum(highest) <= amount:
        return highest
    parts = _below_level(amount, bids, _roughly_sorted(bids))
    if any(not low <= part <= high for low, part, high in zip(lowest, parts, highest, strict=True)):
        parts = _below_level(amount, bids, _exactly_sorted(bids))  # two levels were too near for a float to tell
    return parts


def _below_level(amount: int, bids: Sequence[Bid], points: Sequence[tuple[int, bool]]) -> list[int]:
    """Raises the level from one point to the next, at which a bid starts to rise or is satisfied."""
    result = [bid.low for bid in bids]
    settled = sum(result)
    rising: dict[int, int] = {}
    slope = 0
    for index, starts in points:
        bid = bids[index]
        bound = bid.low if starts else bid.high
        if slope and slope * bound >= (amount - settled) * bid.weight:
            break  # the level lies before this point
        if starts:
            rising[index] = bid.weight
            slope += bid.weight
            settled -= bid.low
        else:
            del rising[index]
            slope -= bid.weight
            settled += bid.high
            result[index] = bid.high
    return _share_out(result, amount - settled, slope, rising)


def _roughly_sorted(bids: Sequence[Bid]) -> list[tuple[int, bool]]:
    """The points by level, as far as floats can tell: for each, whose it is, and whether that one starts to rise."""
    points = []
    for index, bid in enumerate(bids):
        if bid.low < bid.high:
            points.append((bid.low / bid.weight, 0, index))
            points.append((bid.high / bid.weight, 1, index))
    points.sort()
    return [(index, not end) for _, end, index in points]


def _exactly_sorted(bids: Sequence[Bid]) -> list[tuple[int, bool]]:
    """The same by integers that are precise enough to tell any two fractions with such denominators apart."""
    precision = 2 * max(bid.weight for bid in bids).bit_length() + 1
    points = []
    for index, bid in enumerate(bids):
        if bid.low < bid.high:
            points.append(((bid.low << precision) // bid.weight, 0, index))
            points.append(((bid.high << precision) // bid.weight, 1, index))
    points.sort()
    return [(index, not end) for _, end, index in points]


def _share_out(result: list[int], amount: int, slope: int, rising: dict[int, int]) -> list[int]:
    """Gives the amount to those who are still rising, by weight."""
    if not rising:
        return result
    remainders = []
    left = amount
    for index, weight in rising.items():
        result[index], remainder = divmod(amount * weight, slope)
        left -= result[index]
        remainders.append((-remainder, index))
    for _, index in sorted(remainders)[:left]:
        result[index] += 1
    return result
