"""The members of a group that wait, and what the largest of them request: kept as they come and go.

A tenant decides how many members a group has, so nothing here goes through all of them.
"""

from collections import Counter

from policy.objects.pod import Pod
from policy.objects.resources import Resources, largest

MOST_AMOUNTS = 512
"""Amounts in all different requests of a group together. Beyond them, what its largest members request is not known."""

Request = frozenset[tuple[str, int]]


class WaitingMembers:
    """Members of one group that wait, by UID, and how many of them there are of each different request."""

    def __init__(self) -> None:
        self._requests: dict[str, Request] = {}
        self._numbers: Counter[Request] = Counter()
        self._amounts = 0

    def __len__(self) -> int:
        return len(self._requests)

    def __contains__(self, uid: str) -> bool:
        return uid in self._requests

    def uids(self) -> list[str]:
        """Returns the UIDs of all of them."""
        return list(self._requests)

    def see(self, pod: Pod) -> None:
        """Adds a member, or changes it. One that waits no longer is removed."""
        if not pod.pending:
            self.remove(pod.uid)
            return
        request = frozenset(pod.request.items())
        if self._requests.get(pod.uid) != request:
            self.remove(pod.uid)
            self._requests[pod.uid] = request
            self._numbers[request] += 1
            if self._numbers[request] == 1:
                self._amounts += len(request)

    def remove(self, uid: str) -> None:
        """Removes a member. Does nothing for an unknown one."""
        request = self._requests.pop(uid, None)
        if request is not None:
            self._numbers[request] -= 1
            if not self._numbers[request]:
                del self._numbers[request]
                self._amounts -= len(request)

    def largest(self) -> Resources | None:
        """Returns the largest amount of each resource that one of them requests; None if that takes too long to say."""
        return largest(*map(dict, self._numbers)) if self._amounts <= MOST_AMOUNTS else None
