"""Quantities: what Kubernetes makes of a text, in thousandths and in amounts, and back."""

import time
import tracemalloc

import pytest

from policy.objects.quantity import LARGEST, InvalidQuantity, amount_of_milli, render, to_milli
from tests.unit.kubernetes import questions
from tests.unit.kubernetes.record import answers

CAP = LARGEST * 1000


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("0", 0),
        ("1", 1000),
        ("+1", 1000),
        ("007", 7000),
        ("1.", 1000),
        (".5", 500),
        ("1.25", 1250),
        ("500m", 500),
        ("1500m", 1500),
        ("1k", 1_000_000),
        ("1M", 10**9),
        ("1G", 10**12),
        ("1T", 10**15),
        ("1P", 10**18),
        ("1E", 10**21),
        ("1Ki", 1_024_000),
        ("1Mi", 2**20 * 1000),
        ("9Gi", 9 * 2**30 * 1000),
        ("1Ti", 2**40 * 1000),
        ("1Pi", 2**50 * 1000),
        ("1Ei", 2**60 * 1000),
        ("0.5Gi", 2**29 * 1000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1e+3", 1_000_000),
        ("1500e-3", 1500),
        ("-1", -1000),
        ("-0", 0),
        (3, 3000),
        (0.5, 500),
        (1e22, CAP),
        (1e-7, 1),
    ],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(text, milli):
    assert to_milli(text) == milli


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("1n", 1),
        ("1u", 1),
        ("999999n", 1),
        ("1000001n", 2),
        ("0.0001", 1),
        ("1.0001", 1001),
        ("0.1Ki", 102_400),
        ("0.3Gi", 322_122_547_200),
        ("1e-30", 1),
        ("-1n", -1),
    ],
)
def test_a_quantity_is_rounded_up_to_thousandths(text, milli):
    assert to_milli(text) == milli


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "1", 1000),
        ("cpu", "0.0001", 1),
        ("memory", "1", 1),
        ("memory", "1m", 1),
        ("memory", "1001m", 2),
        ("memory", "1Ki", 1024),
        ("nvidia.com/gpu", "2", 2),
        ("nvidia.com/gpu", "1500m", 2),
    ],
)
def test_an_amount_is_millicores_or_whole_units_rounded_up(resource, text, expected):
    assert amount_of_milli(resource, to_milli(text)) == expected


@pytest.mark.parametrize("text", ["9223372036854775807", "9223372036854775808", "8Ei", "16Ei", "1e30", "9" * 50])
def test_a_quantity_is_capped_at_the_largest_64_bit_integer(text):
    assert to_milli(text) == CAP
    assert to_milli(f"-{text}") == -CAP


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1 ", " 1", "1\n", "1\u00a0", "\u0661", "one", "NaN", "inf", "0x10", "1_000"),
        *("1 Gi", "1gi", "1KI", "1mi", "1K", "1i", "1mm", "1kk"),
        *("1.5.", "1..5", "--1", "+-1", "1e", "1e+", "1e1.5", "1e1k"),
        *("m", "Ki", ".", "+", "-", "e3"),
        *(True, False, None, float("nan"), float("inf")),
    ],
)
def test_what_is_no_quantity_is_invalid(text):
    with pytest.raises(InvalidQuantity):
        to_milli(text)


def test_true_is_invalid_even_after_one_was_read():
    assert to_milli(1) == 1000
    with pytest.raises(InvalidQuantity):
        to_milli(True)  # noqa: FBT003


def test_a_number_too_long_to_be_written_out_is_capped_like_its_text():
    assert to_milli(16**4000) == CAP
    assert to_milli(-(16**4000)) == -CAP


def test_zeros_at_the_end_are_worth_nothing_however_many():
    assert to_milli("1." + "0" * 100) == 1000
    assert to_milli("1" + "0" * 100 + "e-100") == 1000
    assert to_milli("1." + "0" * 100 + "1") == 1001


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("9" * 1_000_000, CAP),
        ("0" * 1_000_000 + "1", 1000),
        ("0." + "9" * 1_000_000, 1000),
        ("0." + "0" * 1_000_000 + "1", 1),
        ("1e999999999999999999", CAP),
        ("1e-999999999999999999", 1),
        ("0e999999999999999999", 0),
        ("1e" + "9" * 1_000_000, CAP),
        ("1e-" + "9" * 1_000_000, 1),
        ("1e" + "0" * 1_000_000 + "3", 1_000_000),
        ("9" * 1_000_000 + "!", None),
        ("1." * 500_000, None),
        ("1e" + "-" * 1_000_000, None),
    ],
    ids=lambda value: value if value is None or isinstance(value, int) else f"{value[:6]} of {len(value)}",
)
def test_an_absurd_text_is_answered_quickly(text, milli):
    began = time.process_time()
    if milli is None:
        with pytest.raises(InvalidQuantity) as raised:
            to_milli(text)
        assert len(str(raised.value)) < 200
    else:
        assert to_milli(text) == milli
    assert time.process_time() - began < 2


def test_what_many_long_texts_are_is_not_kept():
    def read_many(length):
        before, _ = tracemalloc.get_traced_memory()
        for number in range(100):
            assert to_milli(f"{number:0{length}}") == number * 1000
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        assert read_many(100_000) < 100_000
        assert 0 < read_many(20) < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 500, "500m"),
        ("cpu", 3000, "3"),
        ("cpu", 3001, "3001m"),
        ("memory", 0, "0"),
        ("memory", 1, "1"),
        ("memory", 1023, "1023"),
        ("memory", 1024, "1Ki"),
        ("memory", 1025, "1025"),
        ("memory", 9 * 2**30, "9Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("ephemeral-storage", 2**40, "1Ti"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("nvidia.com/gpu", 1024, "1024"),
        ("pods", 110, "110"),
    ],
)
def test_an_amount_is_written_as_a_quantity(resource, value, text):
    assert render(resource, value) == text
    assert amount_of_milli(resource, to_milli(text)) == value


def test_kubernetes_own_code_agrees():
    differing = []
    for text, answer in zip(questions.quantities(), answers()["quantities"], strict=True):
        try:
            milli = to_milli(text)
        except InvalidQuantity:
            if answer is not None and not _has_no_digit(text):
                differing.append((text, "refused", answer))
            continue
        if answer is None or not _same(milli, *answer):
            differing.append((text, milli, answer))
    assert differing == []


def _has_no_digit(text: str) -> bool:
    """Kubernetes takes a number without a digit for 0. The API server writes it so; nobody means it: here, invalid."""
    return not any(character.isdigit() for character in text.lower().split("e")[0])


def _same(milli: int, answered_milli: int | None, answered_whole: int | None) -> bool:
    """What exceeds an int64 in Kubernetes (null in the answer) wraps around there and is capped here."""
    if milli < 0:  # what whole units Kubernetes makes of it depends on how it was written; none may be negative
        return answered_milli in (None, milli)
    if answered_whole is None:
        return milli == CAP
    return answered_milli in (None, milli) and amount_of_milli("memory", milli) == answered_whole
