"""How long pods ran that have ended, to estimate how long others run of which nobody says it.

Pods of one namespace are compared that have the same request and owners of the same kind. So a tenant's pods say
something only of that tenant's others.
"""

from collections import OrderedDict, deque
from statistics import median
from typing import TypeVar

from policy.objects.pod import Pod

ENOUGH = 5
"""The fewest pods from which something is estimated."""
AT_MOST, KINDS, NAMESPACES = 20, 10, 1000
"""The most pods of a kind, kinds of a namespace, and namespaces that are remembered: those that ended last."""
LASTS = 30 * 86_400.0
"""Seconds after which a pod that has ended says nothing any more."""

Key = TypeVar("Key")
Value = TypeVar("Value")
Kind = tuple[str, frozenset[tuple[str, int]]]
Lasted = deque[tuple[float, float]]


class EndedPods:
    """Remembers by kind when pods ended that have succeeded, and for how many seconds they ran."""

    def __init__(self) -> None:
        self._samples: OrderedDict[str, OrderedDict[Kind, Lasted]] = OrderedDict()

    def see(self, pod: Pod, before: Pod | None) -> None:
        """Notes a pod that has ended, once."""
        if not (pod.succeeded and pod.started and pod.finished_at > pod.started) or (before and before.succeeded):
            return
        kinds = _latest(self._samples, pod.namespace, OrderedDict[Kind, Lasted](), NAMESPACES)
        known = _latest(kinds, _kind(pod), Lasted(maxlen=AT_MOST), KINDS)
        known.append((pod.finished_at, pod.finished_at - pod.started))

    def estimate(self, pod: Pod, now: float) -> float | None:
        """Returns when a pod ends that runs, or starts ``now``: the median of those that ran for as long; None if few.

        Times are in seconds since the epoch.
        """
        start = pod.started or now
        kinds = self._samples.get(pod.namespace)
        known = kinds.get(_kind(pod), ()) if kinds is not None else ()
        lasted = [seconds for ended, seconds in known if ended > now - LASTS and start + seconds > now]
        return start + median(lasted) if len(lasted) >= ENOUGH else None


def _kind(pod: Pod) -> Kind:
    return pod.owner, frozenset(pod.request.items())


def _latest(known: OrderedDict[Key, Value], key: Key, new: Value, most: int) -> Value:
    """Returns the value of a key, which is the latest one from now on. Forgets the oldest key of too many."""
    value = known.setdefault(key, new)
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)
    return value
