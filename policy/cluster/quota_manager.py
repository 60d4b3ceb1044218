"""Resource quotas that limit each namespace of a queue to its part: their amounts, and the victims for them.

Seed: Queue API (Quota Manager, Preemption). A resource quota refuses pods at creation, so nobody sees what a queue
would request beyond it. Divided by what is seen, a queue at its limit would seem satisfied, and one whose namespaces
have no pods could never create any. So here every queue, and every namespace in it, counts as requesting all there is:
parts follow from weights, guarantees and capabilities alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.objects.resources import Resources, add, largest, subtract, total
from policy.quota.exempt_from_eviction import exempt_from_eviction
from policy.quota.water_filling import Bid, divide
from policy.stepwise import Steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

NAME = "quotaward"
"""The name of the resource quotas that are written."""
LEFT_ALONE = frozenset({"kube-system"})
"""Namespaces that get none, like exempt ones: without these pods a cluster could not recover by itself."""
TOLERANCE = 100
"""A limit stays until it has to change by more than one part in this many."""
REQUESTS = "requests."
_NATIVE = ("cpu", "memory", "ephemeral-storage")

Hard = dict[str, int]
"""A resource quota's ``hard`` in amounts, by its own keys: ``requests.cpu``, ``pods``."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A resource quota of our name as it was seen. ``ours``: we have written it, as its label or its owner tells.

    ``owners`` are the UIDs of the queues that it belongs to.
    """

    uid: str
    hard: Mapping[str, int]
    ours: bool
    owners: frozenset[str] = frozenset()


@dataclass(slots=True)
class Allowance:
    """The amounts that a namespace may have of its queues together."""

    amounts: dict[str, int]
    queues: list[str] = field(default_factory=list)


@dataclass(slots=True)
class LimitDecision:
    """The changes to make.

    ``limits`` has every namespace that is to have a limit, with the names of its queues. ``victims`` are the pods to
    evict for these, by namespace. ``removals`` names namespaces whose limit no queue needs any more. ``taken`` names
    those where somebody else owns an object of our name.
    """

    limits: dict[str, tuple[Hard, tuple[str, ...]]] = field(default_factory=dict)
    victims: dict[str, list[Pod]] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)


def members(cluster: Cluster) -> dict[str, list[str]]:
    """Returns the namespaces of each existing queue: those that name it as their own, and those with pods in it."""
    found: dict[str, set[str]] = {name: set() for name in cluster.queues}
    for namespace in cluster.membership.namespaces.values():
        if namespace.queue in found:
            found[namespace.queue].add(namespace.name)
    for name, account in cluster.ledger.queues.accounts.items():
        if name in found:
            found[name].update(account.tenants)
    return {name: sorted(namespaces) for name, namespaces in found.items()}


def limited(resource: str) -> bool:
    """Whether a resource quota can limit what pods request of a resource."""
    return resource in (*_NATIVE, "pods") or resource.startswith("hugepages-") or "/" in resource


def key_of(resource: str) -> str:
    """Returns the key of a resource in a resource quota."""
    return resource if resource == "pods" else f"{REQUESTS}{resource}"


def decide(cluster: Cluster, written: Mapping[str, Hard]) -> LimitDecision:
    """Decides what the resource quotas should be now, without pauses."""
    decision = LimitDecision()
    for _ in decide_steps(cluster, written, decision):
        pass
    return decision


def decide_steps(cluster: Cluster, written: Mapping[str, Hard], decision: LimitDecision) -> Steps[None]:
    """Decides what the resource quotas should be. Iterate to the end; it may pause, and the cluster may change then.

    ``written`` has what we wrote last, as far as known. Leaves namespaces alone if the part of a queue of theirs has
    not been computed yet.
    """
    parts: dict[str, Allowance] = {}
    undecided: set[str] = set()
    yield from _divide_steps(cluster, parts, undecided)
    for namespace, part in sorted(parts.items()):
        seen = cluster.limits.get(namespace)
        if seen is not None and not seen.ours:
            decision.taken.append(namespace)
        elif namespace not in undecided:
            steady = _without_trifles(part.amounts, written.get(namespace, seen.hard if seen else {}))
            limit, victims = _lowered(cluster, namespace, steady)
            decision.limits[namespace] = {key_of(r): amount for r, amount in limit.items()}, tuple(part.queues)
            if victims:
                decision.victims[namespace] = victims
        yield
    wanted = parts.keys() | undecided
    decision.removals = sorted(name for name, seen in cluster.limits.items() if seen.ours and name not in wanted)


def leftovers(cluster: Cluster) -> list[str]:
    """Returns the namespaces that have a limit of ours."""
    return sorted(namespace for namespace, seen in cluster.limits.items() if seen.ours)


def preempting(cluster: Cluster, queue: str) -> dict[str, int]:
    """Returns what pods of a queue use beyond their namespaces' limits: they leave (seed: Queue API, Preemption)."""
    found: dict[str, int] = {}
    account = cluster.ledger.queues.account(queue)
    for namespace, tenant in account.tenants.items():
        seen = cluster.limits.get(namespace)
        if seen is not None and seen.ours:
            for resource, used in cluster.ledger.account(namespace).assigned.items():
                beyond = used - seen.hard.get(key_of(resource), used)
                if beyond > 0 and tenant.taken.get(resource, 0):
                    found[resource] = found.get(resource, 0) + min(beyond, tenant.taken[resource])
    return found


