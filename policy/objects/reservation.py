"""Reservations: room that is being made for a pod, or whole nodes for a job that starves.

Reclaim: victims end at different times, and the next pod that asks would take the room that they leave. So a plan holds
what it frees for its preemptor: in its quota, in the pool and on the node. A nominated node alone is no lock:
kube-scheduler erases it with every failed attempt of the pod.

Starving: nobody is evicted, and nothing is counted. A reserved node takes no other pods until the job's pods have come
(seed: reserve action, Reserved).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from policy.objects.pod import JobMember
from policy.objects.queued_job import PREFIX, is_member, stand_in_of

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
        self.of_stand_ins: dict[str, dict[str, Reservation]] = {}

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self.by_name.values())

    def see(self, uid: str, job: JobMember | None = None) -> None:
        """Notes that a pod has changed, or is gone. ``job``: to which it belongs."""
        if self.of_stand_ins:
            self.version += uid in self.of_stand_ins or (job is not None and f"{PREFIX}{job.uid}" in self.of_stand_ins)
        self.version += uid in self._by_uid

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

    def add(self, reservation: Reservation) -> None:
        """Reserves a node for a member of a job."""
        self.version += 1
        self.by_name[reservation.name] = self._by_uid[reservation.pod.uid] = reservation
        if is_member(reservation.pod.uid):
            self.of_stand_ins.setdefault(stand_in_of(reservation.pod.uid), {})[reservation.name] = reservation

    def remove(self, name: str) -> Reservation | None:
        """Removes a reservation; returns it, if there was one."""
        reservation = self.by_name.pop(name, None)
        self.version += 1
        if reservation is not None and self._by_uid.get(reservation.pod.uid) is reservation:
            del self._by_uid[reservation.pod.uid]
        if reservation is not None and (own := self.of_stand_ins.get(stand_in_of(reservation.pod.uid))) is not None:
            own.pop(name, None)
            if not own:
                del self.of_stand_ins[stand_in_of(reservation.pod.uid)]
        return reservation
