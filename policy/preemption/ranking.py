"""Ranking: in which order pods are evicted and put back, and how far evictions push quotas below their bounds."""

from collections.abc import Callable, Iterable, Mapping
from math import fsum

from policy.objects.pod import Pod
from policy.objects.resources import Resources, add, total
from policy.quota import queue_rules
from policy.quota.entitlement import Entitlement, share_lent, shortfall, to_spare
from policy.quota.ledger import Ledger


def importance(pod: Pod) -> tuple[int, float, str]:
    """Orders pods as the scheduler's preemption does, the most important first: by priority, then by earlier start.

    A pod that has saved its work counts from then. Pods that start together are told apart by their UIDs, so that every
    replica has the same order.
    """
    return -pod.priority, pod.work_since, pod.uid


Order = Callable[[Pod, Mapping[str, int], float], tuple[float | str, ...]]
"""Orders borrowers by what a node or rule lacks, and by how much their quota borrows; the first is taken first.

The order decides which of them still borrow when their turn comes.
"""


def by_importance(pod: Pod, _: Mapping[str, int], borrowed: float) -> tuple[float | str, ...]:
    """Orders borrowers by importance, the least important first; of one priority first who borrows most."""
    start, uid = importance(pod)[1:]
    return pod.priority, -borrowed, -start, uid


def small_first(pod: Pod, lacking: Mapping[str, int], borrowed: float) -> tuple[float | str, ...]:
    """Orders borrowers by size, as the sum of their shares of what is lacking, the smallest first."""
    size = fsum(pod.request.get(resource, 0) / amount for resource, amount in lacking.items())
    return (size, *by_importance(pod, lacking, borrowed))


def helpful_first(pod: Pod, lacking: Mapping[str, int], borrowed: float) -> tuple[float | str, ...]:
    """Orders borrowers by how much of what is lacking they hold, the most first; what goes beyond it does not count."""
    helps = fsum(min(1, pod.request.get(resource, 0) / amount) for resource, amount in lacking.items())
    return (-helps, *by_importance(pod, lacking, borrowed))


def job_by_job(pods: Iterable[Pod]) -> list[Pod]:
    """Orders pods so that those of one Job follow each other: once it fails, more of them cost nothing more."""
    turns: dict[tuple[str, str], int] = {}

    def turn(pod: Pod) -> int:
        return turns.setdefault((pod.namespace, pod.job.uid if pod.job is not None else pod.uid), len(turns))

    return sorted(pods, key=turn)


