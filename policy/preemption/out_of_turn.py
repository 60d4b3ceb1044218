"""Plans that have to wait for earlier ones, whose victims have not been evicted yet.

A plan counts the victims of earlier plans as gone already. If it is carried out before them, they are evicted from what
it leaves to their namespace, and that may be within min. So it is made anew once they have been asked to go.
"""

from collections.abc import Iterable, Mapping

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.resources import Resources, subtract
from policy.preemption.plans import Plan


def in_turn(cluster: Cluster, plans: list[Plan]) -> list[Plan]:
    """Returns those of some alternative plans that can be carried out now."""
    awaited = _not_evicted_yet(cluster)
    if not awaited:
        return plans
    going = cluster.leaving.uids
    return [plan for plan in plans if not _must_wait(cluster, awaited, going, [plan])]


def must_wait(cluster: Cluster, plans: Iterable[Plan]) -> bool:
    """Whether plans, carried out together now, would leave victims of earlier plans within the min of their quota."""
    awaited = _not_evicted_yet(cluster)
    return bool(awaited) and _must_wait(cluster, awaited, cluster.leaving.uids, plans)


def _must_wait(
    cluster: Cluster, awaited: Mapping[str, list[tuple[str, Pod]]], going: frozenset[str], plans: Iterable[Plan]
) -> bool:
    victims = {victim.uid: victim for plan in plans for victim in plan.victims}
    for namespace in {victim.namespace for victim in victims.values()} & awaited.keys():
        others = [pod for whose, pod in awaited[namespace] if whose != namespace and pod.uid not in victims]
        account = cluster.ledger.account(namespace)
        if not others or account.quota is None:
            continue
        left = dict(account.used)
        for uid in going | victims.keys():
            pod = cluster.pods.get(uid)
            if pod is not None and pod.namespace == namespace and pod.assigned:
                subtract(left, pod.request)
        if not all(_exceeds(left, account.quota.min, pod) for pod in others):
            return True
    return False


def _not_evicted_yet(cluster: Cluster) -> dict[str, list[tuple[str, Pod]]]:
    """Returns by namespace the victims of plans that were not asked to go, each with the namespace it is to go for."""
    found: dict[str, list[tuple[str, Pod]]] = {}
    for plan in cluster.reservations.plans.values():
        for name in plan.victims if cluster.reservations.is_in_force(plan) else ():
            pod = cluster.pods.get(name.uid)
            if pod is not None and not cluster.leaving.has_been_asked(pod.uid):
                found.setdefault(pod.namespace, []).append((plan.pod.namespace, pod))
    return found


def _exceeds(left: Resources, least: Resources, pod: Pod) -> bool:
    """Whether a pod, with what is left beside it, exceeds min in a resource that it requests, or min names none."""
    named = [resource for resource in pod.request if resource in least]
    return not named or any(left.get(resource, 0) + pod.request[resource] > least[resource] for resource in named)
