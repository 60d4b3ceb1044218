"""Disruption budgets: the fields that are read, and the translation to the budget of the rules."""

from typing import Any

import msgspec
from msgspec import Struct, field

from app.store.kind import Kind
from app.store.metadata import Metadata
from app.store.placement import LabelSelector, selector_of
from policy.cluster.budgets import Budget


class BudgetSpec(Struct, gc=False):
    """The fields that are read of a disruption budget's spec."""

    selector: LabelSelector | None = None
    min_available: Any = field(name="minAvailable", default=None)
    max_unavailable: Any = field(name="maxUnavailable", default=None)


class BudgetStatus(Struct, rename="camel", gc=False):
    """The fields that are read of a disruption budget's status."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None
    expected_pods: int = 0
    desired_healthy: int = 0


class BudgetObject(Struct, gc=False):
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


def budget_of(obj: BudgetObject) -> Budget:
    """Returns the disruption budget as the rules see it."""
    status = obj.status or BudgetStatus()
    given = obj.spec.selector if obj.spec else None
    return Budget(
        obj.metadata.namespace or "",
        obj.metadata.name,
        selector_of(given) if given else None,
        status.disruptions_allowed,
        frozenset(status.disrupted_pods or ()),
        never=_never_allows(obj.spec or BudgetSpec(), status),
    )


def _never_allows(spec: BudgetSpec, status: BudgetStatus) -> bool:
    """Whether a budget allows no disruption even while all its pods are healthy, by its spec or by its numbers."""
    by_words = spec.max_unavailable in (0, "0", "0%") or spec.min_available == "100%"
    return by_words or 0 < status.expected_pods <= status.desired_healthy


BUDGETS = Kind(
    plural="poddisruptionbudgets",
    api_version="policy/v1",
    name="PodDisruptionBudget",
    decoder=msgspec.json.Decoder(BudgetObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.upsert_budget(budget_of(obj)),
    delete=lambda cluster, key: cluster.delete_budget(key[0], key[1]),
    known=lambda cluster: cluster.budgets,
)
