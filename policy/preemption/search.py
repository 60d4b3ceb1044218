"""Search: the cheapest victims for a pending pod on one node, or also on others where a rule is in its way."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from policy.objects.pod import Pod
from policy.objects.verdict import Refusal
from policy.preemption.candidate_nodes import is_promising
from policy.preemption.eviction_trial import EvictionTrial
from policy.preemption.plans import CostedPlan, Plan
from policy.preemption.pruning import prune
from policy.preemption.ranking import Order, by_importance, helpful_first, importance, job_by_job, small_first
from policy.preemption.single_victim import are_alike, take_one_that_suffices
from policy.stepwise import at_once

MOST_FOR_A_RULE = 100
"""How many may be evicted for a rule's sake: a quota exceeded by more than that is not cleared for one pod."""

_ATTEMPTS: tuple[tuple[Order, bool], ...] = (
    (by_importance, False),
    (small_first, False),
    (helpful_first, False),
    (helpful_first, True),
)
"""How borrowers are taken on a node: in which order, and, where all else fails, frugally."""


class VictimSearch:
    """Searches nodes, one after the other, for the cheapest victims there.

    ``trial`` has nobody taken between two nodes. ``_spares_jobs``: nobody is taken by whose eviction a Job is lost, as
    long as others are enough; ``_passed_over``: somebody was not taken for that. ``_unresolvable``: a rule is exceeded
    by so much that no other node need be looked at. ``_in_turn`` are the candidates on all nodes, in the order in
    which they are taken: by resources and order, or by resources and None for peers.
    """

    __slots__ = ("_in_turn", "_passed_over", "_spares_jobs", "_unresolvable", "trial")

    def __init__(self, trial: EvictionTrial) -> None:
        self.trial = trial
        self._spares_jobs = True
        self._passed_over = False
        self._unresolvable = False
        self._in_turn: dict[tuple[frozenset[str], Order | None], list[Pod]] = {}

    def on(self, node: str, *, elsewhere: bool) -> CostedPlan | None:
        """The cheapest victims found for a node; with ``elsewhere`` also on others, where the quota is in the way.

        For a node that is promising, or was.
        """
        trial = self.trial
        if self._unresolvable or node in trial.reserved or not trial.is_suitable(node):
            return None
        alike = are_alike(trial, node)
        if alike and take_one_that_suffices(trial, node):
            one = trial.costed_plan(node)
            trial.taken.give_back_all()
            return one
        return self._in_all_ways(node, alike=alike, elsewhere=elsewhere)

    def alone_on(self, node: str) -> Plan | None:
        """The cheapest victims found on a node, where from now on only pods on it may be taken.

        So of a gang all have to run there. Whether the node is promising is looked at only where one is not enough.
        """
        trial = self.trial
        trial.evictable.reach = node
        if node in trial.reserved:
            return None
        alike = are_alike(trial, node)
        if alike and take_one_that_suffices(trial, node):
            one = trial.plan(node)
            trial.taken.give_back_all()
            return one
        if not is_promising(trial, node) or not trial.is_suitable(node):
            return None
        found = self._in_all_ways(node, alike=alike, elsewhere=False)
        return found.plan if found is not None else None

    def _in_all_ways(self, node: str, *, alike: bool, elsewhere: bool) -> CostedPlan | None:
        """At first no Job fails while somebody else may be taken.

        But whoever is taken then may protect who would be enough, or be in a budget: then they are not passed over.
        """
        self._passed_over = False
        found = self._in_all_orders(node, alike=alike, elsewhere=elsewhere)
        if not self._passed_over or (found is not None and not found.plan.violations):
            return found
        self._spares_jobs = False
        other = self._in_all_orders(node, alike=alike, elsewhere=elsewhere)
        self._spares_jobs = True
        return min(filter(None, (found, other)), key=lambda each: each.cost, default=None)

    def _in_all_orders(self, node: str, *, alike: bool, elsewhere: bool) -> CostedPlan | None:
        trial, taken = self.trial, self.trial.taken
        found: list[CostedPlan] = []
        tried: set[frozenset[str]] = set()
        for order, frugally in _ATTEMPTS:
            if frugally and found:
                break
            if tried and alike and not frugally:
                continue  # in this order, too, the same would be taken
            self._make_room(node, order, frugally=frugally)
            on_node = len(taken.victims)
            if trial.fits(node):
                self._make_admissible(None if elsewhere else node, order)
                victims = frozenset(taken.victims)
                if victims not in tried and trial.admitted():
                    prune(trial, node)
                    found.append(trial.costed_plan(node))
                alike = alike and len(victims) == on_node
                tried.add(victims)
            taken.give_back_all()
        return min(found, key=lambda each: each.cost, default=None)

    def _make_room(self, node: str, order: Order, *, frugally: bool) -> None:
        """Takes all who may be taken on the node: first borrowers, and then, if need be, less important peers."""
        trial = self.trial
        if trial.fits(node):
            return
        lacking = trial.lacking(node)
        wanted = frozenset(lacking.keys() & trial.borrowers.resources)
        pods = trial.cluster.table.pods_on(node).values()
        is_borrower, is_peer = trial.evictable.is_borrower, trial.evictable.is_peer
        borrowers = self._in_order([pod for pod in pods if is_borrower(pod)], lacking, order) if wanted else []
        for candidates in self.passes():
            if frugally:
                self._take_borrowers(candidates(borrowers), wanted, frugally=True)
            self._take_borrowers(candidates(borrowers), wanted)
            if trial.fits(node):
                return
            for pod in candidates(sorted(pods, key=importance, reverse=True)):
                if is_peer(pod):
                    trial.take(pod)

    def _take_borrowers(self, pods: Iterable[Pod], wanted: frozenset[str], *, frugally: bool = False) -> None:
        """Takes pods in their order, each only if its quota still borrows what is wanted without those before.

        With ``frugally`` only those after whom it still borrows: most can be had if the last one taken is large.
        """
        trial = self.trial
        may_take, is_evictable = trial.borrowers.may_take, trial.evictable.is_evictable
        for pod in pods:
            if may_take(pod, wanted) and is_evictable(pod) and trial.stays_within(pod):
                trial.take(pod)
                if frugally and not may_take(pod, wanted):
                    trial.taken.separate(trial.taken.give_back(pod.uid))

    def passes(self) -> Iterator[Callable[[Iterable[Pod]], Iterable[Pod]]]:
        """Yields filters of pods that may be taken: first without those whose eviction costs a Job, then Job by Job.

        Jobs that are suspended come before those that fail.
        """
        yield lambda pods: (pod for pod in pods if not self._goes_last(pod))
        if self._passed_over:
            yield lambda pods: job_by_job(pod for pod in pods if not self.trial.taken.losses.would_fail([pod]))
            yield job_by_job

    def _goes_last(self, pod: Pod) -> bool:
        """Whether others are to be taken first, as the eviction of the pod and of those who need it costs a Job."""
        if not self._spares_jobs or (pod.job is None and not pod.group):
            return False
        if not self.trial.taken.losses.would_lose([pod, *self.trial.gangs.needing(pod)]):
            return False
        self._passed_over = True
        return True

    def _make_admissible(self, node: str | None, order: Order) -> None:
        """Takes who may be taken, on one node or on all, until the rules let the pod in."""
        victims = self.trial.taken.victims
        while refused := self.trial.refusal():  # when one rule lets it in, the next may not
            before = len(victims)
            self._resolve(refused, node, order)
            if len(victims) == before:
                return

    def _resolve(self, refused: Refusal, node: str | None, order: Order) -> None:
        """Takes who may be taken, on one node or on all, while a rule refuses the pod."""
        trial = self.trial
        exceeded = frozenset(refused.resources)
        wanted = exceeded & trial.borrowers.resources
        borrowers = self._borrowers_in_turn(wanted, node, order) if wanted else []
        peers = self.peers_in_turn(exceeded, node)
        is_peer, is_borrower, may_take = trial.evictable.is_peer, trial.evictable.is_borrower, trial.borrowers.may_take
        for pod in (pod for candidates in self.passes() for pod in candidates(chain(borrowers, peers))):
            if trial.admitted():
                return
            if len(trial.taken.victims) >= MOST_FOR_A_RULE:
                self._unresolvable = node is None
                return
            if trial.cluster.pods.get(pod.uid) is not pod:
                continue  # it has gone or changed in a pause
            if is_peer(pod) or (is_borrower(pod) and may_take(pod, wanted) and trial.stays_within(pod)):
                trial.take(pod)

    def _borrowers_in_turn(self, wanted: frozenset[str], node: str | None, order: Order) -> list[Pod]:
        """Pods of other quotas that hold what is wanted, on a node or on all: who is to be taken first comes first."""
        if node is None and (known := self._in_turn.get((wanted, order))) is not None:
            return known
        trial, own = self.trial, self.trial.preemptor.pod.namespace
        pods = self._pods_of_borrowers() if node is None else trial.cluster.table.pods_on(node).values()
        others = [pod for pod in pods if pod.namespace != own and not wanted.isdisjoint(pod.request)]
        others = self._in_order(others, dict.fromkeys(wanted, 1), order)
        if node is None:
            self._in_turn[wanted, order] = others
        return others

    def peers_in_turn(self, exceeded: frozenset[str], node: str | None) -> list[Pod]:
        """Less important peers that hold what is exceeded, on a node or on all their namespace.

        Those in a budget come last, but before those whom a gang needs; the least important come first.
        """
        if node is None and (known := self._in_turn.get((exceeded, None))) is not None:
            return known
        trial = self.trial
        own = (trial.preemptor.pod.namespace,)
        pods = self._pods_of(own) if node is None else trial.cluster.table.pods_on(node).values()
        is_peer = trial.evictable.is_less_important_peer
        peers = [pod for pod in pods if is_peer(pod) and not exceeded.isdisjoint(pod.request)]
        peers.sort(key=importance)
        in_budget = trial.cluster.budgets.violating(peers)
        peers.reverse()
        peers.sort(key=lambda pod: (trial.gangs.is_needed(pod), pod.uid in in_budget))
        if node is None:
            self._in_turn[exceeded, None] = peers
        return peers

    def _pods_of_borrowers(self) -> Iterable[Pod]:
        if self.trial.preemptor.only is not None:
            return self._pods_of(())
        known = self.trial.borrowers.namespaces
        return self._pods_of(at_once(self.trial.find_borrowers_steps()) if known is None else known)

    def _pods_of(self, namespaces: Iterable[str]) -> Iterable[Pod]:
        only, table = self.trial.preemptor.only, self.trial.cluster.table
        if only is not None:
            return [placed.pod for uid in sorted(only) if (placed := table.placed(uid))]
        return (each.pod for each in table.in_namespaces(namespaces))

    def _in_order(self, pods: Iterable[Pod], lacking: Mapping[str, int], order: Order) -> list[Pod]:
        """In which order borrowers are taken: those of near queues first, and of those last whom others have to follow.

        And before them those whose namespaces have no more than their shares.
        """
        gangs, ranking = self.trial.gangs, self.trial.ranking

        def turn(pod: Pod) -> tuple[float | str, ...]:
            first = ranking.distance(pod), gangs.is_needed(pod), ranking.keeps_to_its_share(pod)
            return (*first, *order(pod, lacking, ranking.borrowed(pod)))

        return sorted(pods, key=turn)
