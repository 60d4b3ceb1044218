"""Writes one Event where a run time of pods that wait cannot be read. For the leader only.

A Queue or an ElasticQuota has a condition for that.
"""

from app.actuators.events import Event, about_pod
from app.actuators.protocol import Actuator
from app.controllers.rounds import at_intervals
from app.pause import Pause
from app.store.store import Store
from policy.objects.pod import Pod
from policy.objects.run_time import FORM

INTERVAL = 5.0
"""Seconds between looks."""
AT_MOST = 20
"""Events per look; the others are written later."""

Told = tuple[str, str, str]
"""Of whom somebody was told: the namespace, the UID of the pod or of its Job, and whose annotation it is."""


class RunTimes:
    """Looks for pods that wait, and for whose run time somebody has written what cannot be read."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._told: set[Told] = set()

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals(INTERVAL, self.look)

    async def look(self) -> None:
        """Writes Events on some of those that have none yet; of the pods of one Job or group on one alone."""
        if self._store.unready():
            return
        cluster, pause = self._store.cluster, Pause()
        found: dict[Told, Pod] = {}
        for pod in list(cluster.pending.values()):
            if whose := cluster.run_times.unreadable(pod):
                found.setdefault((pod.namespace, _shared_by(pod), whose), pod)
            await pause.if_due()
        self._told &= found.keys()
        for told in [each for each in found if each not in self._told][:AT_MOST]:
            self._told.add(told)
            message = f"{told[2]} is not {FORM}: its run time is not known"
            self._actuator.report(Event(about_pod(found[told]), "RunTimeUnreadable", message, warning=True))


def _shared_by(pod: Pod) -> str:
    """Returns what pods have in common whose template is the same: their Job or group; else the pod itself."""
    return pod.job.uid if pod.job is not None else pod.group or pod.uid
