"""Who has to go so that a pod may run: min-aware victims, on one node or over all.

Seed: capacity scheduling, PostFilter. A pod that stays within its quota's min takes back what others have borrowed, from
pods of any priority; one that would itself borrow takes only from lower-priority pods of its own namespace; one without a
quota only from lower-priority pods without a quota. Nobody is taken from a quota that is within its min.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from policy import admission, disruption, fit
from policy.cluster import Cluster
from policy.elastic_quota import ElasticQuota
from policy.ledger import Account, Entry, Ledger
from policy.pod import Pod

CRITICAL = 2_000_000_000
"""The priority from which on a pod belongs to the system (system-cluster-critical)."""
ENOUGH_NODES = 100
"""How many nodes with victims are compared; as many candidates as kube-scheduler's own preemption looks at."""
SYSTEM_OWNERS = frozenset({"DaemonSet", "Node"})


@dataclass(frozen=True, slots=True)
class Plan:
    """Evicting these pods (most important first) lets the pod run on the node.

    ``violations`` of them would violate a disruption budget.
    """

    pod: Pod
    node: str
    victims: tuple[Pod, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Nobody is to be evicted for the pod.

    ``reason`` is room (a node has it), waiting (it is coming), never (the pod may not preempt, or no node can ever take
    it), undecidable (a constraint that cannot be judged), or protected (nobody may be taken who would help).
    """

    reason: str
    text: str


def entitlement(ledger: Ledger, pod: Pod) -> frozenset[str]:
    """The resources that the pod may take back from borrowers; none if it would itself exceed its quota's min.

    Only resources that min names count; the pod must not be in the ledger.
    """
    account = ledger.accounts.get(pod.namespace)
    if account is None or account.quota is None or not account.quota.readable:
        return frozenset()
    ahead, _ = ledger.ahead_of(pod, account)
    named = [resource for resource in pod.request if resource in account.quota.min]
    within = all(
        account.used.get(resource, 0) + ahead.get(resource, 0) + pod.request[resource] <= account.quota.min[resource]
        for resource in named
    )
    return frozenset(named) if within else frozenset()


def may_be_taken(ledger: Ledger, victim: Pod, wanted: frozenset[str]) -> bool:
    """Whether a pod of another quota holds some wanted resource that its quota borrows now.

    A quota that does not name the resource borrows all of it, unless it is within its min in whatever the pod requests
    that it does name: a quota for GPUs alone protects the CPU of its GPU pods.
    """
    account = ledger.accounts.get(victim.namespace)
    if account is None or account.quota is None:
        return False
    for resource in wanted:
        if not victim.request.get(resource, 0):
            continue
        if resource in account.quota.min:
            if _over(account, account.quota, resource):
                return True
            continue
        named = [other for other in victim.request if other in account.quota.min]
        if not named or any(_over(account, account.quota, other) for other in named):
            return True
    return False


def untouchable(victim: Pod, pod: Pod) -> bool:
    """Whether a pod may never be evicted for another, whatever its quota borrows."""
    critical = victim.priority >= CRITICAL and pod.priority <= victim.priority
    return not victim.preemptible or victim.owner in SYSTEM_OWNERS or critical or not victim.assigned


def victims_on(cluster: Cluster, pod: Pod, node: str, *, respect_budgets: bool = False) -> Plan | None:
    """The victims on one node with whom gone the pod may run there; None if nobody on it helps, or nobody need go.

    For the scheduler's preemption, which evicts on the node alone.
    """
    with _trial(cluster, pod) as trial:
        if not pod.may_preempt or not fit.suitable_on(cluster.table, pod, node):
            return None
        found = trial.search(node, elsewhere=False, respect_budgets=respect_budgets)
        return found if found and found.victims else None


def plan(cluster: Cluster, pod: Pod) -> Plan | NoPlan:
    """The best plan over all nodes, or why there is none. Changes nothing."""
    undecidable = fit.undecidable(pod)
    if undecidable:
        return NoPlan("undecidable", undecidable)
    if not pod.may_preempt:
        return NoPlan("never", "the pod's preemptionPolicy is Never")
    suitable = fit.suitable(cluster.table, pod)
    if not suitable.any():
        return NoPlan("never", "no node can take the pod, however empty")
    with _trial(cluster, pod) as trial:
        roomy = [node for node in trial.roomy_nodes() if trial.fits(node)]
        if roomy and trial.admitted():
            waiting = bool(trial.going)
            room = "there will be room when terminating pods are gone" if waiting else "a node has room"
            return NoPlan("waiting" if waiting else "room", room)
        nodes = roomy[:1] or trial.promising_nodes(suitable)
        found = [plan for node in nodes if (plan := trial.search(node, elsewhere=True, respect_budgets=False))]
    if not found:
        return NoPlan("protected", "nobody may be evicted who would make room: others are within their min")
    return min(found, key=lambda plan: _cost(trial, plan))
