"""Which pods may not count any more although they are still there; see the checker."""

from collections.abc import Iterable

from tests.chaos.history import Amounts, History, Life, Position, total

AFTER = 300.0
"""Seconds after which a pod that is being deleted does not count any more if its node is lost (``overdue.after``)."""


def surely_used(history: History, namespace: str, start: Position, end: Position) -> Amounts:
    """What the pods of a namespace surely use that are on nodes at the end."""
    used = history.surely_used[namespace].at(end) if namespace in history.surely_used else {}
    overdue = may_not_count(history, history.pods_of(namespace), start, end)
    return {resource: amount - overdue.get(resource, 0) for resource, amount in used.items()}


def may_not_count(history: History, lives: Iterable[Life], start: Position, end: Position) -> Amounts:
    """What pods take that are on nodes at the end, and may have been overdue meanwhile, also by a wrong clock."""
    return total(life.least for life in lives if life.is_on_node(end) and _is_overdue(history, life, start, end))


def _is_overdue(history: History, life: Life, start: Position, end: Position) -> bool:
    if life.deleted > end or (life.node in history.sizes and all(history.sizes[life.node].during(start, end))):
        return False
    late = history.times[end] - history.times[int(life.deleted)] > AFTER
    return late or True in history.wrong_clocks.during(start, end)
