"""The tests of the core find each rule that is broken."""

import os
import subprocess
import sys

import pytest

from tests.properties.mutants import MUTANTS

pytestmark = pytest.mark.skipif(
    not os.environ.get("QUOTAWARD_LONG"), reason="takes some seconds per mutant: QUOTAWARD_LONG=1"
)
FAILED = 1
"""What pytest ends with if tests were run and some have failed."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_rule_is_found(mutant):
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "tests.properties.mutants"]
    done = subprocess.run(
        [*command, *MUTANTS[mutant][1]],
        check=False,
        env=os.environ | {"QUOTAWARD_MUTANT": mutant, "QUOTAWARD_LONG": ""},  # as many examples as make test has
        capture_output=True,
        text=True,
    )
    assert done.returncode == FAILED, done.stdout
