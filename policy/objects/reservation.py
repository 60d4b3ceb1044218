"""Reservations: room that is being made for a pod, or whole nodes for a job that starves.

Reclaim: victims end at different times, and the next pod that asks would take the room that they leave. So a plan holds
what it frees for its preemptor: in its quota, in the pool and on the node. A nominated node alone is no lock:
kube-scheduler erases it with every failed attempt of the pod.

Starving: nobody is evicted, and nothing is counted. A reserved node takes no other pods until the job's pods have come
(seed: reserve action, Reserved).
"""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from policy.objects.come_members import ComeMembers
from policy.objects.owned_pods import owner_uid
from policy.objects.pod import Pod
from policy.objects.queued_job import QueuedJob, is_member, stand_in_of, uid_of_stand_in

RECLAIM = "Reclaim"
STARVING = "Starving"


@dataclass(frozen=True, slots=True)
class PodName:
    """The name of a pod; the UID tells it from a namesake."""

    namespace: str
    name: str
    uid: str

    @property
    def title(self) -> str:
        """Its name for people: namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room on a node that is kept for a pod, and the victims for it.

    ``failures`` is how many plans for the pod had failed before. ``freed_at``: the last victim was gone;
    ``blocked_since``: some eviction fails; ``failed_at``: it was given up, and is only remembered, so that the next
    leader waits as long as the one before. Times are seconds since the epoch, zero where it has not come so far.
    ``job`` is the starving job, in the pod's namespace (see policy.objects.job), and empty where the reason is another.

    ``promised_start``: when the last of the job's nodes has room at the latest, in whole seconds, and ``due`` the UIDs
    of the pods here that have to be gone by then. ``promised_at``: when that was promised first. ``moved``: why the
    promise was moved later, the last time.
    """

    name: str
    pod: PodName
    node: str
    victims: tuple[PodName, ...]
    since: float
    reason: str = RECLAIM
    failures: int = 0
    freed_at: float = 0.0
    blocked_since: float = 0.0
    failed_at: float = 0.0
    job: str = ""
    promised_start: float = 0.0
    promised_at: float = 0.0
    due: tuple[str, ...] = ()
    moved: str = ""


