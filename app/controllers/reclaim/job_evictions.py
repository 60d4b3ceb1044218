"""Takes Jobs back for a plan: suspends a Job as a whole, or lowers the parallelism of an elastic one."""

from app.actuators.events import Event, about_job
from app.actuators.protocol import Actuator, Blocked
from app.controllers.reclaim.budget_patience import BudgetPatience
from app.observability import evictions, metrics
from app.observability.evictions import JOB_TAKEN_BACK, Evicted
from app.store.store import Store
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import plan_text, reclaim

PODS_OF_A_JOB = 100
"""Maximum number of pods of a Job that are told, and whose end is noted, when it is taken back."""


class JobEvictions:
    """Asks disruption budgets first: the controller of a Job asks none when it deletes the other pods.

    With a budget that never lets all of them go at once, a Job would keep for ever what it borrows. So it asks only for
    the victims.
    """

    def __init__(self, store: Store, actuator: Actuator, patience: BudgetPatience) -> None:
        self._store = store
        self._actuator = actuator
        self._patience = patience

    async def suspend(self, job: BatchJob, victim: Pod, reservation: Reservation) -> None:
        """Suspends a Job for its victim, so that all of its pods go. Raises Blocked, ActionFailed."""
        cluster = self._store.cluster
        why = plan_text.why_evicted(cluster, reservation, victim)  # while it is there
        going = reclaim.running_pods(cluster, job)
        gone = self._evicted(going, reservation, f"its Job was suspended: {why}")
        for pod in going:
            cluster.leaving.ask_to_go(pod.uid)
        try:
            self._ask_budgets([victim], reservation)
            await self._actuator.suspend_job(job)
        except BaseException:
            for pod in going:
                cluster.leaving.may_stay(pod.uid)
            raise
        self._note(gone, "suspended")
        for pod in going:
            cluster.leaving.goes_with_job(pod.uid, self._store.clock())
        change = f"suspended to make room for {reservation.pod.title}"
        self._tell(job, gone, f"{change}: {why}; it waits until there is room again")

    async def lower(self, job: BatchJob, victims: list[Pod], to: int, reservation: Reservation) -> None:
        """Lowers the parallelism of a Job for its victims. Others of it may go. Raises Blocked, ActionFailed."""
        cluster = self._store.cluster
        why = plan_text.why_evicted(cluster, reservation, victims[0])
        gone = self._evicted(victims, reservation, f"the parallelism of its Job was lowered: {why}")
        cluster.lowered.begin(job, to, victims, self._store.clock())
        try:
            self._ask_budgets(victims, reservation)
            await self._actuator.lower_job(job, to)
        except BaseException:
            cluster.lowered.undo(job)
            raise
        self._note(gone, "lowered")
        change = f"parallelism lowered from {job.parallelism} to {to} to make room for {reservation.pod.title}"
        self._tell(job, gone, f"{change}: {why}; it grows again as there is room")

    def _ask_budgets(self, victims: list[Pod], reservation: Reservation) -> None:
        """Raises Blocked if disruption budgets do not let all of these victims of one Job go."""
        held = self._store.cluster.budgets.violating(victims)
        if any(victim.uid in held and not self._patience.is_over_with(victim, reservation) for victim in victims):
            raise Blocked("a disruption budget does not let a pod of its Job go now")

    def _evicted(self, pods: list[Pod], reservation: Reservation, why: str) -> list[Evicted]:
        """Describes that pods go with their Job; of a large Job, only the first."""
        cluster, whom = self._store.cluster, reservation.pod.title
        return [evictions.eviction_of(cluster, pod, JOB_TAKEN_BACK, why, whom) for pod in pods[:PODS_OF_A_JOB]]

    def _note(self, gone: list[Evicted], how: str) -> None:
        for each in gone:
            self._store.evictions.note(each)
        metrics.JOBS_TAKEN_BACK.labels(how).inc()

    def _tell(self, job: BatchJob, gone: list[Evicted], message: str) -> None:
        self._actuator.report(Event(about_job(job, job.namespace), "TakenBack", message, evicted=tuple(gone)))
