"""A few hostile tenants for half a minute. For more of them, and how much slower others are: ``make hostile``."""

import pytest

from tests.conftest import own_control_plane
from tests.hostile.run import native_flags, run
from tests.hostile.world import Size

SMALL = Size(tenants=12, nodes=20, pods=100, honest_pace=4, hostile_pace=12)


@pytest.fixture
def control_plane(request, tmp_path_factory):
    """One of its own, with pod groups of every kind."""
    with own_control_plane(request, tmp_path_factory, *native_flags()) as running:
        yield running


@pytest.mark.timeout(900)
def test_hostile_tenants_break_no_rule_and_it_stays_ready(control_plane, tmp_path):
    outcome = run(control_plane, tmp_path, SMALL, seed=1, quiet=5, seconds=30)
    print(*outcome.figures, outcome.deeds, sep="\n")
    assert outcome.violations == []
    assert outcome.unready == []
    done = [deed for deed in outcome.deeds if ":" not in deed]
    assert done != [], "how much tenants do depends on the machine, but they do something"
