"""What is said of a pod: the short refusal that the scheduler gets, and the verdict with numbers that people get."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from policy.objects.resources import Resources

MOST_TOLD = 20
"""Resources of one pod that are told of: it may name thousands."""
MOST_NAMED = 10
"""Resources that one sentence names."""


def names_in(resources: Collection[str]) -> str:
    """Resources in a sentence, the first by name of many: it never becomes long, whatever a pod names."""
    return ", ".join(nsmallest(MOST_NAMED, resources)) + (", …" if len(resources) > MOST_NAMED else "")


def told(request: Resources, refused: Sequence[str]) -> dict[str, int]:
    """The part of a request that is told of: what the pod is refused for comes first, then the rest by name."""
    first = refused[:MOST_TOLD]
    rest = nsmallest(MOST_TOLD - len(first), request.keys() - first)
    return {resource: request[resource] for resource in (*first, *rest)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that refuses a pod, and the resources that it does so for, sorted."""

    rule: str
    text: str
    resources: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """What kube-scheduler writes into the pod's condition.

        Never holds a number that can vary: each change of this text costs one more scheduling attempt, at once.
        """
        return f"{self.text}: {names_in(self.resources)}" if self.resources else self.text


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change that would let the pod in; ``path`` and ``value`` name a field of ``target`` and what to set it to."""

    text: str
    target: str
    path: str = ""
    value: str = ""


def all_of(remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """One remedy of several that are of use together only, as one for each resource is; none of none."""
    if len(remedies) < 2:  # noqa: PLR2004
        return tuple(remedies)
    targets = {each.target for each in remedies}
    return (Remedy(" and ".join(each.text for each in remedies), targets.pop() if len(targets) == 1 else ""),)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said of a pod now.

    ``outcome`` is refused, admissible, bound or unknown. ``numbers`` has, by resource, the figures that the rule
    compares, as amounts; ``resources`` are those that it refuses the pod for. Of many the first MOST_TOLD.
    """

    outcome: str
    rule: str = ""
    message: str = ""
    numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    resources: tuple[str, ...] = ()
