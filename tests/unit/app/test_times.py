"""Durations as people write them."""

import pytest

from app.times import InvalidDuration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("2m30s", 150), ("1d12h", 129_600), ("0.5", 0.5), ("3h", 10_800), ("0", 0)]
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1x", "-1", "1h-2m", "m5"])
def test_what_is_no_duration(text):
    with pytest.raises(InvalidDuration):
        parse_duration(text)
