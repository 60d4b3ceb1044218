"""What is said of a pod: the short refusal that the scheduler gets, and the verdict with numbers that people get."""

from collections.abc import Sequence
from dataclasses import dataclass, field


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
        return f"{self.text}: {', '.join(self.resources)}" if self.resources else self.text


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
    compares, as amounts; ``resources`` are those that it refuses the pod for.
    """

    outcome: str
    rule: str = ""
    message: str = ""
    numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    resources: tuple[str, ...] = ()
