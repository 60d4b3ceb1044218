"""Evicts a pod beside the plans of reclaim: counts and remembers it, and writes the Event."""

from contextlib import AbstractContextManager
from dataclasses import replace

import structlog

from app.actuators.events import Event
from app.actuators.protocol import ActionFailed, Actuator, Blocked
from app.observability import metrics
from app.observability.evictions import Evicted
from app.store.store import Store
from policy.objects.pod import Pod
from policy.preemption.reclaim import name_of

log = structlog.get_logger(__name__)


async def evict(
    store: Store,
    actuator: Actuator,
    pod: Pod,
    description: Evicted,
    event: Event,
    writing: AbstractContextManager[None],
) -> bool:
    """Evicts a pod; returns whether that was granted. A refusal is counted and logged, and not raised.

    ``description`` is what is remembered of it, ``event`` is written once it is evicted. ``writing`` is entered for the
    write, and sees its failure (``WriteSeats.writing_in``).
    """
    try:
        with writing:
            await actuator.evict(name_of(pod))
    except ActionFailed as failure:
        outcome = "blocked" if isinstance(failure, Blocked) else "failed"
        log.info("not evicted", victim=pod.title, reason=description.reason, outcome=outcome, error=str(failure))
    else:
        outcome = "evicted"
        store.evictions.note(description)
        actuator.report(replace(event, evicted=(description,)))
    metrics.EVICTIONS.labels(description.reason, outcome).inc()
    return outcome == "evicted"
