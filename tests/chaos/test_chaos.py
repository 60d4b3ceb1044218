"""Two minutes of chaos. For longer, with more of everything and another seed: ``make chaos``."""

import pytest

from tests.chaos.run import run
from tests.chaos.workload import SMALL


@pytest.mark.timeout(900)
def test_nothing_unlawful_happens_and_all_recovers_whatever_fails(control_plane, tmp_path):
    outcome = run(control_plane, tmp_path, SMALL, seed=1, seconds=75, lasting=3)
    print(outcome)
    assert outcome.violations == [], outcome
    assert len(outcome.faults) == 13
    assert outcome.bindings > 50
    assert outcome.evictions > 0
    assert outcome.starts > 5
    assert outcome.claims > 10
