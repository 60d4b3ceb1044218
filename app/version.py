"""Which Quotaward this is, and which versions of Kubernetes it works with."""

import importlib.metadata
import platform
from functools import cache
from typing import Any

COMMIT = "$Format:%H$"
"""The commit, filled in where ``git archive`` makes the sources, as for a release."""
API_SERVER_FROM = "1.30"
SCHEDULERS = ("1.34", "1.35", "1.36", "1.37")
"""Minor versions of kube-scheduler that were tried, as docs/support.md says."""


@cache
def version() -> str:
    """Returns the version of the installed package."""
    return importlib.metadata.version("quotaward")


def commit() -> str:
    """Returns the commit that the sources are of; empty if they come from a checkout."""
    return "" if COMMIT.startswith("$") else COMMIT


def describe() -> dict[str, Any]:
    """Returns version, commit (None if unknown), Python, and supported versions of Kubernetes."""
    return {
        "version": version(),
        "commit": commit() or None,
        "python": platform.python_version(),
        "kubernetes": {"apiServerFrom": API_SERVER_FROM, "schedulers": list(SCHEDULERS)},
    }
