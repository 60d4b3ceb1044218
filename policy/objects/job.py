"""Jobs: what is of use as a whole. A pod group is one; a pod in no group is a job of its own, with a minimum of 1.

Seed: reserve action, Terminology. A pod that names a group which does not exist is in none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policy.objects.group import Group
from policy.objects.pod import Pod

ALONE = "pods/"
"""What stands before the name of a pod that is a job of its own, as a kind stands before that of a group."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job and its members, as they stand now.

    ``standing``: on a node and not on their way out, or succeeded in this run. ``granted`` were let through and are not
    bound yet; ``waiting`` have neither, in the order of their turn. ``created`` in seconds since the epoch, 0 if not
    known.
    """

    namespace: str
    name: str
    minimum: int
    created: float
    standing: tuple[Pod, ...]
    granted: tuple[Pod, ...]
    waiting: tuple[Pod, ...]

    @property
    def ready(self) -> int:
        """How many members count towards the minimum (Job Ready)."""
        return len(self.standing) + len(self.granted)

    @property
    def priority(self) -> int:
        """The highest priority of the members that are not there yet."""
        return max((pod.priority for pod in self.waiting + self.granted), default=0)

    @property
    def title(self) -> str:
        """What people call it: namespace/name."""
        return f"{self.namespace}/{short(self.name)}"


def job_name(groups: Mapping[tuple[str, str], Group], pod: Pod) -> str:
    """The job that a pod is in, by the name of its group with its kind, or by its own."""
    return pod.group if (pod.namespace, pod.group) in groups else f"{ALONE}{pod.name}"


def short(name: str) -> str:
    """The name of a job without the kind."""
    return name.rpartition("/")[2]
