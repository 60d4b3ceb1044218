"""Finds in events that an extender does not answer schedulers, or that the API server refuses evictions or new pods."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from app.actuators.events import IS_TRIED_AGAIN
from app.actuators.kubernetes import WEBHOOK
from app.checks.finding import Finding, info, warning
from app.client import HANGS
from app.store.pod_object import PodObject
from policy.explain.unanswered import unanswered_in
from policy.quota.rules import RULES, named_in

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
            yield info(
                f"{text}. It has placed a pod since: if it has to ask that address about every pod, this is over"
            )
        else:
            yield warning(f"{text}. If a pod that names this scheduler has got a node since, this is over")


def refused(events: list[dict[str, Any]], waiting: Iterable[PodObject]) -> Iterator[Finding]:
    """Yields a finding for each rule that refused waiting pods when they were last tried, in the order of the rules."""
    names = {pod.metadata.uid: f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in waiting}
    latest: dict[str, tuple[float, str]] = {}
    for event in events:
        uid = str((event.get("involvedObject") or {}).get("uid"))
        if uid in names:
            latest[uid] = max(latest.get(uid, (0.0, "")), (_time_of(event), _message(event)))
    by_rule: dict[str, list[str]] = {}
    for uid, (_, message) in latest.items():
        if rule := named_in(message):
            by_rule.setdefault(rule.name, []).append(names[uid])
    for rule in RULES:
        if pods := by_rule.get(rule.name):
            wait = "1 pod waits" if len(pods) == 1 else f"{len(pods)} pods wait"
            first = min(pods)
            yield info(f"{wait} for the rule {rule.name} ({rule.text}), such as {first}: quotaward explain {first}")


def failed_evictions(events: list[dict[str, Any]], now: float) -> Iterator[Finding]:
    """Yields a finding for the latest eviction that failed lately; not for those that wait for a disruption budget."""
    told = ((_time_of(event), _message(event)) for event in events)
    failed = [(at, message) for at, message in told if IS_TRIED_AGAIN in message]
    at, message = max(failed, default=(0.0, ""))
    if at > now - RECENT:
        yield warning(f"{max(0.0, now - at):.0f} s ago an {message[:LONGEST]}")


def pods_not_made(events: list[dict[str, Any]], made: list[dict[str, Any]], now: float) -> Iterator[Finding]:
    """Yields a finding for the latest pod that a controller lately failed to create, as a webhook gave no answer.

    ``made``: events of pods that were created. It is only an info if each such controller has created a pod since.
    """
    last: dict[str, float] = {}
    for event in made:
        last[_owner(event)] = max(last.get(_owner(event), 0.0), _time_of(event))
    failed = [event for event in events if WEBHOOK in _message(event) and _time_of(event) > now - RECENT]
    for event in sorted(failed, key=lambda each: (not _is_over(each, last), _time_of(each)))[-1:]:
        ago = f"{max(0.0, now - _time_of(event)):.0f} s ago"
        text = f"{ago} no pod could be created for {_owner(event)}: {_message(event)[:LONGEST]}"
        over = _is_over(event, last)
        yield info(f"{text}. A pod was created for it since, so this is over") if over else warning(text)


def _is_over(event: dict[str, Any], last: dict[str, float]) -> bool:
    """Whether a pod was created for the same owner after this event; ``last``: when one was, by owner."""
    return last.get(_owner(event), 0.0) > _time_of(event)


def _owner(event: dict[str, Any]) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind')} {about.get('namespace')}/{about.get('name')}"


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
