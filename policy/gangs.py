"""Pod groups: pods that are of use together only, from a minimum on; and the room held for those that are starting.

Seed: reserve action (Job Ready, Job Condition Ready). The scheduler asks about one member after the other, so what was
found for all of them together is held for a while: each member is granted, for its node, before it asks.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from policy.pod import Pod
from policy.verdict import Refusal

MINIMUM = "gang-minimum"
TEXT = "Gang minimum cannot be placed yet"
REFUSAL = Refusal(MINIMUM, TEXT)
HOLD_TIME = 30.0
BACKOFF = 5.0
"""Seconds for which others go first after a gang was not complete in time; doubled by each further time."""
MOST_DOUBLED = 6
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


@dataclass(slots=True)
class Hold:
    """Room for one member; ``node`` is empty where it may go anywhere. ``asked``: the member was let through to it."""

    key: Key
    node: str
    asked: bool = False


class Holds:
    """What is held, by member and by group, and until when."""

    def __init__(self) -> None:
        self._of_member: dict[str, Hold] = {}
        self._members: dict[Key, set[str]] = {}
        self._on: dict[str, int] = {}
        self._deadlines: dict[Key, float] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._of_member

    def __len__(self) -> int:
        return len(self._of_member)

    def get(self, uid: str) -> Hold | None:
        """What is held for a member."""
        return self._of_member.get(uid)

    def members(self, key: Key) -> Collection[str]:
        """UIDs of the members of a group that something is held for."""
        return self._members.get(key, ())

    def uids(self) -> list[str]:
        """UIDs of all members that something is held for."""
        return list(self._of_member)

    def nodes(self) -> Collection[str]:
        """Names of the nodes that room is held on."""
        return self._on.keys()

    def give(self, uid: str, hold: Hold, deadline: float) -> None:
        """Holds something for a member; what is held for its group is so until ``deadline``."""
        self._of_member[uid] = hold
        self._count(hold.node, 1)
        self._members.setdefault(hold.key, set()).add(uid)
        self._deadlines[hold.key] = deadline

    def take_back(self, uid: str) -> bool:
        """Holds nothing for a member any more; whether there was something."""
        hold = self._of_member.pop(uid, None)
        if hold is None:
            return False
        self._count(hold.node, -1)
        members = self._members[hold.key]
        members.discard(uid)
        if not members:
            del self._members[hold.key]
        return True

    def move(self, uid: str, node: str) -> None:
        """Holds room for a member on another node than before."""
        hold = self._of_member[uid]
        self._count(hold.node, -1)
        hold.node = node
        self._count(node, 1)

    def overdue(self, now: float) -> Iterator[tuple[Key, list[str]]]:
        """The groups whose time is over, each once, with the UIDs of those members that have not asked."""
        for key, deadline in list(self._deadlines.items()):
            if deadline <= now:
                del self._deadlines[key]
                yield key, [uid for uid in self.members(key) if not self._of_member[uid].asked]

    def _count(self, node: str, times: int) -> None:
        if node:
            number = self._on[node] = self._on.get(node, 0) + times
            if not number:
                del self._on[node]
