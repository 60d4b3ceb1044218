"""Events that could help waiting pods, so that these have their claim again.

kube-scheduler calls that queueing hints: which pods may be placed after an event. Events are room on a node, a quota or
a queue that was raised, and a disruption budget that allows more evictions. Some of the pods that have lost their
claim get it back at once (see policy.cluster.unschedulable), the others at the next look.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from policy.cluster.helped import Helped
from policy.cluster.room import FreedRoom
from policy.objects.resources import total
from policy.quota.kept_nodes import RESERVED, kept_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources


class QueueingHints:
    """The room that has come on nodes since the last look. ``helped`` counts what could help pods."""

    def __init__(self, cluster: Cluster) -> None:
        self.helped = Helped()
        self._rooms: dict[str, FreedRoom] = {}
        self._looked = self._less_is_reserved = False
        self._cluster = cluster

    def count(self, pod: Pod) -> int:
        """Returns how often something has happened that could help this waiting pod, since the first call for it."""
        return self.helped.count(pod, self._cluster.gangs.takes_to_start(pod))

    def look(self, now: float) -> None:
        """Takes claims from pods that have waited in vain for too long, and gives back claims if room has come."""
        rooms, self._rooms = list(self._rooms.values()), {}

        def helps(pod: Pod) -> bool:
            return any(room.helps(self._cluster, pod) for room in rooms)

        def is_enough(pod: Pod) -> bool:
            return any(room.is_enough(self._cluster, pod) for room in rooms)

        self._looked = True
        if self._less_is_reserved:
            self._less_is_reserved, refused = False, self._cluster.attempts.refused
            self.help([uid for uid, pod in refused.items() if _is_kept_by_reservations(pod)])
        self._assign_again(self._cluster.attempts.unschedulable.judge(now, helps if rooms else None))
        self._cluster.attempts.ahead.judge(now, is_enough if rooms else None)
        if rooms:
            self.helped.judge(helps)

    def room_came(self, room: FreedRoom) -> None:
        """Gives pods that new room on a node could help their claim again, at once, before others get the room.

        Does nothing before the first look, while existing objects are being read, nor within a trial.
        """
        cluster = self._cluster
        if not self._looked or cluster.changes.in_trial:
            return
        known = self._rooms.get(room.node)
        self._rooms[room.node] = (
            room if known is None else FreedRoom(room.node, total((known.freed, room.freed)), known.before)
        )
        if (node := cluster.table.node(room.node)) is not None and not node.usable:
            cluster.generations.shares += 1  # such a node counts with what its pods use
        self._assign_again(cluster.attempts.unschedulable.help(partial(room.helps, cluster)))
        cluster.attempts.ahead.help(partial(room.is_enough, cluster))

    def pod_left(self, uid: str, node: str, request: Resources) -> None:
        """Sees a pod that stood on a node: if it has left, or takes less there, there is room.

        The room of a victim is held for its preemptor, and helps nobody else.
        """
        cluster = self._cluster
        if any(victim.uid == uid for each in cluster.reservations.plans.values() for victim in each.victims):
            return
        where, left = cluster.destinations.stands(uid)
        freed = request if where != node else {r: m for r, a in request.items() if (m := a - left.get(r, 0)) > 0}
        if freed:
            self.room_came(FreedRoom(node, freed, cluster.table.node(node)))

    def budget_eased(self, namespace: str) -> None:
        """Notes that a budget allows more evictions: that helps pods whose plans with victims there were given up."""
        given_up = self._cluster.reservations.given_up.values()
        failed = (each for each in given_up if any(victim.namespace == namespace for victim in each.victims))
        self.help([each.pod.uid for each in failed])

    def may_be_lent(self, is_own: Callable[[Pod], bool]) -> None:
        """Notes that a quota or queue is guaranteed less: it may borrow now, so others may take that back."""
        pods = self._cluster.pods
        self.helped.note([uid for uid in self.helped.uids() if not is_own(pods[uid])])

    def help(self, uids: Iterable[str]) -> None:
        """Notes that something has happened that could help these pods alone."""
        uids = list(uids)
        self.helped.note(uids)
        self._assign_again(self._cluster.attempts.unschedulable.help_pods(uids))

    def less_is_reserved(self) -> None:
        """Notes that less is reserved: at the next look that helps pods that were kept from nodes.

        Many reservations may change at a time, and the pods that wait are looked at once for all of them.
        """
        self._less_is_reserved = True

    def _assign_again(self, uids: Iterable[str]) -> None:
        self._cluster.states.assign_again([uid for uid in uids if uid in self._cluster.pods])


def _is_kept_by_reservations(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that nodes were reserved for others."""
    return pod.unschedulable is not None and kept_from(pod.unschedulable.message) is RESERVED
