"""From when on pods may be evicted for a waiting one that ``quotaward.dev/min-run-time`` protects until then."""

from collections.abc import Sequence
from math import ceil

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.preemption import victims
from policy.preemption.plans import NoPlan, Plan
from policy.stepwise import Steps

MOST = 64
"""Moments that are considered: of more only some, so that the time told may be later than need be, never earlier."""
MINUTE, DAY = 60, 86400


def foreseen_steps(cluster: Cluster, pod: Pod, moments: Sequence[float]) -> Steps[tuple[float, Plan] | None]:
    """Returns the first of these moments at which there is a plan for a pod, and that plan, if nothing else changes.

    ``moments``: see NoPlan. It searches by bisection, as the later it is the more pods may go. Iterate to the end.
    """
    some = [*moments[:: 1 + len(moments) // MOST], moments[-1]] if moments else []
    found: tuple[float, Plan] | None = None
    low, high, at = 0, len(some) - 1, len(some) - 1
    while low <= high:
        result = yield from victims.search_steps(cluster, pod, as_of=some[at])
        if isinstance(result, NoPlan):
            low = at + 1
        else:
            found, high = (some[at], result), at - 1
        at = (low + high) // 2
    return found


def time_text(at: float, now: float) -> str:
    """Returns a time for people, rounded up to the minute: ``14:20 UTC``, or ``14:20 UTC in 3 days``."""
    minutes = ceil(at / MINUTE)
    days = minutes * MINUTE // DAY - int(now) // DAY
    hour, minute = divmod(minutes % (DAY // MINUTE), 60)
    when = {0: "", 1: " tomorrow"}.get(days, f" in {days} days")
    return f"{hour:02}:{minute:02} UTC{when}"