def _divide_steps(cluster: Cluster, parts: dict[str, Allowance], undecided: set[str]) -> Steps[None]:
    """Finds the part of each namespace, and the namespaces of queues that have no part yet.

    A resource quota cannot tell the pods of two queues apart, so a namespace gets the parts of all its queues together.
    """
    weights = cluster.membership.weight_by_namespace()
    resources = sorted(resource for resource in cluster.ledger.queues.available if limited(resource))
    left_alone = LEFT_ALONE | cluster.rules.exempt_namespaces
    for queue, everybody in sorted(members(cluster).items()):
        if queue not in cluster.queues:
            continue
        account = cluster.ledger.queues.account(queue)
        namespaces = [namespace for namespace in everybody if namespace not in left_alone]
        if not account.division.known or account.inner or account.invalid:
            undecided.update(namespaces)
            continue
        for namespace in namespaces:
            parts.setdefault(namespace, Allowance(dict.fromkeys(resources, 0))).queues.append(queue)
        apart = total(account.tenants[namespace].taken for namespace in left_alone & account.tenants.keys())
        for resource in resources:
            amount = max(0, account.division.deserved.get(resource, 0) - apart.get(resource, 0))
            bids = [Bid(weights.get(namespace, 1), 0, amount) for namespace in namespaces]
            for namespace, share in zip(namespaces, divide(amount, bids), strict=True):
                parts[namespace].amounts[resource] += share
        yield


def _without_trifles(target: Resources, current: Mapping[str, int]) -> dict[str, int]:
    """Returns the target, but keeps current amounts that are within the tolerance of it."""
    return {
        resource: current[key]
        if (key := key_of(resource)) in current and abs(amount - current[key]) * TOLERANCE <= current[key]
        else amount
        for resource, amount in target.items()
    }


def _lowered(cluster: Cluster, namespace: str, target: Resources) -> tuple[dict[str, int], list[Pod]]:
    """Returns the next limit on the way to the target, and the victims. It is never below the use of pods that stay.

    Victims no longer count: the limit is lowered before they go, or their controllers would create them anew at once.
    """
    used = cluster.ledger.account(namespace).used
    if all(used.get(resource, 0) <= amount for resource, amount in target.items()):
        return dict(target), []
    pods, staying = _staying(cluster, namespace)
    protection, starts = cluster.protection, dict[str, float]()
    free = (pod for pod in pods if protection.until(pod, starts) <= protection.now)
    candidates = [pod for pod in free if not exempt_from_eviction(cluster.ledger, pod)]
    victims: list[Pod] = []
    budgets = cluster.budgets.left()
    for pod in sorted(candidates, key=_least_important_first):
        if not _frees(pod, staying, target) or not budgets.allows(pod):
            continue
        budgets.take(pod)
        victims.append(pod)
        subtract(staying, pod.request)
    for pod in reversed(list(victims)):  # a victim stays if later ones free enough without it
        add(staying, pod.request)
        if any(staying.get(resource, 0) > target.get(resource, 0) for resource in pod.request if resource in target):
            subtract(staying, pod.request)
        else:
            victims.remove(pod)
    return {resource: max(amount, staying.get(resource, 0)) for resource, amount in target.items()}, victims


def _staying(cluster: Cluster, namespace: str) -> tuple[list[Pod], dict[str, int]]:
    """Returns the pods of a namespace on nodes, and what it uses without the terminating ones."""
    there = (placed.pod for placed in cluster.table.in_namespaces([namespace]) if placed.pod.assigned)
    pods = [pod for pod in there if pod.uid not in cluster.leaving.overdue]
    staying = dict(cluster.ledger.account(namespace).used)
    for pod in pods:
        if pod.terminating:
            subtract(staying, pod.request)
    return pods, staying


def still_has_to_go(cluster: Cluster, victim: Pod, hard: Hard) -> bool:
    """Whether a pod still has to go for its namespace's limit: others may have gone since that was decided."""
    pod = cluster.pods.get(victim.uid)
    if pod is None or not pod.assigned or pod.terminating:
        return False
    staying = _staying(cluster, pod.namespace)[1]
    return any(pod.request.get(r) and amount > hard.get(key_of(r), amount) for r, amount in staying.items())


def _frees(pod: Pod, staying: Resources, target: Resources) -> bool:
    return any(staying.get(r, 0) > target[r] for r, asked in pod.request.items() if asked and r in target)


def _least_important_first(pod: Pod) -> tuple[int, float, str]:
    return pod.priority, -pod.work_since, pod.name


def demands(cluster: Cluster, requests: Mapping[str, Resources]) -> Iterable[tuple[str, Resources]]:
    """Yields the demand that each queue counts with: all there is, if it has a namespace."""
    for name, namespaces in members(cluster).items():
        seen = requests.get(name, {})
        unseen = bool(namespaces) and not cluster.ledger.queues.account(name).invalid
        yield name, largest(seen, cluster.ledger.queues.available) if unseen else seen
