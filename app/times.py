"""Times and durations as people and Kubernetes write them."""

import re
from datetime import UTC, datetime

LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The last time that can be written, in seconds since the epoch: the end of the year 9999."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)
_SIZES = (86400, 3600, 60, 1)


class InvalidDuration(ValueError):
    """The text is not a duration."""


def rfc3339(seconds: float) -> str:
    """Formats seconds since the epoch, to the second. A time after the year 9999 is written as the last one before.

    Users choose how long their pods and Jobs may run, so an end may be as late as that.
    """
    return datetime.fromtimestamp(min(seconds, LAST), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_or_empty(seconds: float) -> str:
    """Formats seconds since the epoch, to the second; empty for 0, which means that no time is known."""
    return rfc3339(seconds) if seconds else ""


def parse_duration(text: str) -> float:
    """Parses a duration like ``90``, ``2m30s`` or ``1d12h`` into seconds. Raises InvalidDuration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise InvalidDuration(f"{text!r} is not a duration, like 90, 2m30s or 1d12h")
    return sum(float(part) * size for part, size in zip(match.groups(), _SIZES, strict=True) if part)