class Reserved:
    """The reservations for starving jobs: one for each waiting member.

    ``of_stand_ins`` are those for members of Jobs that wait as a whole, by UID of the stand-in and by name.
    """

    def __init__(self) -> None:
        self.version = 0
        """Counts changes, also of the pods that nodes are reserved for."""
        self.by_name: dict[str, Reservation] = {}
        self._by_uid: dict[str, Reservation] = {}
        self._by_node: dict[str, dict[str, Reservation]] = {}
        self.of_stand_ins: dict[str, dict[str, Reservation]] = {}
        self._members: dict[str, ComeMembers] = {}
        self._unread: set[str] = set()

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self.by_name.values())

    def see(self, pod: Pod | None, before: Pod | None) -> None:
        """Sees a pod that has changed since ``before``; None if it is not there."""
        either = pod or before
        if either is None or not self.by_name:
            return
        if (own := self._by_uid.get(either.uid)) is not None:
            self.version += 1
            if pod is None or before is None or _place_of(pod) != _place_of(before):
                self._unread.add(own.node)
        if (members := self._members.get(either.uid)) is not None:
            self.version += 1
            self._unread |= members.see_stand_in(there=pod is not None)
        for uid in {_stand_in_above(each) for each in (pod, before) if each is not None} if self._members else ():
            if (members := self._members.get(uid)) is not None:
                own_pods = (each if _belongs_to(each, uid, members.namespace) else None for each in (pod, before))
                self.version += 1
                self._unread |= members.see(*own_pods)

    def see_job(self, job: QueuedJob) -> None:
        """Sees a Job that waits as a whole, and may request something else than before."""
        if (members := self._members.get(uid_of_stand_in(job.uid))) is not None:
            self.version += 1
            self._unread |= members.see_job(job)

    def see_anew(self, stand_in: str) -> None:
        """Sees that something else is known of a Job, so that other pods of it may be expected on its nodes."""
        if own := self.of_stand_ins.get(stand_in):
            self.version += 1
            self._unread |= {each.node for each in own.values()}

    def see_gates(self, line_of: Callable[[str], object]) -> None:
        """Sees which stand-ins wait in a line at gates: before their start no pods of theirs count as having come."""
        for stand_in, members in self._members.items():
            if changed := members.see_gate(waits=line_of(stand_in) is not None):
                self.version += 1
                self._unread |= changed

    def changed(self) -> AbstractSet[str]:
        """Returns the nodes on which something else may be reserved than when it was last asked."""
        changed, self._unread = self._unread, set()
        return changed

    def on(self, node: str) -> Iterable[Reservation]:
        """Returns the reservations on a node."""
        return self._by_node.get(node, {}).values()

    def has_come(self, reservation: Reservation) -> bool:
        """Whether the member of a Job that waits as a whole, and has started, has come to its node."""
        members = self._members.get(stand_in_of(reservation.pod.uid))
        return members is not None and members.has_come(reservation)

    def get(self, name: str) -> Reservation | None:
        """Returns the reservation of this name."""
        return self.by_name.get(name)

    def of_pod(self, uid: str) -> Reservation | None:
        """Returns the reservation for a pod; for a stand-in the first one of its Job."""
        own = self.of_stand_ins.get(uid)
        return self._by_uid.get(uid) if own is None else next(iter(own.values()))

    def nodes_of(self, uid: str) -> list[str]:
        """Returns the nodes that are reserved for a pod, or for the Job that a stand-in represents."""
        one, own = self._by_uid.get(uid), self.of_stand_ins.get(uid, {})
        return sorted({each.node for each in own.values()}) if one is None else [one.node]

    def of_job(self, namespace: str, job: str) -> list[Reservation]:
        """Returns the reservations for the members of a job."""
        return [each for each in self if (each.pod.namespace, each.job) == (namespace, job)]

    def add(self, reservation: Reservation, pods: Iterable[Pod] = ()) -> None:
        """Reserves a node for a member of a job. ``pods``: its stand-in and its pods, if it waits as a whole."""
        self.version += 1
        self._unread.add(reservation.node)
        self.by_name[reservation.name] = self._by_uid[reservation.pod.uid] = reservation
        self._by_node.setdefault(reservation.node, {})[reservation.name] = reservation
        if is_member(reservation.pod.uid):
            stand_in = stand_in_of(reservation.pod.uid)
            self.of_stand_ins.setdefault(stand_in, {})[reservation.name] = reservation
            if stand_in not in self._members:
                self._members[stand_in] = self._come(reservation.pod.namespace, stand_in, pods)
            self._members[stand_in].reserve(reservation)

    def remove(self, name: str) -> Reservation | None:
        """Removes a reservation; returns it, if there was one."""
        reservation = self.by_name.pop(name, None)
        self.version += 1
        if reservation is not None and self._by_uid.get(reservation.pod.uid) is reservation:
            del self._by_uid[reservation.pod.uid]
        if reservation is not None:
            self._remove_from_node(reservation)
            self._remove_of_job(reservation)
        return reservation

    def _remove_from_node(self, reservation: Reservation) -> None:
        self._unread.add(reservation.node)
        there = self._by_node[reservation.node]
        del there[reservation.name]
        if not there:
            del self._by_node[reservation.node]

    def _remove_of_job(self, reservation: Reservation) -> None:
        stand_in = stand_in_of(reservation.pod.uid)
        if (own := self.of_stand_ins.get(stand_in)) is not None:
            own.pop(reservation.name, None)
            self._members[stand_in].lift(reservation)
            if not own:
                del self.of_stand_ins[stand_in], self._members[stand_in]

    def _come(self, namespace: str, stand_in: str, pods: Iterable[Pod]) -> ComeMembers:
        """Returns which members of a Job have come, as its pods are."""
        members = ComeMembers(namespace)
        for pod in pods:
            if pod.uid == stand_in:
                members.see_stand_in(there=True)
            else:
                members.see(pod)
        return members


def _place_of(pod: Pod) -> tuple[object, ...]:
    """Returns what decides whether a node is kept for a pod, and how much of it."""
    return pod.node, pod.terminating, pod.finished, pod.request


def _stand_in_above(pod: Pod) -> str:
    return uid_of_stand_in(owner_uid(pod))


def _belongs_to(pod: Pod | None, stand_in: str, namespace: str) -> bool:
    """Whether a pod is one of the Job with this stand-in."""
    return pod is not None and pod.namespace == namespace and _stand_in_above(pod) == stand_in
