"""What grows is found, and what only trembles is not."""

import os

import pytest

from tests.churn.run import Minute, figures, run

TREMBLE = (0.99, 1.0, 1.01)


def verdicts(memory, work):
    minutes = [Minute(memory(at) * TREMBLE[at % 3], work(at) * TREMBLE[at % 3], 1200, 700) for at in range(60)]
    return [each.verdict for each in figures(minutes)][:2]


def settles(at):
    return min(100.0, 80.0 + 2 * at)


def grows(at):
    return 100.0 + 0.15 * at


def test_what_is_flat_after_a_while_passes():
    assert "MISSED" not in verdicts(settles, settles)


def test_memory_that_grows_by_nine_megabytes_in_an_hour_is_found():
    assert verdicts(grows, settles)[0] == "MISSED"


def test_processor_time_that_grows_by_half_is_found():
    assert verdicts(settles, lambda at: 20.0 + at / 6)[1] == "MISSED"


@pytest.mark.skipif(not os.environ.get("QUOTAWARD_LONG"), reason="takes two minutes: QUOTAWARD_LONG=1")
def test_a_minute_of_churn_runs(control_plane, cluster):
    told = []
    (minute,) = run(control_plane, 1, seed=1, tell=told.append)
    assert told == [minute]
    assert minute.made > 100
    assert minute.waiting > 300
