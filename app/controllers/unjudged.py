"""Writes one Event on each pod that has more constraints than are judged. For the leader only."""

from heapq import nsmallest

from app.actuators.events import Event, about_pod
from app.actuators.protocol import Actuator
from app.controllers.rounds import at_intervals
from app.store.store import Store
from policy.explain.next_steps import unjudged_text
from policy.nodes import fit

INTERVAL = 5.0
"""Seconds between looks."""
AT_MOST, OF_NAMESPACE = 20, 5
"""Events per look, in all and for the pods of one namespace; the others are written later."""


class Unjudged:
    """Looks for waiting pods with too many constraints to be judged."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._told: set[str] = set()

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals(INTERVAL, self.look)

    async def look(self) -> None:
        """Writes Events on some of the pods that have none yet."""
        if self._store.unready():
            return
        cluster = self._store.cluster
        unjudged = cluster.table.demanding.unjudged()
        self._told = {uid for uid in self._told if uid in cluster.pending}
        fresh = [uid for uids in unjudged.values() for uid in nsmallest(OF_NAMESPACE, uids - self._told)]
        for uid in fresh[:AT_MOST]:
            self._told.add(uid)
            pod = cluster.pending[uid]
            message = unjudged_text(fit.unjudged(cluster.table, pod))
            self._actuator.report(Event(about_pod(pod), "ConstraintsNotJudged", message, warning=True))
