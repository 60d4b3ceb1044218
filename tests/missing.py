"""What becomes of a test that needs something which is not on this machine."""

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skips the test; fails it in CI, and where a kube-scheduler was asked for by name: there all tests have to run."""
    asked_for = os.environ.get("CI") or os.environ.get("QUOTAWARD_KUBERNETES")
    (pytest.fail if asked_for else pytest.skip)(what)
