"""What may be done to the cluster, wherever it lives."""

from typing import Protocol

from policy.pod import Pod


class ActionFailed(Exception):
    """What was to be done was not done; the text says why."""


class Actuator(Protocol):
    """The only way in which anything is written."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Binds a pod to a node. Raises ActionFailed."""

    async def wake(self, pod: Pod) -> None:
        """Makes the scheduler try a refused pod again. Raises ActionFailed."""
