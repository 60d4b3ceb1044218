"""Quantities against exact fractions."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.objects.quantity import LARGEST, InvalidQuantity, amount_of_milli, render, to_milli

SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)} | {
    suffix: Fraction(size)
    for power, (decimal, binary) in enumerate(zip("kMGTPE", ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), strict=True), 1)
    for suffix, size in ((decimal, 1000**power), (binary, 1024**power))
}
digits = st.one_of(st.text("0123456789", max_size=12), st.text("0123456789", max_size=200), st.just("0" * 150))
exponents = st.integers(-200, 200).map(lambda power: (f"e{power}", Fraction(10) ** power))
units = st.one_of(st.sampled_from(sorted(SUFFIXES.items())), exponents)
resources = st.sampled_from(("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "pods"))


@given(st.sampled_from(("", "+", "-")), digits, st.none() | digits, units)
def test_a_quantity_is_its_exact_value_rounded_up_and_capped(sign, whole, fraction, unit):
    suffix, size = unit
    text = sign + whole + ("" if fraction is None else f".{fraction}") + suffix
    if not whole and not fraction:
        with pytest.raises(InvalidQuantity):
            to_milli(text)
        return
    exact = (int(whole or "0") + Fraction(int(fraction or "0"), 10 ** len(fraction or ""))) * size
    expected = min(ceil(exact * 1000), LARGEST * 1000)
    assert to_milli(text) == (-expected if sign == "-" else expected)


@given(st.text(max_size=20) | st.text("0123456789.eE+-KMGTPikmnu ", max_size=12))
def test_any_text_is_a_quantity_or_invalid(text):
    try:
        milli = to_milli(text)
    except InvalidQuantity:
        return
    assert -LARGEST * 1000 <= milli <= LARGEST * 1000


@given(resources, st.integers(-LARGEST, LARGEST))
def test_what_is_written_is_read_again(resource, value):
    assert amount_of_milli(resource, to_milli(render(resource, value))) == value


@given(resources, st.lists(st.integers(0, 10**9), max_size=5))
def test_rounding_once_after_adding_is_never_more_than_rounding_each(resource, millis):
    assert amount_of_milli(resource, sum(millis)) <= sum(amount_of_milli(resource, milli) for milli in millis)
