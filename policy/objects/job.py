"""Jobs: pods that are of use only as a whole. A pod group is a job; a pod in no group is one, with a minimum of 1.

Seed: reserve action, Terminology. A pod that names a group which does not exist is in none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policy.objects.group import Group
from policy.objects.pod import Pod

ALONE = "pods/"
"""The prefix of the name of a pod that is a job of its own, in the place of a group's kind."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job and its members, as they stand now.

    ``standing``: on a node and not terminating, or succeeded in this run. ``granted`` were let through and are not
    bound yet; ``waiting`` have neither, in their order. ``created`` in seconds since the epoch, 0 if not known.
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
        """The number of members that count towards the minimum (Job Ready)."""
        return len(self.standing) + len(self.granted)

    @property
    def has_started(self) -> bool:
        """Whether as many members stand as it takes to start."""
        return len(self.standing) >= self.minimum

    @property
    def priority(self) -> int:
        """The highest priority of the members that are not on a node yet."""
        return max((pod.priority for pod in self.waiting + self.granted), default=0)

    @property
    def title(self) -> str:
        """Its name for people: namespace/name."""
        return f"{self.namespace}/{short(self.name)}"


def job_name(groups: Mapping[tuple[str, str], Group], pod: Pod) -> str:
    """Returns the name of a pod's job: that of its group with its kind, or its own with ``ALONE``."""
    return pod.group if (pod.namespace, pod.group) in groups else f"{ALONE}{pod.name}"


def short(name: str) -> str:
    """Returns the name of a job without the kind."""
    return name.rpartition("/")[2]
