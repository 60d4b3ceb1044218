"""Finds in events that an extender does not answer schedulers, or that the API server refuses evictions or new pods."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from app.actuators.events import IS_TRIED_AGAIN
from app.actuators.kubernetes import WEBHOOK
from app.checks.finding import Finding, info, warning
from app.client import HANGS
from policy.explain.unanswered import unanswered_in

RECENT = 900.0
"""Seconds for which an event counts: the API server keeps events for an hour, and the cause may be gone by then."""
LATE = ("Client.Timeout", "deadline exceeded")
CONNECTING = "waiting for connection"
"""Words of kube-scheduler if an answer is late, and if even the connection is."""
LONGEST = 600
"""Maximum number of characters of such an Event that are shown."""


def unanswered(events: list[dict[str, Any]], placed: list[dict[str, Any]], now: float) -> Iterator[Finding]:
    """Yields a finding for each scheduler and address that gave no answer lately, with the latest reason.

    It is only an info if that scheduler has placed a pod since, as it would not without an answer. ``events`` are of
    pods that were not scheduled, and ``placed`` of those that were.
    """
    latest: dict[tuple[str, str], tuple[float, str]] = {}
    for event in events:
        failed, at = unanswered_in(_message(event)), _time_of(event)
        if failed and at > now - RECENT:
            key = str(event.get("reportingComponent") or "unknown"), failed.url
            latest[key] = max(latest.get(key, (0.0, "")), (at, failed.why))
    last: dict[str, float] = {}
    for event in placed:
        scheduler = str(event.get("reportingComponent") or "unknown")
        last[scheduler] = max(last.get(scheduler, 0.0), _time_of(event))
    for (scheduler, url), (at, why) in sorted(latest.items()):
        text = f"the scheduler {scheduler} got no answer from {url} {max(0.0, now - at):.0f} s ago: {why}"
        if any(late in why for late in LATE) and CONNECTING not in why:
            text += f"; {HANGS}"
        if last.get(scheduler, 0.0) > at:
            yield info(f"{text}. It has placed a pod since, so this is over if it asks that address about all pods")
        else:
            yield warning(f"{text}. If a pod that names this scheduler has got a node since, this is over")


def failed_evictions(events: list[dict[str, Any]], now: float) -> Iterator[Finding]:
    """Yields a finding for the latest eviction that failed lately; not for those that wait for a disruption budget."""
    told = ((_time_of(event), _message(event)) for event in events)
    failed = [(at, message) for at, message in told if IS_TRIED_AGAIN in message]
    at, message = max(failed, default=(0.0, ""))
    if at > now - RECENT:
        yield warning(f"{max(0.0, now - at):.0f} s ago an {message[:LONGEST]}")


def pods_not_made(events: list[dict[str, Any]], now: float) -> Iterator[Finding]:
    """Yields a finding for the latest pod that a controller lately failed to create, as a webhook gave no answer."""
    latest = max((event for event in events if WEBHOOK in _message(event)), key=_time_of, default={})
    if (at := _time_of(latest)) > now - RECENT:
        about = latest.get("involvedObject") or {}
        whose = f"{about.get('kind')} {about.get('namespace')}/{about.get('name')}"
        why = _message(latest)[:LONGEST]
        yield warning(f"{max(0.0, now - at):.0f} s ago no pod could be created for {whose}: {why}")


def _message(event: dict[str, Any]) -> str:
    return str(event.get("message"))


def _time_of(event: dict[str, Any]) -> float:
    """Returns when an event was last seen; 0 if it does not say so."""
    series = event.get("series")
    last = series.get("lastObservedTime") if isinstance(series, dict) else None
    try:
        given = last or event.get("lastTimestamp") or event.get("eventTime")
        return msgspec.convert(given, datetime).timestamp()
    except (msgspec.ValidationError, OverflowError):
        return 0.0
