"""Acts on the in-memory cluster of a folder of manifests, where no API server is."""

from dataclasses import replace

from app.actuators.protocol import ActionFailed
from app.store.store import Store
from policy.pod import Pod


class RecordingActuator:
    """Applies what is done to the store itself."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def bind(self, pod: Pod, node: str) -> None:
        """Puts a pod on a node. Raises ActionFailed."""
        cluster = self._store.cluster
        if node not in cluster.table.rows:
            raise ActionFailed("the node is not known")
        if pod.node:
            raise ActionFailed("the pod is already assigned to a node")
        cluster.upsert_pod(replace(pod, node=node), self._store.clock())

    async def wake(self, pod: Pod) -> None:
        """Does nothing: no scheduler waits here."""
