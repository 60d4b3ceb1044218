"""The water level: all that is there is given, within everybody's bounds, and to nobody at another's cost."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policy.quota.water_filling import Bid, divide

amounts = st.integers(0, 60) | st.integers(0, 2**50)


@st.composite
def bids(draw: st.DrawFn, lows: st.SearchStrategy[int] = amounts) -> list[Bid]:
    found = []
    for _ in range(draw(st.integers(0, 7))):
        low = draw(lows)
        found.append(Bid(draw(st.integers(1, 9) | st.integers(1, 2**31 - 1)), low, low + draw(amounts)))
    return found


@given(amounts, bids())
def test_everything_is_given_that_is_there_or_wanted(amount, some):
    given_out = sum(divide(amount, some))
    assert given_out == max(sum(bid.low for bid in some), min(amount, sum(bid.high for bid in some)))


@given(amounts, bids())
def test_everybody_stays_within_its_bounds(amount, some):
    assert all(bid.low <= part <= bid.high for bid, part in zip(some, divide(amount, some), strict=True))


@given(amounts, bids())
def test_nobody_could_get_more_without_one_who_has_less_for_its_weight_losing(amount, some):
    parts = divide(amount, some)
    for bid, part in zip(some, parts, strict=True):
        for other, theirs in zip(some, parts, strict=True):
            if part < bid.high and theirs > other.low:
                assert Fraction(theirs - 1, other.weight) < Fraction(part + 1, bid.weight)


@given(amounts, bids())
@example(10, [Bid(2**31 - 1, 0, 10), Bid(2**31 - 2, 0, 10)])
def test_the_parts_are_those_of_the_one_level_that_a_slow_search_finds(amount, some):
    lowest, highest = sum(bid.low for bid in some), sum(bid.high for bid in some)
    parts = divide(amount, some)
    if lowest >= amount or highest <= amount:
        assert parts == [bid.low if lowest >= amount else bid.high for bid in some]
        return
    for bid, part in zip(some, parts, strict=True):
        assert abs(part - level_reached(amount, some) * bid.weight) < 1 or part in (bid.low, bid.high)
        assert abs(part - clamped(bid, level_reached(amount, some))) < 1


def clamped(bid: Bid, level: Fraction) -> Fraction:
    return max(Fraction(bid.low), min(Fraction(bid.high), level * bid.weight))


def level_reached(amount: int, some: list[Bid]) -> Fraction:
    """Between two neighbouring breakpoints the sum grows evenly, so there the level can be read off."""
    points = sorted({Fraction(bound, bid.weight) for bid in some for bound in (bid.low, bid.high)})
    for start, end in itertools.pairwise(points):
        at_start, at_end = (sum(clamped(bid, level) for bid in some) for level in (start, end))
        if at_start <= amount <= at_end and at_start < at_end:
            return start + (end - start) * (amount - at_start) / (at_end - at_start)
    raise AssertionError("no level")


@given(amounts, bids(st.just(0)), st.integers(0, 6), st.integers(1, 1000))
def test_who_weighs_more_gets_no_less(amount, some, which, more):
    if not some:
        return
    which %= len(some)
    bid = some[which]
    heavier = [*some[:which], Bid(bid.weight + more, bid.low, bid.high), *some[which + 1 :]]
    assert divide(amount, heavier)[which] >= divide(amount, some)[which] - 1  # a unit may be rounded the other way


@given(amounts, bids(), st.randoms())
def test_the_order_matters_for_the_last_unit_at_most(amount, some, dice):
    order = list(range(len(some)))
    dice.shuffle(order)
    shuffled = divide(amount, [some[index] for index in order])
    parts = divide(amount, some)
    assert all(abs(parts[index] - part) <= 1 for index, part in zip(order, shuffled, strict=True))


@pytest.mark.parametrize(
    ("amount", "some", "parts"),
    [
        (0, [Bid(1, 0, 5)], [0]),
        (10, [], []),
        (9, [Bid(2, 0, 5), Bid(4, 0, 10)], [3, 6]),  # Queue API, cpu
        (27, [Bid(2, 0, 10), Bid(4, 0, 20)], [9, 18]),  # Queue API, memory
        (10, [Bid(1, 6, 10), Bid(1, 0, 10)], [6, 4]),
        (10, [Bid(1, 4, 4), Bid(1, 0, 10)], [4, 6]),
        (10, [Bid(1, 0, 10), Bid(1, 0, 10), Bid(1, 0, 10)], [4, 3, 3]),
        (2, [Bid(1, 3, 5), Bid(1, 0, 5)], [3, 0]),
    ],
)
def test_parts_are_exact(amount, some, parts):
    assert divide(amount, some) == parts
