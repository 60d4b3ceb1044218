"""Pod groups: pods that are of use together only, from a minimum on; and which members count towards it.

Seed: reserve action (Job Ready, Job Condition Ready).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from policy.objects.pod import Pod

LARGEST_MINIMUM = 2**31 - 1
"""What fits into the field of the definitions that have one."""

Key = tuple[str, str]
"""Namespace and name of a group."""


@dataclass(frozen=True, slots=True)
class Group:
    """A pod group. ``name`` has the kind before it (``KIND/NAME``), as groups of different kinds may be namesakes.

    ``minimum`` is how many members it takes to start; ``created`` in seconds since the epoch. ``native``: the scheduler
    itself places its members together.
    """

    namespace: str
    name: str
    minimum: int = 1
    queue: str = ""
    created: float = 0.0
    native: bool = False

    @property
    def key(self) -> Key:
        """What tells it from all others."""
        return self.namespace, self.name


def counting(members: Collection[Pod]) -> Iterator[Pod]:
    """The members of a group that count towards its minimum, beside those that were let through.

    These are the ones that stand on a node, and those that have succeeded in the run that is under way. None of them is
    being deleted: what is evicted may exit with 0, and has not done its work for that.
    """
    yield from (pod for pod in members if pod.assigned and not pod.terminating)
    yield from succeeded_in_this_run(members)


def succeeded_in_this_run(members: Collection[Pod]) -> Iterator[Pod]:
    """The members that have succeeded, and are tied to one that has not finished.

    Pods of an earlier run may still be there when a group runs again. Two ties show that members are of one run: they
    have the same controller (a Job makes the next pod when one has finished, or anew when one has failed), or they were
    there at the same time: one finished no earlier than the oldest of the others was created. Where the time of the
    end is not known, the creation counts for it. If all members have finished, nothing is being run, and all count.
    """
    unfinished = [pod for pod in members if not pod.finished]
    oldest = min((pod.created for pod in unfinished), default=0.0)
    controllers = {pod.controller for pod in unfinished if pod.controller}
    for pod in members:
        tied = pod.controller in controllers or (pod.finished_at or pod.created) >= oldest
        if pod.succeeded and not pod.terminating and tied:
            yield pod
