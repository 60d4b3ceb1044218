"""Single victim: the shortcut where pods of one size run on a node, and the eviction of one borrower is enough."""

from policy.objects import signature
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING
from policy.preemption.eviction_trial import EvictionTrial
from policy.quota.entitlement import share_lent


def are_alike(trial: EvictionTrial, node: str) -> bool:
    """Whether the pods of a node differ in nothing that would order them by size."""
    requests = [pod.request for pod in trial.cluster.table.pods_on(node).values()]
    first = requests[0] if requests else NOTHING
    others = signature.distinct(request for request in requests if request is not first)
    resources = trial.borrowers.resources
    return bool(requests) and all(other.get(r, 0) == first.get(r, 0) for other in others for r in resources)


def take_one_that_suffices(trial: EvictionTrial, node: str) -> bool:
    """Takes one borrower on a node of pods of one size, if its eviction is enough: mostly there is one.

    It is the one that would be left if all were taken and all but one given back, as long as no budget protects it.
    """
    lacking, size = trial.lacking(node), next(iter(trial.cluster.table.pods_on(node).values())).request
    wanted = lacking.keys() & trial.borrowers.resources
    if not wanted or any(size.get(resource, 0) < lacking[resource] for resource in wanted):
        return False
    cheapest = _cheapest(trial, node, frozenset(wanted))
    if cheapest is None or not trial.cluster.budgets.left().allows(cheapest):
        return False
    trial.take(cheapest)
    if trial.fits(node) and trial.admitted():
        return True
    trial.taken.give_back_all()
    return False


def _cheapest(trial: EvictionTrial, node: str, wanted: frozenset[str]) -> Pod | None:
    """The cheapest victim among the borrowers on a node that can be taken alone: the last one to be given back.

    For pods of one size. Whether they may be taken is asked of the cheapest ones only, those of near queues first.
    """
    ledger, losses, distance = trial.cluster.ledger, trial.taken.losses, trial.ranking.distance
    may_take, is_evictable = trial.borrowers.may_take, trial.evictable.is_evictable
    ranks = [
        (-pod.priority, share_lent(ledger, pod.namespace, queue), pod.work_since, pod.uid, pod)
        for pod, queue in trial.borrowers.on_node(node)
    ]
    ranks.sort(reverse=True)
    if has_levels := trial.ranking.has_levels:
        ranks.sort(key=lambda rank: distance(rank[-1]))
    shortfalls: list[tuple[float, Pod]] = []
    for *_, pod in ranks:
        if has_levels and shortfalls and distance(pod) > distance(shortfalls[-1][1]):
            break
        if may_take(pod, wanted) and is_evictable(pod) and not (pod.group and trial.gangs.is_needed(pod)):
            if (pod.job is not None or pod.controller) and losses.would_lose([pod]):
                continue
            shortfall = trial.ranking.shortfall_by(pod)
            if not shortfall:
                return pod
            shortfalls.append((shortfall, pod))
    return min(shortfalls, key=lambda each: each[0], default=(0.0, None))[1]
