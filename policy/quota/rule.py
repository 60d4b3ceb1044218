"""A rule as one record: its name, its text, which pods it refuses, and what people are told of it.

Everything that tells of rules (verdicts, holders, remedies, events, metrics, pages, the documentation) reads it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from policy.objects.verdict import Hint, Refusal

if TYPE_CHECKING:
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources
    from policy.quota.ledger import Ledger

QUOTA = "ElasticQuota"
QUEUE = "Queue"
GROUP = "PodGroup"
NODE = "Node"

Asking = TypeVar("Asking")
"""The state that a rule reads: elastic_quota.Asking for rules of quotas, queue_rules.Asking for those of queues."""

Figures = dict[str, dict[str, int]]
"""Figures by resource and name, as amounts."""


@dataclass(frozen=True, slots=True)
class Use:
    """The usage of a resource that a pod lacks, of an ElasticQuota, Queue or Namespace by ``kind`` and ``name``.

    ``bound`` is the rule's bound for it. The pods that use it are those of these namespaces, and of this queue (empty:
    of any). ``ahead`` is kept, beyond what is used, for nominated pods.
    """

    kind: str
    name: str
    used: int
    bound: int
    namespaces: tuple[str, ...]
    queue: str = ""
    ahead: int = 0

    @property
    def over(self) -> int:
        """The amount by which it exceeds its bound."""
        return max(0, self.used - self.bound)


def no_figures(_ledger: Ledger, _pod: Pod) -> Figures:
    """Returns the figures of a rule that compares none."""
    return {}


def _nobody(_ledger: Ledger, _pod: Pod, _resource: str) -> Iterator[Use]:
    return iter(())


def _no_hint(_ledger: Ledger, _pod: Pod, _refused: Sequence[str], _asked: Resources) -> tuple[Hint, ...]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class Rule(Generic[Asking]):
    """A rule. REST, metrics and decisions call it by its ``name``; kube-scheduler writes its ``text``.

    ``of``: the kind of object whose rule it is; a pod without such an object is not asked about. ``refuses``: the
    resources for which it refuses a pod, in any order; empty: whatever the pod requests; None: it lets the pod in. The
    field itself is None for a rule that is not about numbers alone; other code asks that rule. ``numbers``: the figures
    it compares, by resource of the pod's request; rules may share one function. ``figures``: those that a sentence
    tells, in this order; empty: all. ``users``: the quotas, queues or namespaces that use a resource; ``bound``: the
    name of the figure they are measured by. ``hints``: changes that would let in a pod refused for these resources,
    computed from the numbers and not tried. The last argument is the sum of requests of all that it can start only
    together with. policy.explain.remedies has the changes that are tried on a copy of the cluster. ``event``: the
    reason of the event on the elastic quota for which pods wait; empty: none is written.
    """

    name: str
    text: str
    of: str
    refuses: Callable[[Asking], Sequence[str] | None] | None = None
    numbers: Callable[[Ledger, Pod], Figures] = no_figures
    figures: tuple[str, ...] = ()
    bound: str = ""
    users: Callable[[Ledger, Pod, str], Iterator[Use]] = _nobody
    hints: Callable[[Ledger, Pod, Sequence[str], Resources], tuple[Hint, ...]] = _no_hint
    event: str = ""

    def refusal(self, resources: Sequence[str] = ()) -> Refusal:
        """Returns its refusal of a pod for these resources."""
        return Refusal(self.name, self.text, tuple(sorted(set(resources))))
