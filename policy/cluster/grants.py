"""Grants: pods that ``filter`` let through and that are not on a node yet.

Nothing tells an extender that a pod it passed was not placed after all, so each grant expires. A pod whose grants are
in vain again and again gets them for less and less time, so that it cannot keep others out.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from policy.objects.pod import Pod

SHORTEST = 1.0  # seconds: a binding that is on its way should still find its grant
SAME_ATTEMPT = 1.0  # seconds: the scheduler asks up to twice in one attempt (first for the nominated node)


class Grant(NamedTuple):
    """A grant, with the pod as it was then. Times are seconds on the caller's clock; it ends at ``deadline``."""

    pod: Pod
    given: float
    deadline: float


class Grants:
    """Grants by pod UID, and how often earlier ones of the same pod were in vain.

    ``seen`` is told when a pod that needs devices gets or loses a grant.
    """

    def __init__(self, seen: Callable[[Pod], None] = lambda _: None) -> None:
        self._seen = seen
        self._grants: dict[str, Grant] = {}
        self._of_group: dict[tuple[str, str], int] = {}
        self._failures: dict[str, int] = {}
        self._deadlines: list[tuple[float, str]] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._grants

    def __len__(self) -> int:
        return len(self._grants)

    def pods(self) -> Iterator[Pod]:
        """Yields the pods that hold a grant, as they were granted."""
        return (grant.pod for grant in self._grants.values())

    def pod(self, uid: str) -> Pod | None:
        """Returns the pod as it was granted, if it holds a grant."""
        grant = self._grants.get(uid)
        return grant.pod if grant else None

    def of_group(self, key: tuple[str, str]) -> int:
        """Returns how many pods of a group, by its namespace and name, hold a grant."""
        return self._of_group.get(key, 0)

    def give(self, pod: Pod, now: float, lifetime: float) -> None:
        """Grants a pod, or renews its grant. If a pod is asked for in a new attempt, the earlier grant was in vain."""
        earlier = self._grants.get(pod.uid)
        if earlier is not None and now - earlier.given > SAME_ATTEMPT:
            self._fail(pod.uid)
        deadline = now + max(lifetime / 2 ** self._failures.get(pod.uid, 0), SHORTEST)
        self._put(Grant(pod, now, deadline))
        heappush(self._deadlines, (deadline, pod.uid))

    def keep(self, pod: Pod, now: float, deadline: float) -> None:
        """Grants a pod that has not asked, until it asks or the deadline passes; earlier failures do not matter."""
        self._put(Grant(pod, now, deadline))
        if deadline < inf:
            heappush(self._deadlines, (deadline, pod.uid))

    def replace(self, pod: Pod) -> None:
        """Keeps a grant for a pod that is charged anew."""
        self._grants[pod.uid] = self._grants[pod.uid]._replace(pod=pod)

    def release(self, uid: str) -> None:
        """Takes back a grant, if there is one."""
        self._pop(uid)

    def forget(self, uid: str) -> None:
        """Takes back a grant and forgets the pod, which was placed or is gone."""
        self._pop(uid)
        self._failures.pop(uid, None)

    def came_to_nothing(self, pod: Pod) -> bool:
        """Whether a pod, as it is seen now, shows that its grant was in vain.

        It does if the scheduler has said something else of it than what the granted pod showed. A pod older than the
        granted one shows nothing.
        """
        granted = self.pod(pod.uid)
        if granted is None or pod.unschedulable is None or self.is_older(pod):
            return False
        return pod.unschedulable != granted.unschedulable

    def is_older(self, pod: Pod) -> bool:
        """Whether a pod is seen as it was before the scheduler asked for its grant: a watch may lag behind."""
        granted = self.pod(pod.uid)
        return granted is not None and 0 < pod.version <= granted.version

    def expire(self, now: float) -> list[str]:
        """Ends the grants whose time is over; returns the UIDs of their pods."""
        ended = []
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, uid = heappop(self._deadlines)
            grant = self._grants.get(uid)
            if grant is not None and grant.deadline == deadline:
                self._pop(uid)
                self._fail(uid)
                ended.append(uid)
        return ended

    def _put(self, grant: Grant) -> None:
        earlier = self._grants.get(grant.pod.uid)
        if earlier is not None:
            self._count(earlier.pod, -1)
        self._grants[grant.pod.uid] = grant
        self._count(grant.pod, 1)
        if grant.pod.needs is not None:
            self._seen(grant.pod)

    def _pop(self, uid: str) -> None:
        if (grant := self._grants.pop(uid, None)) is None:
            return
        self._count(grant.pod, -1)
        if grant.pod.needs is not None:
            self._seen(grant.pod)

    def _count(self, pod: Pod, times: int) -> None:
        if pod.group:
            key = pod.namespace, pod.group
            number = self._of_group[key] = self._of_group.get(key, 0) + times
            if not number:
                del self._of_group[key]

    def _fail(self, uid: str) -> None:
        self._failures[uid] = min(self._failures.get(uid, 0) + 1, 10)
