"""Decides which gangs may start: refuses a member until its group could start as a whole, then holds room for all.

Seed: reserve action. It goes beyond that, as an extender is asked about one pod at a time. A refused group is not
looked at again until something has changed that could help it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policy.cluster.gang_holds import HOLD_TIME, Hold, Holds
from policy.cluster.gang_search import GangSearch
from policy.nodes import fit
from policy.nodes.packing import best_of, depends_on_others, full
from policy.objects.group import Group, Key, counting
from policy.objects.pod import Pod, turn
from policy.objects.resources import total
from policy.quota.gang_minimum import REFUSAL

if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Set as AbstractSet

    from policy.cluster.cluster import Cluster
    from policy.objects.resources import Resources
    from policy.objects.verdict import Refusal

BACKOFF = 5.0
"""Seconds of backoff after a gang was not complete in time; doubled by each further time."""
MOST_DOUBLED = 6
SMALL, PAUSE, LONGEST_PAUSE = 20, 0.01, 1.0
"""After a gang that lacks more members than ``SMALL`` could not start, filter pauses before it looks at it again.

Seconds for each further member, and at most. A pod that was woken need not wait.
"""


@dataclass(slots=True)
class Backoff:
    """How often a group was not complete in time, and until when it backs off."""

    failures: int = 0
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Looked:
    """The generation in which a group could not start, and until when that holds even in later ones."""

    as_of: tuple[int, int]
    until: float


class Gangs:
    """The pod groups of a cluster whose members wait for each other. ``hold_time`` is in seconds."""

    def __init__(self, cluster: Cluster, hold_time: float = HOLD_TIME) -> None:
        self.holds = Holds()
        self.search = GangSearch(cluster, self.holds)
        self._cluster = cluster
        self._hold_time = hold_time
        self._backoff: dict[Key, Backoff] = {}
        self._refused: dict[Key, Looked] = {}
        self._started: dict[Key, set[str]] = {}

    # What is asked

    def gang_of(self, pod: Pod) -> Group | None:
        """Returns the pod's group, if it takes more than one member to start."""
        group = self._cluster.membership.groups.get((pod.namespace, pod.group)) if pod.group else None
        return group if group is not None and group.minimum > 1 else None

    def gated(self, pod: Pod) -> Group | None:
        """Returns the pod's gang, if its members are refused until it can start."""
        group = self._starts_whole(pod)
        return None if group is None or self._cluster.is_exempt(pod) else group

    def _starts_whole(self, pod: Pod) -> Group | None:
        """Returns the pod's gang, if no member that rules apply to is let in until it can start."""
        group = self.gang_of(pod) if self._cluster.rules.gangs else None
        return None if group is None or group.native else group

    def ready(self, group: Group) -> set[str]:
        """Returns UIDs of the members that are bound (and stay), granted, or have succeeded in this run."""
        cluster = self._cluster
        members = cluster.groups.members(group.key)
        found = set(self.holds.members(group.key))  # a member that asked may not have been seen yet
        found.update(pod.uid for pod in counting(members))
        found.update(pod.uid for pod in members if pod.uid in cluster.grants)
        return found

    def started(self) -> AbstractSet[Key]:
        """Returns the groups with a member that stands on a node or has succeeded, and is not being deleted."""
        return self._started.keys()

    def lacks_some(self, group: Group) -> bool:
        """Whether a gang has started and lacks members: the rest is of no use until it has its minimum again.

        It has started if some member counts that need not be placed any more: it stands on a node, or has succeeded in
        this run. Within its queue, such a gang comes before jobs that start anew, whatever their share.
        """
        if group.minimum <= 1 or group.key not in self._started:
            return False
        there = any(True for _ in counting(self._cluster.groups.members(group.key)))
        return there and len(self.ready(group)) < group.minimum

    def incomplete_first(self, pods: list[Pod]) -> list[Pod]:
        """Reorders waiting pods: in each queue, pods of started gangs that lack members come first.

        Each queue keeps the positions of its pods among those of other queues. So does each namespace with pods in no
        queue, as they share nothing with others there.
        """
        cluster = self._cluster
        groups = {group.key: group for pod in pods if (group := self.gang_of(pod)) is not None}
        incomplete = {key for key, group in groups.items() if self.lacks_some(group)}
        if not incomplete:
            return pods
        where = [(queue := cluster.queue_of(pod), "" if queue else pod.namespace) for pod in pods]
        lines: dict[tuple[str, str], list[Pod]] = {}
        for line, pod in zip(where, pods, strict=True):
            lines.setdefault(line, []).append(pod)
        turns = {
            line: iter(sorted(waiting, key=lambda pod: (pod.namespace, pod.group) not in incomplete))
            for line, waiting in lines.items()
        }
        return [next(turns[line]) for line in where]

    def pending(self, group: Group) -> list[Pod]:
        """Returns the members that wait and have nothing yet, in queue order, except those that nobody may place."""
        cluster = self._cluster
        pods = (pod for pod in cluster.groups.members(group.key) if pod.pending and pod.uid not in cluster.grants)
        return sorted((pod for pod in pods if not (pod.terminating or pod.gated)), key=turn)

    def others(self, pod: Pod, group: Group) -> list[Pod]:
        """Returns the pending members without the pod."""
        return [other for other in self.pending(group) if other.uid != pod.uid]

    def missing(self, pod: Pod) -> int:
        """Returns how many members must be placed before the pod's group can start, including the pod; 0: none."""
        group = self.gated(pod)
        if group is None or pod.uid in self.holds:
            return 0
        return max(0, group.minimum - len(self.ready(group) - {pod.uid}))

    def mates(self, pod: Pod) -> list[Pod]:
        """Returns the other members that the pod can start only together with, as far as they exist."""
        group, missing = self.gated(pod), self.missing(pod)
        if group is None or missing <= 1:
            return []
        return self.others(pod, group)[: missing - 1]

    def asked_together(self, pod: Pod) -> Resources:
        """Returns the requests of the pod and of all in its queue that it can start only together with.

        Members that do not exist yet count with the pod's own request.
        """
        queue_of, missing = self._cluster.queue_of, self.missing(pod)
        members = [pod, *self.mates(pod)]
        lacking = max(0, missing - len(members))
        of_queue = [each.request for each in members if queue_of(each) == queue_of(pod)]
        return total((*of_queue, {resource: lacking * amount for resource, amount in pod.request.items()}))

    def is_waiting(self, pod: Pod) -> bool:
        """Whether the pod can start only together with others of its group, and nothing is held for them yet."""
        group = self.gated(pod)
        if group is None or pod.uid in self.holds:
            return False
        return self._at_least_missing(group) > 1 or self.missing(pod) > 1

    def takes_to_start(self, pod: Pod) -> int:
        """Returns how many pods must start together with this one, itself included: its group's minimum, or 1.

        It is 1 where no member is refused until the group can start. An exempt pod is as its group is: whether it is
        exempt may change while it waits.
        """
        group = self._starts_whole(pod)
        return group.minimum if group is not None else 1

    def lacks_members(self, pod: Pod) -> bool:
        """Whether the pod's group cannot start in any room, as it has too few members."""
        group = self.gated(pod)
        return group is not None and self._cluster.groups.number_of_members(group.key) < group.minimum

    def node_for(self, uid: str) -> str:
        """Returns the node where room is held for a member; empty if it may go anywhere."""
        hold = self.holds.get(uid)
        return hold.node if hold else ""

    def is_awaited(self, uid: str) -> bool:
        """Whether something is held for a pod, and it has not asked for it yet."""
        hold = self.holds.get(uid)
        return hold is not None and not hold.asked

    def nodes_held_from(self, pod: Pod) -> set[str]:
        """Returns nodes where the pod would take room that is held for members of gangs; none if it has a hold."""
        if not self.holds or pod.uid in self.holds:
            return set()
        table = self._cluster.table
        nodes = [node for node in self.holds.nodes() if node in table.rows]
        held = set(full(table, pod, nodes, self.search.coming(frozenset((pod.uid,)))))
        if depends_on_others(table, [pod]):
            held.update(node for node in nodes if node not in held and not fit.fits_on(table, pod, node, ()))
        return held

    def could_start(self, pod: Pod) -> bool:
        """Whether the pod's group could start now with this one as its first. Holds nothing."""
        missing = self.missing(pod)
        group = self.gated(pod)
        if missing <= 1 or group is None:
            return True
        if self._is_known_to_wait(group) or self.search.find(pod, self.others(pod, group), missing, None) is None:
            return False
        self._refused.pop(group.key, None)  # so that it is looked at when it asks
        return True

    def backs_off_until(self, key: Key) -> float:
        """Returns until when a group that was not complete in time backs off; 0 if it does not."""
        backoff = self._backoff.get(key)
        return backoff.until if backoff else 0.0

    # What is decided

    def refusal(self, pod: Pod, offered: Collection[str] | None, now: float) -> Refusal | None:
        """Returns why its group keeps a pod that the rules admit from being placed, or None.

        ``offered`` are the nodes that the scheduler offers. If the group can start, holds room for as many members as
        that takes, this one among them, and grants the others.
        """
        group = self.gated(pod)
        if group is None:
            return None
        if pod.uid in self.holds:
            return None if self._has_its_place(pod, offered) else REFUSAL
        looked = self._refused.get(group.key)
        waits = self._is_known_to_wait(group) or (looked is not None and now < looked.until)
        at_least = self._at_least_missing(group)
        missing = at_least if at_least > 1 and waits else self.missing(pod)
        if missing <= 1 or waits:
            return REFUSAL if missing > 1 else None
        found = self.search.find(pod, self.others(pod, group), missing, offered)
        if found is None:
            return self._refuse(group, missing, now)
        self._hold(group, pod, found, now)
        return None

    def _refuse(self, group: Group, missing: int, now: float) -> Refusal:
        self._refused[group.key] = Looked(
            self._cluster.generations.of_placing, now + min(PAUSE * max(0, missing - SMALL), LONGEST_PAUSE)
        )
        return REFUSAL

    def let_through(self, uid: str) -> None:
        """Notes that a member with a hold has asked and was let through to its node."""
        hold = self.holds.get(uid)
        if hold is not None and not hold.asked:
            hold.asked = True
            self._cluster.grants.release(uid)  # the grant from before it asked was not in vain

    def tick(self, now: float) -> None:
        """Lets time pass: takes back holds that were not asked for in time; their groups back off."""
        for key, late in self.holds.overdue(now):
            if not late:
                self._backoff.pop(key, None)
                continue
            backoff = self._backoff.setdefault(key, Backoff())
            backoff.until = now + BACKOFF * 2 ** min(backoff.failures, MOST_DOUBLED)
            backoff.failures += 1
            for uid in late:
                self._cluster.states.withdraw(uid)
        for key, backoff in list(self._backoff.items()):
            if key not in self._cluster.membership.groups:
                del self._backoff[key]
            elif backoff.until and backoff.until <= now:
                backoff.until = 0.0
                self._cluster.generations.admission += 1

    def note(self, pod: Pod) -> None:
        """Sees a member: notes whether it stands on a node or has succeeded, and is not being deleted."""
        if (pod.assigned or pod.succeeded) and not pod.terminating:
            self._started.setdefault((pod.namespace, pod.group), set()).add(pod.uid)
        else:
            self.lose(pod)

    def lose(self, pod: Pod) -> None:
        """Notes that a member is gone, or has left its node. Does nothing for one that was not there."""
        key = pod.namespace, pod.group
        there = self._started.get(key)
        if there is not None and pod.uid in there:
            self._cluster.generations.gangs += 1
            there.discard(pod.uid)
            if not there:
                del self._started[key]

    def changed(self, key: Key) -> None:
        """Notes that a group or one of its members has changed, so that the group may be able to start."""
        if self._refused.pop(key, None) is not None:
            self._cluster.generations.admission += 1

    def has_landed(self) -> None:
        """Notes that a granted pod was seen on its node: less has to be kept free for pods that may land anywhere."""
        if self._refused:
            self._cluster.generations.admission += 1

    def forget(self, key: Key) -> None:
        """Forgets a group that has no members any more."""
        self._refused.pop(key, None)
        self._backoff.pop(key, None)

    # What is known without a search

    def _at_least_missing(self, group: Group) -> int:
        """Returns a lower bound of the members that must be placed before a group can start, in constant time."""
        ready = self._cluster.grants.of_group(group.key) + len(self.holds.members(group.key))
        return group.minimum - ready - len(self._started.get(group.key, ()))

    def _is_known_to_wait(self, group: Group) -> bool:
        """Whether the group is known not to start now: it backs off, or nothing has changed since it was refused."""
        backoff = self._backoff.get(group.key)
        if backoff is not None and backoff.until > 0:
            return True
        looked = self._refused.get(group.key)
        return looked is not None and looked.as_of == self._cluster.generations.of_placing

    def _has_its_place(self, pod: Pod, offered: Collection[str] | None) -> bool:
        """Whether a member can go where room is held for it, or to another offered node; then moves the hold there."""
        hold = self.holds.get(pod.uid)
        if hold is None or not hold.node or offered is None or hold.node in offered:
            return True
        cluster = self._cluster
        node = best_of(cluster.table, pod, set(offered) - cluster.reservations.nodes_reserved_from(pod))
        if not node:
            return False
        self.holds.move(pod.uid, node)
        cluster.generations.admission += 1  # there is room where it would have gone
        cluster.table.add(pod, node)
        return True

    def _hold(self, group: Group, asking: Pod, found: dict[str, tuple[Pod, str]], now: float) -> None:
        cluster, deadline = self._cluster, now + self._hold_time
        cluster.states.keep_all([member for uid, (member, _) in found.items() if uid != asking.uid], now, deadline)
        for uid, (member, node) in found.items():
            self.holds.give(uid, Hold(group.key, node), deadline)
            if node:
                cluster.table.add(member, node)
        cluster.generations.admission += 1  # they are to be woken
