"""What may be done to the cluster, wherever it lives."""

from collections.abc import Mapping
from typing import Any, Protocol

from app.actuators.events import Event
from app.store.kinds import Kind
from policy.cluster.quota_manager import Hard, Limit
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation


class ActionFailed(Exception):
    """What was to be done was not done; the text says why."""


class Blocked(ActionFailed):
    """A disruption budget does not let the pod go now."""


class AlreadyThere(ActionFailed):
    """There is one of that name already."""


class Rejected(ActionFailed):
    """It was not done because of the very object that it was to be done to: others may succeed."""


class TimedOut(Rejected):
    """Nobody said in time whether it was done: as a rule a webhook of its namespace hangs."""


class Actuator(Protocol):
    """The only way in which anything is written."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Binds a pod to a node. Raises ActionFailed."""

    async def wake(self, pod: Pod) -> None:
        """Makes the scheduler try a refused pod again. Raises ActionFailed."""

    async def count_in(self, pod: Pod, queue: str | None) -> None:
        """Notes on a pod in which queue it counts (empty: in none), or (None) that it is the one that it names.

        Raises ActionFailed.
        """

    async def open_gate(self, pod: Pod) -> None:
        """Takes our scheduling gate off a pod, and no other; a pod that is gone is no error. Raises ActionFailed."""

    async def evict(self, victim: PodName, grace: int | None = None) -> None:
        """Evicts a pod; one that is gone is no error. Raises Blocked, ActionFailed.

        ``grace``: seconds that it gets to end, None: as many as it asks for.
        """

    async def delete(self, victim: PodName, grace: int | None = None) -> None:
        """Deletes a pod, whatever its disruption budgets say; one that is gone is no error. Raises ActionFailed."""

    async def nominate(self, pod: Pod, node: str) -> None:
        """Tells the scheduler to try a node first. Raises ActionFailed."""

    async def reserve(self, reservation: Reservation) -> None:
        """Makes a reservation known to every replica. Raises AlreadyThere, ActionFailed."""

    async def note_progress(self, reservation: Reservation) -> None:
        """Makes known to every replica how far a reservation has come. Raises ActionFailed."""

    async def unreserve(self, name: str) -> None:
        """Removes a reservation; one that is gone is no error. Raises ActionFailed."""

    def report(self, event: Event) -> None:
        """Notes an event on its subject, as well as may be: nobody waits for it, and it may be lost."""

    async def write_quota_status(self, namespace: str, name: str, status: dict[str, Any], kind: Kind) -> None:
        """Replaces the status of an elastic quota of that kind; one that is gone is no error. Raises ActionFailed."""

    async def write_queue_status(self, name: str, status: dict[str, Any]) -> None:
        """Replaces these fields of a queue's status alone; one that is gone is no error. Raises ActionFailed."""

    async def write_limit(self, namespace: str, hard: Hard, owners: Mapping[str, str], seen: Limit | None) -> None:
        """Creates the resource quota of the quota manager, or changes the one that was seen. Raises ActionFailed.

        ``owners`` has the UIDs of the queues that it belongs to, by name.
        """

    async def remove_limit(self, namespace: str, seen: Limit) -> None:
        """Removes the resource quota that was seen; one that is gone is no error. Raises ActionFailed."""
