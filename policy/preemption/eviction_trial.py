"""Eviction trial: the cluster as it would be without a pending pod, without pods that leave, and without victims."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from policy.cluster.cluster import Cluster
from policy.nodes import fit
from policy.objects.pod import Pod
from policy.objects.resources import total
from policy.objects.verdict import Refusal
from policy.preemption.borrowers import Borrowers
from policy.preemption.evictable import Evictable
from policy.preemption.gang_mates import GangMates
from policy.preemption.plans import CostedPlan, Plan, Preemptor
from policy.preemption.ranking import Ranking, importance
from policy.preemption.taken import Taken
from policy.quota.entitlement import SLOT, Entitlement, entitlement
from policy.quota.entry import TAKING
from policy.stepwise import Steps

LOWEST = 2**31
"""Added to priorities (32 bits, signed) so that more victims always cost more."""


class EvictionTrial:
    """Tries out evictions for one pending pod. Victims are taken out of the ledger itself, so that its rules decide.

    ``reserved`` are nodes that are reserved for others. ``taken``, ``gangs``, ``ranking``, ``borrowers`` and
    ``evictable`` are what is known; after each pause all of it is worked out anew, but for ``borrowers.namespaces`` and
    ``moments``, at which pods may go that stay for their min-run-time.
    """

    __slots__ = (
        "_given",
        "borrowers",
        "cluster",
        "evictable",
        "gangs",
        "moments",
        "preemptor",
        "ranking",
        "reserved",
        "taken",
    )
    gangs: GangMates
    ranking: Ranking
    borrowers: Borrowers
    evictable: Evictable
    reserved: AbstractSet[str]

    def __init__(self, cluster: Cluster, preemptor: Preemptor, given: Entitlement | None) -> None:
        self.cluster = cluster
        self.preemptor = preemptor
        self._given = given
        self.taken = Taken(cluster)
        self.moments: set[float] = set()

    def open(self, namespaces: frozenset[str] | None = None) -> None:
        """Takes the pod out of the ledger, and those that leave in any case. ``namespaces``: see ``Borrowers``."""
        cluster, pod, taken = self.cluster, self.preemptor.pod, self.taken
        taken.open(pod)
        self.reserved = cluster.reservations.nodes_reserved_from(pod)
        entitled = self._given or self.entitlement_now()
        self.gangs = GangMates(cluster, entitled.queue, taken)
        self.ranking = Ranking(cluster.ledger, entitled, cluster.protection.now)
        self.borrowers = Borrowers(cluster, taken, entitled, namespaces)
        known = taken, self.gangs, self.borrowers, self.moments
        self.evictable = Evictable(cluster, self.preemptor, entitled.queue, *known)

    def close(self) -> None:
        """Puts everything back."""
        self.taken.close()

    def pause_steps(self) -> Steps[None]:
        """Puts everything back, pauses once, and begins anew: others may have changed the cluster meanwhile."""
        self.close()
        yield
        self.open(self.borrowers.namespaces)

    def reopen(self, own: tuple[Pod, ...]) -> None:
        """Opens it anew, with these less important pods of the pod's own namespace leaving, too."""
        self.close()
        self.taken.own = own
        self.open(self.borrowers.namespaces)

    def entitlement_now(self) -> Entitlement:
        """Returns what the pod may take back after all that is taken, with the pods beside it out of the ledger."""
        cluster, pod, beside = self.cluster, self.preemptor.pod, self.preemptor.beside
        entries = cluster.ledger.entries
        coming = [each for each in beside if each.uid not in entries or entries[each.uid].kind not in TAKING]
        with cluster.ledger.trial() as trial:
            trial.take_out_all(other.uid for other in beside)
            requests = total(other.request for other in beside)
            by_share, by_slot = cluster.rules.fair_share_preemption, cluster.table.is_short_of(SLOT)
            more = total(other.request for other in coming)
            return entitlement(cluster.ledger, pod, requests, more, by_share=by_share, by_slot=by_slot)

    def find_borrowers_steps(self) -> Steps[frozenset[str]]:
        """Finds the namespaces of which pods might be taken, and may pause; no victims may be taken yet."""
        found = yield from self.borrowers.find_namespaces_steps(self.preemptor)
        self.borrowers.namespaces = found
        return found

    def refusal(self) -> Refusal | None:
        """Why the rules would not let the pod in after what is taken so far; None if they would."""
        cluster = self.cluster
        return cluster.refusal(self.preemptor.pod)

    def admitted(self) -> bool:
        """Whether the rules would let the pod in after what is taken so far, and it was entitled to take all that."""
        return self.refusal() is None and all(map(self.stays_within, self.taken.pods()))

    def stays_within(self, victim: Pod) -> bool:
        """Whether the pod's department and all above it have room for it within their parts, or need none of others."""
        return self.borrowers.stays_within(victim)

    def is_suitable(self, node: str) -> bool:
        """Whether a node could take the pod, were it empty."""
        return fit.fits_if_empty_on(self.cluster.table, self.preemptor.pod, node)

    def fits(self, node: str) -> bool:
        """Whether the pod fits a node after what is taken so far."""
        return fit.fits_on(self.cluster.table, self.preemptor.pod, node, self.taken.gone)

    def fits_beside(self, node: str, victims: Collection[str]) -> bool:
        """Whether the pod would fit a node if these victims stayed; quicker than to give them back and look."""
        self.taken.gone.difference_update(victims)
        fits = self.fits(node)
        self.taken.gone.update(victims)
        return fits

    def lacking(self, node: str) -> dict[str, int]:
        """Returns by how much a node is short for the pod, by resource, once all have left that leave in any case."""
        return fit.lacking_on(self.cluster.table, self.preemptor.pod, node, self.taken.leaving)

    def take(self, pod: Pod) -> None:
        """Takes a pod, and along with it all of its gang if that cannot do without it."""
        needing = self.gangs.needing(pod)
        self.take_all([pod, *needing])
        if needing:
            self.taken.join(pod)

    def take_all(self, pods: Iterable[Pod]) -> None:
        """Takes these pods, and nobody else."""
        for pod in pods:
            self.ranking.note(pod)
            self.taken.take(pod)

    def plan(self, node: str) -> Plan:
        """The plan to evict what is taken so far, for a node."""
        victims = tuple(sorted((*self.taken.own, *self.taken.pods()), key=importance))
        violations = len(self.cluster.budgets.violating(victims))
        return Plan(self.preemptor.pod, node, victims, violations, self.taken.losses.of(victims))

    def costed_plan(self, node: str) -> CostedPlan:
        """The plan to evict what is taken so far, for a node, and its cost."""
        plan = self.plan(node)
        cost = (
            plan.violations,
            (self.taken.losses.fail, self.taken.losses.suspended),
            max((self.ranking.distance(pod) for pod in plan.victims), default=0),
            self.ranking.shortfall_of_all(self.taken.pods()),
            max((pod.priority for pod in plan.victims), default=-LOWEST),
            sum(pod.priority + LOWEST for pod in plan.victims),
            -min((importance(pod)[1] for pod in plan.victims), default=0.0),
            node,
        )
        return CostedPlan(plan, cost)


@contextmanager
def eviction_trial(
    cluster: Cluster,
    pod: Pod,
    beside: Sequence[Pod] = (),
    given: Entitlement | None = None,
    as_of: float = 0.0,
    only: frozenset[str] | None = None,
) -> Iterator[EvictionTrial]:
    """A trial that is open; afterwards the cluster is as it was.

    ``beside`` are waiting pods that can start only together with this one. ``given`` is what the pod may take back, and
    from whom, where the rules are not to be asked. ``as_of``, ``only``: see Preemptor.
    """
    preemptor = Preemptor(pod, cluster.is_governed(pod), cluster.is_exempt(pod), beside, as_of, only)
    trial = EvictionTrial(cluster, preemptor, given)
    try:
        trial.open()
        yield trial
    finally:
        trial.close()
