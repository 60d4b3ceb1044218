"""Times as people and Kubernetes read them."""

from datetime import UTC, datetime

LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The last time that can be written, in seconds since the epoch: the end of the year 9999."""


def rfc3339(seconds: float) -> str:
    """Formats seconds since the epoch, to the second. A time after the year 9999 is written as the last one before.

    Users choose how long their pods and Jobs may run, so an end may be as late as that.
    """
    return datetime.fromtimestamp(min(seconds, LAST), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_or_empty(seconds: float) -> str:
    """Formats seconds since the epoch, to the second; empty for 0, which means that no time is known."""
    return rfc3339(seconds) if seconds else ""
