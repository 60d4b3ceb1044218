"""Pod groups: pods that are of use only together, from a minimum on; and which members count towards it.

Seed: reserve action (Job Ready, Job Condition Ready).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from policy.objects.pod import Pod

LARGEST_MINIMUM = 2**31 - 1
"""The largest value of the field in the definitions that have one."""

Key = tuple[str, str]
"""Namespace and name of a group."""


@dataclass(frozen=True, slots=True)
class Group:
    """A pod group. ``name`` has the kind before it (``KIND/NAME``), as groups of different kinds may be namesakes.

    ``minimum`` is the number of members that it needs to start; ``created`` in seconds since the epoch. ``native``: the
    scheduler itself places its members together. ``run_time`` is how long it says that each member runs (see
    policy.objects.run_time).
    """

    namespace: str
    name: str
    minimum: int = 1
    queue: str = ""
    created: float = 0.0
    native: bool = False
    run_time: int = 0

    @property
    def key(self) -> Key:
        """Its unique key."""
        return self.namespace, self.name


def counting(members: Collection[Pod]) -> Iterator[Pod]:
    """Yields the members of a group that count towards its minimum, besides those that were let through.

    These are the ones that stand on a node, and those that have succeeded in the present run. None of them is being
    deleted: an evicted pod may exit with 0 without having done its work.
    """
    yield from (pod for pod in members if pod.assigned and not pod.terminating)
    yield from succeeded_in_this_run(members)


def succeeded_in_this_run(members: Collection[Pod]) -> Iterator[Pod]:
    """Yields the members that have succeeded, and are tied to one that has not finished.

    Pods of an earlier run may still be there when a group runs again. Two ties show that members are of one run. The
    first is the same controller: a Job makes the next pod when one has finished, or a new one when one has failed. The
    second is that they were there at the same time: one finished no earlier than the oldest of the others was created.
    If the time of the end is not known, the creation counts for it. If all members have finished, nothing is being run,
    and all count.
    """
    succeeded = [pod for pod in members if pod.succeeded and not pod.terminating]
    if not succeeded:
        return
    unfinished = [pod for pod in members if not pod.finished]
    oldest = min((pod.created for pod in unfinished), default=0.0)
    controllers = {pod.controller for pod in unfinished if pod.controller}
    for pod in succeeded:
        if pod.controller in controllers or (pod.finished_at or pod.created) >= oldest:
            yield pod
