"""Pod disruption budgets: which evictions would violate one."""

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
    """The budgets that the eviction of a pod would draw on, as the Eviction API sees it.

    An empty selector selects all pods of the namespace; an absent one none. (kube-scheduler's own preemption takes an
    empty one for none, and a pod without labels to be in no budget.)
    """
    return [
        budget
        for budget in budgets
        if budget.namespace == victim.namespace
        and matches(budget.selector, victim.labels)
        and victim.name not in budget.disrupted
    ]