class Ranking:
    """Ranks pods by what their quotas, queues and namespaces had before any of their pods was taken.

    These figures are noted by namespace and queue when they are first asked for: see ``note``. So is the queue of each
    pod, as some are asked about many times, and the queue of one that was taken would have to be worked out each time.
    """

    __slots__ = (
        "_borrowed",
        "_distances",
        "_entitlement",
        "_ledger",
        "_now",
        "_resources",
        "_shares",
        "_spare",
        "_tenants",
    )

    def __init__(self, ledger: Ledger, entitlement: Entitlement, now: float) -> None:
        """``now`` is in seconds since the epoch."""
        self._now = now
        self._ledger = ledger
        self._entitlement = entitlement
        self._resources = entitlement.resources
        self._tenants: dict[str, tuple[str, str]] = {}
        self._distances: dict[str, int] = {}
        self._borrowed: dict[tuple[str, str], float] = {}
        self._shares: dict[tuple[str, str], tuple[Resources, Resources] | None] = {}
        self._spare: dict[tuple[str, str], list[tuple[Resources, Resources]]] = {}

    def note(self, pod: Pod) -> None:
        """Notes the figures of a pod's namespace and queue. Call it before the pod is taken."""
        self.borrowed(pod)
        self.shortfall_by(pod)

    def borrowed(self, pod: Pod) -> float:
        """How much the pod's quota or queue borrows, as a share of its min or of what it deserves."""
        whose = self._tenant_of(pod)
        known = self._borrowed.get(whose)
        if known is None:
            known = self._borrowed[whose] = share_lent(self._ledger, *whose)
        return known

    @property
    def has_levels(self) -> bool:
        """Whether pods stand at different distances at all."""
        own = self._ledger.queues.accounts.get(self._entitlement.queue)
        return own is not None and bool(own.above)

    def distance(self, pod: Pod) -> int:
        """How many levels above the preemptor's queue the nearest queue stands that a pod's queue is in, too.

        So a department settles its own affairs before it touches another. Pods in no queue are as far as the root.
        """
        name = self._tenant_of(pod)[1]
        known = self._distances.get(name)
        if known is None:
            queues = self._ledger.queues
            own, other = queues.accounts.get(self._entitlement.queue), queues.accounts.get(name)
            if own is None or name == self._entitlement.queue:
                known = 0
            elif other is None or other.queue is None:
                known = len(own.above)
            else:
                known = len(queue_rules.way_between(own, other).up)
            self._distances[name] = known
        return known

    def keeps_to_its_share(self, pod: Pod) -> bool:
        """Whether a pod's namespace has no more than its share of a queue, in all that the preemptor may take back."""
        if not self._ledger.queues.accounts:
            return False
        share = self._share_of(self._tenant_of(pod))
        return share is not None and all(share[0].get(r, 0) >= share[1].get(r, 0) for r in self._resources)

    def expensive_first(self, pod: Pod) -> tuple[float | str, ...]:
        """Orders victims by what is kept when one is put back, the most first: the last one is the cheapest victim.

        Among equals that is the lost work: the time since the start, or since the pod has saved its work, times what
        the pod holds of what the preemptor asks for.
        """
        size, request, asked, held = 0, pod.request, self._entitlement.pod.request, 0.0
        for resource in self._resources or asked:
            size += (amount := request.get(resource, 0))
            held += amount / (asked.get(resource) or 1)
        since, shortfall = pod.work_since, self.shortfall_by(pod)
        lost = max(0.0, self._now - since) * held
        return -shortfall, -pod.priority, self.borrowed(pod), -lost, since, -size, pod.uid

    def shortfall_by(self, pod: Pod) -> float:
        """How far the pod's quota, queue and namespace fall below their bounds if only it is evicted, as shares.

        The preemptor's own quota, queue and namespace are not looked at.
        """
        whose = self._tenant_of(pod)
        known = self._spare.get(whose)
        if known is None:
            bounds = [*self._min_of(whose[0]), *self._deserved_of(whose[1])]
            if (share := self._share_of(whose)) is not None:
                bounds.append(share)
            known = self._spare[whose] = [(bound, to_spare(bound, used)) for bound, used in bounds]
        return fsum(shortfall(bound, spare, pod.request) for bound, spare in known)

    def shortfall_of_all(self, victims: Iterable[Pod]) -> float:
        """How far quotas, queues and namespaces fall below their bounds by these evictions, as a sum of shares.

        Call this only while the victims are out of the ledger.
        """
        of_quotas, of_queues = dict[str, dict[str, int]](), dict[str, dict[str, int]]()
        of_tenants = dict[tuple[str, str], dict[str, int]]()
        for pod in victims:
            queue = self._ledger.queue_of(pod)
            add(of_quotas.setdefault(pod.namespace, {}), pod.request)
            add(of_queues.setdefault(queue, {}), pod.request)
            add(of_tenants.setdefault((pod.namespace, queue), {}), pod.request)
        fallen = [
            shortfall(bound, to_spare(bound, total((left, taken))), taken)
            for bounds_of, gone in ((self._min_of, of_quotas), (self._deserved_of, of_queues))
            for whose, taken in gone.items()
            for bound, left in bounds_of(whose)
        ]
        for tenant, taken in of_tenants.items():
            if (before := self._shares.get(tenant)) is not None:
                fallen.append(shortfall(before[0], to_spare(*before), taken))
        return fsum(fallen)  # the same in whatever order

    def _tenant_of(self, pod: Pod) -> tuple[str, str]:
        """Returns the namespace and the queue of a pod."""
        known = self._tenants.get(pod.uid)
        if known is None:
            known = self._tenants[pod.uid] = pod.namespace, queue_in(self._ledger, pod)
        return known

    def _min_of(self, namespace: str) -> list[tuple[Resources, Resources]]:
        """The min of another quota, and what of it is used."""
        account = self._ledger.accounts.get(namespace)
        if namespace == self._entitlement.pod.namespace or account is None or account.quota is None:
            return []
        return [(account.quota.min, account.used)]

    def _deserved_of(self, name: str) -> list[tuple[Resources, Resources]]:
        """Returns what a queue deserves and has taken, as one pair; empty for the pod's own or an unknown one."""
        queue = self._ledger.queues.accounts.get(name)
        return [(queue.division.deserved, queue.taken)] if queue is not None and name != self._entitlement.queue else []

    def _share_of(self, whose: tuple[str, str]) -> tuple[Resources, Resources] | None:
        """Returns what another namespace has within its share of a queue, and in all, before any of its pods is taken.

        None where nobody shares the queue with it.
        """
        if whose in self._shares:
            return self._shares[whose]
        namespace, name = whose
        other = namespace != self._entitlement.pod.namespace
        queue = self._ledger.queues.accounts.get(name) if name and other else None
        share = None
        if queue is not None and queue.queue is not None and len(queue.tenants) > 1 and namespace in queue.tenants:
            tenant = queue.tenants[namespace]
            taken = dict(tenant.taken)
            share = {r: min(amount, taken.get(r, 0)) for r, amount in tenant.entitled.items()}, taken
        self._shares[whose] = share
        return share


def queue_in(ledger: Ledger, pod: Pod) -> str:
    """The queue in which a pod counts in the ledger; of one that is not there the queue in which it would."""
    entry = ledger.entries.get(pod.uid)
    return ledger.queue_of(pod) if entry is None else entry.queue
