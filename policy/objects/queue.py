"""Queues: what their owners declare. Seeds: Queue API, queue guarantee."""

from dataclasses import dataclass, field

from policy.objects.resources import Resources

LARGEST_WEIGHT = 2**31 - 1
ROOT = "root"
"""The name of the queue above all others: the cluster itself. A Queue of this name bounds it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A Queue in amounts. A resource absent from ``capability`` is unlimited, one absent from ``guarantee`` zero.

    ``errors`` says, field by field, what could not be read; ``readable`` is false where no spec of this object ever
    could be. ``notes`` names the fields of the spec that are kept and not enforced. ``uid`` tells it from a namesake.
    ``parent`` is the queue that it stands below. ``run_time`` is how long its pods run that say nothing themselves (see
    policy.objects.run_time). ``min_run_time``: see policy.cluster.protection. ``max_run_time``: see
    policy.quota.run_time_limit. If the object has other names of resources than those by which they count, ``written``
    are its capability and guarantee with its own names.
    """

    name: str
    weight: int = 1
    capability: Resources = field(default_factory=dict)
    guarantee: Resources = field(default_factory=dict)
    reclaimable: bool = True
    priority: int = 0
    state: str = "Open"
    errors: tuple[str, ...] = ()
    readable: bool = True
    notes: tuple[str, ...] = ()
    uid: str = ""
    parent: str = ROOT
    run_time: int = 0
    min_run_time: int = 0
    max_run_time: int = 0
    written: tuple[Resources, Resources] | None = None

    @property
    def open(self) -> bool:
        """Whether the queue admits new pods. One that cannot be read admits none: nobody knows what it allows."""
        return self.readable and self.state not in ("Closed", "Closing")


def is_raised(before: Queue | None, after: Queue | None) -> bool:
    """Whether a queue may have more than before of the cluster as it is now; None where it does not exist."""
    if before is None or after is None:
        return after is not None
    bounded = (after.capability.get(r, most + 1) > most for r, most in before.capability.items())
    surer = any(kept > before.guarantee.get(r, 0) for r, kept in after.guarantee.items())
    moved, opened = after.parent != before.parent, after.open and not before.open
    return after.weight > before.weight or surer or any(bounded) or opened or moved
