"""How long pods run: texts, and what follows from several of them."""

import pytest

from policy.objects.run_time import LONGEST, NOT_SAID, UNREADABLE, conditions, of_all, seconds_of, text_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("2h30m", 9000),
        ("1.5h", 5400),
        (".5m", 30),
        ("1d12h", 129600),
        ("45s", 45),
        ("1ms", 1),
        ("1ns", 1),
        (".4ns", 1),
        ("1500ms", 2),
        ("0.1s", 1),
        (" 90m ", 5400),
        ("PT2H30M", 9000),
        ("PT90M", 5400),
        ("P1DT12H", 129600),
        ("P2W", 1209600),
        ("PT0.5H", 1800),
        ("PT0,5H", 1800),
        ("9999999999h", LONGEST),
    ],
)
def test_a_time_is_read_in_the_form_of_go_and_of_iso_8601(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "90",
        "soon",
        "1h 30m",
        "-5m",
        "0s",
        "PT0S",
        "P",
        "PT",
        "P1DT",
        "P1M",
        "P1Y",
        "1h30",
        "m",
        "1.h.",
        "٣m",
        "9" * 70 + "s",
    ],
)
def test_anything_else_is_unreadable(text):
    assert seconds_of(text) == UNREADABLE


@pytest.mark.parametrize(
    ("said", "together"),
    [([], NOT_SAID), ([60, 90], 90), ([60, NOT_SAID], NOT_SAID), ([60, UNREADABLE], UNREADABLE), ([0, -1], UNREADABLE)],
)
def test_several_pods_have_ended_when_the_last_has(said, together):
    assert of_all(said) == together


def test_the_owner_of_a_default_that_is_unreadable_is_told_of_it():
    [told] = conditions(UNREADABLE, NOT_SAID, NOT_SAID)
    assert told.type == "RunTimeInvalid"
    assert "quotaward.dev/run-time" in told.message
    assert conditions(NOT_SAID, NOT_SAID, NOT_SAID) == conditions(60, 60, 60) == []


def test_the_owner_of_a_limit_is_told_that_it_is_unreadable_or_below_the_min():
    assert [each.type for each in conditions(60, 60, UNREADABLE)] == ["MaxRunTimeInvalid"]
    [told] = conditions(60, 61, 60)
    assert (told.type, told.reason) == ("Invalid", "MinRunTimeExceedsMax")


@pytest.mark.parametrize(("seconds", "text"), [(9000, "2h30m"), (59, "59s"), (3600, "1h"), (3661, "1h1m1s"), (0, "0s")])
def test_a_time_is_written_as_people_write_it(seconds, text):
    assert text_of(seconds) == text
