"""How far each plan has come. It is lost with the process, but for what the reservation itself records."""

from dataclasses import dataclass, field

from app.actuators.events import Event
from app.controllers.reclaim.clocks import Clocks
from app.store.store import Store
from policy.cluster import in_vain
from policy.objects.reservation import Reservation


@dataclass(slots=True)
class Progress:
    """Progress of a reservation, on the store's clock. The reservation itself stores what the next leader must know.

    ``valid_as_of`` is the generation of plans in which it was last found to be valid, while a notice runs.
    ``failing_jobs`` are the Jobs that failed by its evictions, ``noticed`` the pods that were told beforehand.
    ``announcement``: the Event on its victims, not written yet. ``kind``: the kind of pods that a failure counts for;
    None if the pod was gone when this replica started with it.
    """

    started_at: float
    kind: in_vain.FailureKey | None = None
    freed_at: float | None = None
    failing_since: float | None = None
    next_attempt: float = 0.0
    nominated: bool = False
    noted: bool = False
    valid_as_of: int | None = None
    failing_jobs: set[str] = field(default_factory=set)
    noticed: set[str] = field(default_factory=set)
    announcement: Event | None = None


class ProgressOfPlans:
    """The progress of each reservation, by its name."""

    def __init__(self, store: Store, clocks: Clocks) -> None:
        self._store = store
        self._clocks = clocks
        self._by_name: dict[str, Progress] = {}

    def of(self, reservation: Reservation) -> Progress:
        """Returns the progress of a reservation, at first as the reservation itself records it."""
        progress = self._by_name.get(reservation.name)
        if progress is None:
            on_store, pod = self._clocks.on_store, self._store.cluster.pods.get(reservation.pod.uid)
            progress = self._by_name[reservation.name] = Progress(
                on_store(reservation.since) if reservation.since else self._clocks.now(),
                in_vain.failure_key(pod) if pod is not None else None,
                on_store(reservation.freed_at) if reservation.freed_at else None,
                on_store(reservation.blocked_since) if reservation.blocked_since else None,
            )
        return progress

    def known(self, name: str) -> Progress | None:
        """Returns the progress of the reservation of this name, if this replica has begun with it."""
        return self._by_name.get(name)

    def end(self, reservation: Reservation) -> Progress | None:
        """Forgets the progress of a reservation, and returns it, if this replica has begun with it."""
        return self._by_name.pop(reservation.name, None)

    def forget_what_is_gone(self) -> None:
        """Forgets reservations that hold no room any more."""
        there = self._store.cluster.reservations.plans
        self._by_name = {name: each for name, each in self._by_name.items() if name in there}
