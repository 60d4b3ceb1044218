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
    result = [bid.low for bid in bids]
    settled = sum(result)
    if settled >= amount:
        return result
    rising: dict[int, int] = {}
    slope = 0
    for level_num, level_den, index, starts in _breakpoints(bids):
        if slope and slope * level_num >= (amount - settled) * level_den:
            break  # the level lies before this breakpoint
        bid = bids[index]
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


def _breakpoints(bids: Sequence[Bid]) -> list[tuple[int, int, int, bool]]:
    """The levels at which bids start to rise or are satisfied: numerator, denominator, index, whether it starts.

    Sorted, by integers that are precise enough to tell any two fractions with such denominators apart.
    """
    precision = 2 * max((bid.weight for bid in bids), default=1).bit_length() + 1
    points = []
    for index, bid in enumerate(bids):
        if bid.low < bid.high:
            points.append(((bid.low << precision) // bid.weight, bid.low, bid.weight, index, True))
            points.append(((bid.high << precision) // bid.weight, bid.high, bid.weight, index, False))
    points.sort(key=lambda point: (point[0], not point[4]))
    return [point[1:] for point in points]


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
