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
    """UIDs of those whose eviction would violate a budget, when evicted in this order: most important first.

    An empty selector protects nobody, as for the scheduler; a pod without labels is in no budget.
    """
    left = {(budget.namespace, budget.name): budget.allowed for budget in budgets}
    by_namespace: dict[str, list[Budget]] = {}
    for budget in budgets:
        by_namespace.setdefault(budget.namespace, []).append(budget)
    found = set()
    for victim in victims:
        if not victim.labels:
            continue
        for budget in by_namespace.get(victim.namespace, ()):
            if budget.selector is None or not budget.selector.requirements:
                continue
            if not matches(budget.selector, victim.labels) or victim.name in budget.disrupted:
                continue
            key = (budget.namespace, budget.name)
            left[key] -= 1
            if left[key] < 0:
                found.add(victim.uid)
    return found
