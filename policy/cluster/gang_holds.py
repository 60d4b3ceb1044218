"""Room that is held for the members of gangs that are starting.

The scheduler asks about one member after the other. So the room found for all of them together is held for a while:
each member is granted, for its node, before it asks.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from policy.objects.group import Key

HOLD_TIME = 30.0
"""Seconds for which room is held for a gang that is not complete."""


@dataclass(slots=True)
class Hold:
    """Room for one member; ``node`` is empty if it may go anywhere. ``asked``: the member was let through to it."""

    key: Key
    node: str
    asked: bool = False


class Holds:
    """The holds by member and by group, and their deadlines."""

    def __init__(self) -> None:
        self.of_member: dict[str, Hold] = {}
        self._members: dict[Key, set[str]] = {}
        self._on: dict[str, int] = {}
        self._deadlines: dict[Key, float] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self.of_member

    def __len__(self) -> int:
        return len(self.of_member)

    def get(self, uid: str) -> Hold | None:
        """Returns the hold for a member, if there is one."""
        return self.of_member.get(uid)

    def members(self, key: Key) -> Collection[str]:
        """Returns UIDs of the members of a group that have a hold."""
        return self._members.get(key, ())

    def uids(self) -> list[str]:
        """Returns UIDs of all members that have a hold."""
        return list(self.of_member)

    def nodes(self) -> Collection[str]:
        """Returns names of the nodes that room is held on."""
        return self._on.keys()

    def give(self, uid: str, hold: Hold, deadline: float) -> None:
        """Gives a member a hold; sets the deadline of all holds of its group to ``deadline``."""
        self.of_member[uid] = hold
        self._count(hold.node, 1)
        self._members.setdefault(hold.key, set()).add(uid)
        self._deadlines[hold.key] = deadline

    def take_back(self, uid: str) -> bool:
        """Takes back the hold of a member; returns whether there was one."""
        hold = self.of_member.pop(uid, None)
        if hold is None:
            return False
        self._count(hold.node, -1)
        members = self._members[hold.key]
        members.discard(uid)
        if not members:
            del self._members[hold.key]
        return True

    def move(self, uid: str, node: str) -> None:
        """Moves the hold of a member to another node."""
        hold = self.of_member[uid]
        self._count(hold.node, -1)
        hold.node = node
        self._count(node, 1)

    def overdue(self, now: float) -> Iterator[tuple[Key, list[str]]]:
        """Yields the groups whose time is over, each once, with the UIDs of the members that have not asked."""
        for key, deadline in list(self._deadlines.items()):
            if deadline <= now:
                del self._deadlines[key]
                yield key, [uid for uid in self.members(key) if not self.of_member[uid].asked]

    def _count(self, node: str, times: int) -> None:
        if node:
            number = self._on[node] = self._on.get(node, 0) + times
            if not number:
                del self._on[node]
