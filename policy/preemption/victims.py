"""Victims: which pods to evict so that a pending pod can run, without taking any quota below its min.

Seed: capacity scheduling, PostFilter. A pod that stays within its quota's min takes back what others have borrowed,
from pods of any priority. One that would itself borrow takes only from lower-priority pods of its own namespace. One
without a quota takes only from lower-priority pods without a quota. Nobody is taken from a quota that is within its
min. Of a gang that cannot do without a member all are evicted, or none, and only if nobody else will do. Of a queue
that has more than it deserves those are evicted first whose namespace has more than its share of it. Last of all come
those whose eviction would fail a Job of Kubernetes. For a pod that no rule applies to kube-scheduler decides; here it
takes from lower-priority pods of any namespace, so that it is foreseen roughly.
"""

from collections.abc import Iterable, Sequence
from math import inf

from policy.cluster.cluster import Cluster
from policy.nodes import fit
from policy.objects.pod import Pod
from policy.preemption.candidate_nodes import node_where_room_is_coming, promising_nodes, roomy_node
from policy.preemption.eviction_trial import EvictionTrial, eviction_trial
from policy.preemption.own_first import let_own_leave_first
from policy.preemption.plans import CostedPlan, NoPlan, Plan
from policy.preemption.search import VictimSearch
from policy.quota.entitlement import as_if_guaranteed
from policy.stepwise import Steps, at_once

ENOUGH_NODES = 100
"""How many nodes with victims are compared; as many candidates as kube-scheduler's own preemption looks at."""
IN_VAIN = 300
"""How many promising nodes are tried without success, or only at the price of a Job, before no more are looked at.

The time that a search takes is bounded.
"""


def victims_on(cluster: Cluster, pod: Pod, nodes: Iterable[str], *, respect_budgets: bool = False) -> list[Plan]:
    """Plans for those of the nodes where evictions on that node alone let the pod run there.

    For the scheduler's own preemption, which evicts on one node alone. None where room is coming already: asked twice,
    nobody is evicted twice. With ``respect_budgets`` nobody is a victim whose eviction would violate a budget.
    """
    if (
        not pod.may_preempt
        or fit.undecidable(cluster.table, pod)
        or cluster.reservations.is_held_for(pod.uid)
        or cluster.gangs.is_waiting(pod)
    ):
        return []
    plans, sparing = list[Plan](), list[Plan]()
    with eviction_trial(cluster, pod) as trial:
        if node_where_room_is_coming(trial) and trial.admitted():
            return []
        trial.evictable.one_by_one = True
        search = VictimSearch(trial)
        for node in nodes:
            found = search.alone_on(node)
            if found is not None and found.victims and not (respect_budgets and found.violations):
                plans.append(found)
                if not any(map(trial.ranking.keeps_to_its_share, found.victims)):
                    sparing.append(found)
        plans = _nearest(sparing or plans, trial)
    return _sparing_jobs(plans) if any(each.lost.failing for each in plans) else plans


def _nearest(plans: list[Plan], trial: EvictionTrial) -> list[Plan]:
    """Those of some plans than which no other stays nearer to the pod's queue without violating more budgets."""
    if not trial.ranking.has_levels:
        return plans
    nearest, kept = inf, set[str]()
    far = {each.node: max(map(trial.ranking.distance, each.victims), default=0) for each in plans}
    for each in sorted(plans, key=lambda each: (each.violations, far[each.node])):
        nearest = min(nearest, far[each.node])
        if far[each.node] <= nearest:
            kept.add(each.node)
    return [each for each in plans if each.node in kept]


def _sparing_jobs(plans: list[Plan]) -> list[Plan]:
    """Those of some plans than which no other fails fewer Jobs without violating more budgets."""
    fewest, fewest_with = inf, dict[int, float]()
    for each in sorted(plans, key=lambda each: (each.violations, each.lost.fail)):
        fewest = min(fewest, each.lost.fail)
        fewest_with.setdefault(each.violations, fewest)
    return [each for each in plans if each.lost.fail <= fewest_with[each.violations]]


def plan(cluster: Cluster, pod: Pod) -> Plan | NoPlan:
    """The best plan over all nodes, or why there is none. Changes nothing.

    Victims may run on several nodes where the quota is in the way and not only the room on a node. For a pod that a
    node is reserved for, first that node alone is looked at, if borrowers are to be evicted for it.
    """
    return at_once(search_steps(cluster, pod))


def search_steps(cluster: Cluster, pod: Pod, beside: Sequence[Pod] = (), *, as_of: float = 0.0) -> Steps[Plan | NoPlan]:
    """Like ``plan``, but may pause, and the cluster may change meanwhile: the answer is true at the end.

    ``beside`` are waiting pods that can start only together with this one: others are evicted for it only if all of
    them stay within what they are entitled to (a gang counts as one preemptor). ``as_of``: see Preemptor.
    """
    node = cluster.reservations.node_to_empty_for(pod)
    undecidable = fit.undecidable(cluster.table, pod)
    on_reserved = _plan_on(cluster, pod, node, as_of) if node and pod.may_preempt and not undecidable else None
    return on_reserved or (yield from _search_anywhere_steps(cluster, pod, beside, as_of))


