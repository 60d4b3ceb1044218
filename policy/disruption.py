"""Pod disruption budgets: which evictions would violate one, counted as kube-scheduler's own preemption counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policy.constraints import Selector, matches
from policy.pod import Pod


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget: how many more of the pods it selects may be evicted now.

    ``disrupted`` names the pods whose eviction was let through already and is not seen yet.
    """

    namespace: str
    name: str
    selector: Selector | None
    allowed: int
    disrupted: frozenset[str] = frozenset()


def violating(victims: Sequence[Pod], budgets: Iterable[Budget]) -> set[str]:
    """UIDs of those whose eviction would violate a budget, when evicted in this order: most important first."""
    namespaces = {victim.namespace for victim in victims}
    near = [budget for budget in budgets if budget.namespace in namespaces]
    left = {(budget.namespace, budget.name): budget.allowed for budget in near}
    found = set()
    for victim in victims:
        for budget in protecting(victim, near):
            key = (budget.namespace, budget.name)
            left[key] -= 1
            if left[key] < 0:
                found.add(victim.uid)
    return found


def protecting(victim: Pod, budgets: Iterable[Budget]) -> list[Budget]:
    """The budgets that the eviction of a pod would draw on.

    An empty selector protects nobody, as for the scheduler; a pod without labels is in no budget.
    """
    if not victim.labels:
        return []
    return [
        budget
        for budget in budgets
        if budget.namespace == victim.namespace
        and budget.selector is not None
        and budget.selector.requirements
        and matches(budget.selector, victim.labels)
        and victim.name not in budget.disrupted
    ]
