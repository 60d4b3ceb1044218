"""The actions on a cluster, on the API server or in memory."""

from collections.abc import Mapping
from typing import Any, Protocol

from app.actuators.events import Event
from app.store.kind import Kind
from policy.cluster.quota_manager import Hard, Limit
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation


class ActionFailed(Exception):
    """The action failed; the text says why.

    ``unknown``: no answer came, so it may have been done all the same.
    """

    unknown = False


class Blocked(ActionFailed):
    """A disruption budget blocks the eviction now."""


class AlreadyThere(ActionFailed):
    """An object of that name exists already."""


class NoRight(ActionFailed):
    """Our account lacks the right to do it to any object."""


class Rejected(ActionFailed):
    """The action failed because of this very object: it may succeed on others."""


class TimedOut(Rejected):
    """No answer came in time: usually a webhook of the namespace hangs."""

    unknown = True


class AnswerLost(ActionFailed):
    """The connection ended before an answer came."""

    unknown = True


class Actuator(Protocol):
    """The only interface through which anything is written."""

    async def be_answered(self) -> None:
        """Returns once the API server has answered a question that has to do with no namespace."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Binds a pod to a node. Raises ActionFailed."""

    async def wake(self, pod: Pod) -> None:
        """Makes the scheduler try a refused pod again. Raises ActionFailed."""

    async def count_in(self, pod: Pod, queue: str | None) -> None:
        """Records on a pod the queue in which it counts (empty: in none); None: the queue that it names.

        Raises ActionFailed.
        """

    async def open_gate(self, pod: Pod) -> None:
        """Removes only our scheduling gate from a pod. Does nothing if the pod is gone. Raises ActionFailed."""

    async def start_job(self, pod: Pod) -> None:
        """Starts the Job that a stand-in represents: it is suspended no more. Does nothing if it is gone or started.

        Raises Rejected if it is not as it was seen, NoRight, ActionFailed.
        """

    async def suspend_job(self, job: BatchJob) -> None:
        """Suspends a Job: its controller deletes all of its pods. Does nothing if it is gone, or suspended already.

        Raises Rejected if it is not as it was seen, ActionFailed.
        """

    async def lower_job(self, job: BatchJob, to: int) -> None:
        """Lowers the parallelism of an elastic Job, so that its controller deletes some of its pods.

        Does nothing if it is gone, or so already. Raises Rejected if it is not as it was seen, ActionFailed.
        """

    async def give_notice(self, victim: PodName, at: float | None) -> None:
        """Writes on a pod when it will be evicted, in seconds since the epoch; None: not any more.

        Raises ActionFailed.
        """

    async def evict(self, victim: PodName, grace: int | None = None) -> None:
        """Evicts a pod. Does nothing if it is gone. Raises Blocked, ActionFailed.

        ``grace``: seconds in which it has to end; None: as many as it asks for.
        """

    async def delete(self, victim: PodName, grace: int | None = None) -> None:
        """Deletes a pod in spite of disruption budgets. Does nothing if it is gone. Raises ActionFailed."""

    async def nominate(self, pod: Pod, node: str) -> None:
        """Tells the scheduler to try a node first. Raises ActionFailed."""

    async def reserve(self, reservation: Reservation) -> None:
        """Publishes a reservation to every replica. Raises AlreadyThere, ActionFailed."""

    async def note_progress(self, reservation: Reservation) -> None:
        """Publishes the progress of a reservation to every replica. Raises ActionFailed."""

    async def unreserve(self, name: str) -> None:
        """Removes a reservation. Does nothing if it is gone. Raises ActionFailed."""

    def report(self, event: Event) -> None:
        """Reports an Event on its subject without waiting; it may be lost."""

    async def write_quota_status(self, namespace: str, name: str, status: dict[str, Any], kind: Kind) -> None:
        """Replaces the status of an elastic quota of that kind. Does nothing if it is gone. Raises ActionFailed."""

    async def write_queue_status(self, name: str, status: dict[str, Any]) -> None:
        """Replaces only these fields of a queue's status. Does nothing if it is gone. Raises ActionFailed."""

    async def write_limit(self, namespace: str, hard: Hard, owners: Mapping[str, str], seen: Limit | None) -> None:
        """Creates the resource quota of the quota manager, or changes the one that was seen. Raises ActionFailed.

        ``owners`` has the UIDs of the queues that it belongs to, by name.
        """

    async def remove_limit(self, namespace: str, seen: Limit) -> None:
        """Removes the resource quota that was seen. Does nothing if it is gone. Raises ActionFailed."""
