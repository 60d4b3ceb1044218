"""Weighted max-min fairness of one resource, exactly: all who are not satisfied rise to one level, by weight.

Seeds: Queue API (Proportion Policy), queue guarantee, namespace fair share. Water filling in integers over the sorted
breakpoints, without iterating to a fixed point: the parts sum to the amount to divide, to the last unit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FEW = 16
"""Bids for which floats save no time."""


class Bid(NamedTuple):
    """One participant: gets at least ``low``, at most ``high``, and a part by ``weight`` between them.

    ``weight`` is at least 1, and ``low`` at most ``high``.
    """

    weight: int
    low: int
    high: int


def divide(amount: int, bids: Sequence[Bid]) -> list[int]:
    """Returns each bid's part: ``clamp(level * weight, low, high)``, with the level at which they sum to ``amount``.

    If all ``high`` together are less than the amount, each gets its own; if all ``low`` are more, each gets its low.
    The rest from rounding goes to the largest remainders, and among equals to the earlier bids.
    """
    lowest, highest = [bid.low for bid in bids], [bid.high for bid in bids]
    if sum(lowest) >= amount:
        return lowest
    if sum(highest) <= amount:
        return highest
    parts = _between(amount, bids, *_roughly(amount, bids)) if len(bids) > FEW else None
    return _below_level(amount, bids, _exactly_sorted(bids)) if parts is None else parts


def _roughly(amount: int, bids: Sequence[Bid]) -> tuple[list[bool], list[bool]]:
    """Returns which bids have started to rise at the level, and which are satisfied there, as floats tell it."""
    weight, low, high = np.array(bids, np.float64).T
    level = np.concatenate((low / weight, high / weight))
    order = np.argsort(level, kind="stable")
    slope = np.cumsum(np.concatenate((weight, -weight))[order])
    settled = low.sum() + np.cumsum(np.concatenate((-low, high))[order])
    reached = settled + slope * level[order]
    before: NDArray[np.bool_] = np.empty(len(order), np.bool_)
    before[order] = np.arange(len(order)) < np.argmax(reached >= amount)
    before[: len(bids)] |= low == high
    before[len(bids) :] |= low == high
    return before[: len(bids)].tolist(), before[len(bids) :].tolist()


def _between(amount: int, bids: Sequence[Bid], started: list[bool], satisfied: list[bool]) -> list[int] | None:
    """Returns the exact parts if ``started`` and ``satisfied`` are right; None if not."""
    result = [bid.high if full else bid.low for bid, full in zip(bids, satisfied, strict=True)]
    risen = zip(bids, started, satisfied, strict=True)
    rising = {at: bid.weight for at, (bid, begun, full) in enumerate(risen) if begun and not full}
    slope, left = sum(rising.values()), amount - sum(result) + sum(bids[at].low for at in rising)
    for at, (weight, low, high) in enumerate(bids):
        reached = left * weight
        if at in rising:
            holds = low * slope <= reached <= high * slope
        else:
            holds = low == high or (high * slope <= reached if satisfied[at] else reached <= low * slope)
        if not (slope and holds):
            return None
    return _share_out(result, left, slope, rising)


def _below_level(amount: int, bids: Sequence[Bid], points: Sequence[tuple[int, bool]]) -> list[int]:
    """Raises the level from one breakpoint to the next, where a bid starts to rise or is satisfied."""
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


def _exactly_sorted(bids: Sequence[Bid]) -> list[tuple[int, bool]]:
    """Returns the breakpoints by level: the bid's index, and whether it starts to rise there.

    Compares integers that are precise enough to tell any two fractions with such denominators apart.
    """
    precision = 2 * max(bid.weight for bid in bids).bit_length() + 1
    points = []
    for index, bid in enumerate(bids):
        if bid.low < bid.high:
            points.append(((bid.low << precision) // bid.weight, 0, index))
            points.append(((bid.high << precision) // bid.weight, 1, index))
    points.sort()
    return [(index, not end) for _, end, index in points]


def _share_out(result: list[int], amount: int, slope: int, rising: dict[int, int]) -> list[int]:
    """Divides the amount among the bids that still rise, by weight."""
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