def plan_with_steps(cluster: Cluster, pod: Pod, node: str, only: frozenset[str]) -> Steps[Plan | None]:
    """The best plan for a node that evicts nobody but some of these; None if there is none, or if none is needed.

    The rules are those of ``plan``, but others than these are not looked at, so that it is quick. It may pause.
    """
    yield
    yield from fit.prepare_steps(cluster.table, pod)
    undecidable = fit.undecidable(cluster.table, pod)
    if pod.may_preempt and not undecidable and cluster.reservations.node_to_empty_for(pod) == node:
        on_reserved = _plan_on(cluster, pod, node, 0.0, only)
        if on_reserved is not None:
            return on_reserved
    if _without_victims(cluster, pod) is not None:
        return None
    for own_first in (False, True):
        with eviction_trial(cluster, pod, only=only) as trial:
            search = VictimSearch(trial)
            if own_first and not let_own_leave_first(search):
                return None
            if not trial.fits(node) and (roomy_node(cluster, pod) or node_where_room_is_coming(trial)):
                return None  # nobody has to go for room
            found = search.on(node, elsewhere=True)
        if found is not None:
            return found.plan
    return None


def _plan_on(cluster: Cluster, pod: Pod, node: str, as_of: float, only: frozenset[str] | None = None) -> Plan | None:
    """The best plan with victims on the node that is reserved for the pod, where any borrower may be evicted for it."""
    if fit.fits_on(cluster.table, pod, node, cluster.leaving.uids):
        return None
    with eviction_trial(cluster, pod, given=as_if_guaranteed(pod, cluster.ledger), as_of=as_of, only=only) as trial:
        found = VictimSearch(trial).alone_on(node)
    return found if found is not None and found.victims else None


def _search_anywhere_steps(cluster: Cluster, pod: Pod, beside: Sequence[Pod], as_of: float) -> Steps[Plan | NoPlan]:
    moments: set[float] = set()
    for own_first in (False, True):
        yield from fit.prepare_steps(cluster.table, pod)
        if (nobody := _without_victims(cluster, pod)) is not None:
            return nobody
        yield
        with eviction_trial(cluster, pod, beside, as_of=as_of) as trial:
            nodes = VictimSearch(trial)
            found = (yield from _candidates_steps(nodes)) if not own_first or let_own_leave_first(nodes) else []
        moments |= trial.moments
        for each in sorted(found, key=lambda each: each.cost):
            yield  # so it may have been found before something changed
            if (nobody := _without_victims(cluster, pod)) is not None:
                return nobody
            with eviction_trial(cluster, pod, beside, as_of=as_of) as trial:
                nodes = VictimSearch(trial)
                if own_first and not let_own_leave_first(nodes):
                    break
                again = nodes.on(each.plan.node, elsewhere=True)
            if again is not None:
                return again.plan
    text = "nobody may be evicted whose going would let it run"
    if moments:
        text = f"{text}, as long as min-run-time protects some pods"
    return _without_victims(cluster, pod) or NoPlan("protected", text, moments=tuple(sorted(moments - {inf})))


def _without_victims(cluster: Cluster, pod: Pod) -> NoPlan | None:
    """Why there is no need to look for victims, or no leave; None if there are both."""
    if reason := fit.undecidable(cluster.table, pod):
        return NoPlan("undecidable", reason)
    if not pod.may_preempt:
        return NoPlan("never", "its preemptionPolicy is Never")
    roomy = roomy_node(cluster, pod)
    if not (roomy or fit.fits_if_empty(cluster.table, pod).any()):
        return NoPlan("never", "no node could take it, however empty")
    if roomy and cluster.check(pod) is None:
        return NoPlan("room", "a node has room for it", roomy)
    with eviction_trial(cluster, pod) as trial:
        node = roomy or node_where_room_is_coming(trial)
        waits = bool(node) and trial.admitted()
    return NoPlan("waiting", "there will be room when pods that are going are gone", node) if waits else None


def _candidates_steps(search: VictimSearch) -> Steps[list[CostedPlan]]:
    """Plans for nodes that need few victims, or for one that only the rules keep the pod from."""
    trial = search.trial
    roomy = roomy_node(trial.cluster, trial.preemptor.pod) or node_where_room_is_coming(trial)
    yield from trial.pause_steps()
    found: list[CostedPlan] = []
    good = in_vain = 0
    for node in [roomy] if roomy else promising_nodes(trial):
        if node:
            best = search.on(node, elsewhere=True)
            if best is not None:
                found.append(best)
                good += not best.loses_jobs
            in_vain += best is None or best.loses_jobs
        yield from trial.pause_steps()
        if good >= ENOUGH_NODES or in_vain >= IN_VAIN:
            break
    return found
