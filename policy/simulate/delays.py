"""How long it takes until somebody is evicted, where a cluster is played in time: so long others may end by themselves.

Trials that ask how a cluster comes to rest as things are have none: there whoever may be evicted is, at once.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds: for how long a pod waits before others are evicted for it, and how long before they are given notice."""

    claim: float = 0.0
    notice: float = 0.0


AT_ONCE = Delays()
