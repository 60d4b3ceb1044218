"""Answers about a pod: the short refusal for the scheduler, and the verdict with numbers for people."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from policy.objects.resources import Resources

MOST_TOLD = 20
"""The most resources of one pod that are told of: it may name thousands."""
MOST_NAMED = 10
"""The most resources that one sentence names."""


def names_in(resources: Collection[str]) -> str:
    """Joins resources for a sentence, of many the first by name. So it never becomes long, whatever a pod names."""
    return ", ".join(nsmallest(MOST_NAMED, resources)) + (", …" if len(resources) > MOST_NAMED else "")


def told(request: Resources, refused: Sequence[str]) -> dict[str, int]:
    """Returns the part of a request that is told of: first the refused resources, then the rest by name."""
    first = refused[:MOST_TOLD]
    rest = nsmallest(MOST_TOLD - len(first), request.keys() - first)
    return {resource: request[resource] for resource in (*first, *rest)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that refuses a pod, and the resources for which it does, sorted."""

    rule: str
    text: str
    resources: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The text that kube-scheduler writes into the pod's condition.

        It never holds a number that can vary: each change of this text costs one more scheduling attempt, at once.
        """
        return f"{self.text}: {names_in(self.resources)}" if self.resources else self.text


@dataclass(frozen=True, slots=True)
class Hint:
    """One change that would let the pod in; ``path`` and ``value`` name a field of ``target`` and its new value."""

    text: str
    target: str
    path: str = ""
    value: str = ""


def all_of(hints: Sequence[Hint]) -> tuple[Hint, ...]:
    """Joins hints that only help together, such as one for each resource, into one; none of none."""
    if len(hints) < 2:  # noqa: PLR2004
        return tuple(hints)
    targets = {each.target for each in hints}
    return (Hint(" and ".join(each.text for each in hints), targets.pop() if len(targets) == 1 else ""),)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer about a pod now.

    ``outcome`` is refused, admissible, bound or unknown. ``numbers`` has, by resource, the figures that the rule
    compares, as amounts; ``resources`` are those that it refuses the pod for. Of many it has the first MOST_TOLD.
    """

    outcome: str
    rule: str = ""
    message: str = ""
    numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    hints: tuple[Hint, ...] = ()
    resources: tuple[str, ...] = ()
