"""Room that is kept for somebody: from the first eviction until the pod it is for has been bound, or is given up.

Victims go at different times, and what they leave behind would be taken by the next who asks. So what a plan frees
is held for its preemptor, in its quota, in the pool and on the node. A nominated node alone is no lock: kube-scheduler
erases it with every failed attempt of the pod.
"""

from dataclasses import dataclass

RECLAIM = "Reclaim"
HELD = "node-held"
HELD_TEXT = "node(s) held for a pod that is being given room"


@dataclass(frozen=True, slots=True)
class PodName:
    """Which pod: the UID tells it from a namesake."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room on a node that is kept for a pod, and who goes for it.

    ``failures`` is how many plans for the pod had failed before. ``freed_at``: the last victim was gone;
    ``blocked_since``: some eviction fails; ``failed_at``: it was given up, and is only remembered, so that whoever
    leads next waits as long as who led then. Times are seconds since the epoch, zero where it has not come so far.
    """

    name: str
    pod: PodName
    node: str
    victims: tuple[PodName, ...]
    since: float
    reason: str = RECLAIM
    failures: int = 0
    freed_at: float = 0.0
    blocked_since: float = 0.0
    failed_at: float = 0.0
