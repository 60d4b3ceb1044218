"""Finds in the events of schedulers that an extender does not answer."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from app.checks.finding import Finding, warning

RECENT = 900.0
"""Seconds for which an event counts: the API server keeps events for an hour, and the cause may be gone by then."""
SHOWN = 300
"""Maximum number of characters of a reason that are shown."""
_FAILED = re.compile(
    r'Post "(?P<url>https?://[^"]+)": (?P<why>.+)'
    r"|failed \w+ with extender at URL (?P<at>\S+), code (?P<code>\d+)"
)


def unanswered(events: list[dict[str, Any]], now: float) -> Iterator[Finding]:
    """Yields a finding for each scheduler and address that gave no answer lately, with the latest reason."""
    latest: dict[tuple[str, str], tuple[float, str]] = {}
    for event in events:
        failed, at = _FAILED.match(str(event.get("message"))), _time_of(event)
        if failed and at > now - RECENT:
            key = str(event.get("reportingComponent") or "unknown"), failed["url"] or failed["at"]
            why = failed["why"] or f"it answers {failed['code']}"
            latest[key] = max(latest.get(key, (0.0, "")), (at, why[:SHOWN]))
    for (scheduler, url), (at, why) in sorted(latest.items()):
        yield warning(f"the scheduler {scheduler} got no answer from {url} {max(0.0, now - at):.0f} s ago: {why}")


def _time_of(event: dict[str, Any]) -> float:
    """Returns when an event was last seen; 0 if it does not say so."""
    series = event.get("series")
    last = series.get("lastObservedTime") if isinstance(series, dict) else None
    try:
        given = last or event.get("lastTimestamp") or event.get("eventTime")
        return msgspec.convert(given, datetime).timestamp()
    except (msgspec.ValidationError, OverflowError):
        return 0.0
