"""Evictable: which pods may be evicted for the pending pod, after what is taken so far."""

from math import ceil, inf

from policy.cluster.cluster import Cluster
from policy.objects.group import Key
from policy.objects.pod import Pod
from policy.preemption.borrowers import Borrowers
from policy.preemption.gang_mates import GangMates
from policy.preemption.plans import Preemptor
from policy.preemption.taken import Taken
from policy.quota.exempt_from_eviction import exempt_from_eviction


class Evictable:
    """Says who may be evicted: borrowers of other namespaces, and less important peers.

    ``queue`` is the preemptor's. ``reach`` is the only node on which pods may be taken; None where all nodes are within
    reach. ``one_by_one``: kube-scheduler evicts, which cannot take back a Job as a whole, so pods of such Jobs stay.
    ``moments`` collects when pods may go that stay for their min-run-time.
    """

    __slots__ = (
        "_borrowers",
        "_cluster",
        "_gangs",
        "_ledger",
        "_min_run_times",
        "_now",
        "_preemptor",
        "_queue",
        "_spare_jobs",
        "_starts",
        "_taken",
        "_untils",
        "moments",
        "one_by_one",
        "reach",
    )

    def __init__(
        self,
        cluster: Cluster,
        preemptor: Preemptor,
        queue: str,
        taken: Taken,
        gangs: GangMates,
        borrowers: Borrowers,
        moments: set[float],
    ) -> None:
        self._cluster = cluster
        self._ledger = cluster.ledger
        self._preemptor = preemptor
        self._queue = queue
        self._taken = taken
        self._gangs = gangs
        self._borrowers = borrowers
        self._min_run_times = bool(cluster.protection.least) and not preemptor.exempt
        self._spare_jobs = cluster.rules.spare_jobs
        self._now = max(preemptor.as_of, cluster.protection.now)
        self._starts: dict[str, float] = {}
        self._untils: dict[Key, float] = {}
        self.moments = moments
        self.reach: str | None = None
        self.one_by_one = False

    def is_borrower(self, pod: Pod) -> bool:
        """Whether a pod of another namespace may be evicted, as something that may be taken back was lent to it."""
        return (
            pod.namespace != self._preemptor.pod.namespace
            and self.is_evictable(pod)
            and self._borrowers.may_take(pod, self._borrowers.resources)
        )

    def is_peer(self, pod: Pod) -> bool:
        """Whether a pod may be evicted as a less important peer."""
        return self.is_less_important_peer(pod) and self.is_evictable(pod)

    def is_less_important_peer(self, pod: Pod) -> bool:
        """Whether a pod is of lower priority, and of the preemptor's namespace and queue.

        Where neither quota nor queue bounds the preemptor: of any namespace without both. Where it is exempt: of any.
        """
        preemptor = self._preemptor
        if pod.priority >= preemptor.pod.priority:
            return False
        if preemptor.governed:
            return pod.namespace == preemptor.pod.namespace and self._ledger.queue_of(pod) == self._queue
        return preemptor.exempt or not self._cluster.is_governed(pod)

    def is_evictable(self, pod: Pod) -> bool:
        """Whether a pod is still there, nothing exempts it from eviction, and its whole gang may go along if need be.

        A gang that cannot do without the pod may go along if all of it is within reach, and, in the preemptor's own
        namespace, if each member is less important.
        """
        only = self._preemptor.only
        is_left_out = only is not None and pod.uid not in only
        if is_left_out or pod.uid in self._taken.gone or exempt_from_eviction(self._ledger, pod):
            return False
        of_own = pod.namespace == self._preemptor.pod.namespace
        spared = (self.one_by_one or self._spare_jobs) and self._is_spared(pod)
        if spared or (self._min_run_times and not of_own and self._has_to_run_on(pod)):
            return False
        if not pod.group:
            return True  # nobody needs it
        if not (of_own or self.reach is not None) or not self._gangs.is_needed(pod):
            return True
        along = self._gangs.needing(pod)
        if self.reach is not None and any(other.node != self.reach for other in along):
            return False
        return not of_own or all(map(self.is_less_important_peer, along))

    def _has_to_run_on(self, pod: Pod) -> bool:
        """Whether its min-run-time still protects a pod of another namespace, or a gang that would go with it."""
        at = self._cluster.protection.until(pod, self._starts)
        if pod.group and self._gangs.is_needed(pod):
            at = max(at, self._until_of_gang(pod))
        if at <= self._now:
            return False
        self.moments.add(ceil(at) if at < inf else inf)
        return True

    def _until_of_gang(self, pod: Pod) -> float:
        """Returns until when the gang of a pod is protected. Whom of it is taken in the trial does not change it."""
        key = pod.namespace, pod.group
        if key not in self._untils:
            members = self._gangs.running(pod)
            self._untils[key] = self._cluster.protection.until_together(members, self._starts)
        return self._untils[key]

    def _is_spared(self, pod: Pod) -> bool:
        """Whether a pod stays for the sake of its Job."""
        if self.one_by_one and (pod.job or pod.controller) and self._cluster.batch_jobs.whole(pod) is not None:
            return True
        return self._spare_jobs and self._taken.losses.would_fail_known([pod, *self._gangs.needing(pod)])
