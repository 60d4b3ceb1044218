"""Plans to evict: for whom they are made, what they cost, and why there is none."""

from collections.abc import Sequence
from dataclasses import dataclass

from policy.objects.pod import Pod
from policy.preemption.losses import NONE_LOST, LostJobs


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The pending pod that room is wanted for.

    ``governed``: a quota or queue bounds it. ``exempt``: no rule applies to it. ``beside`` are waiting pods that can
    start only together with it. ``as_of``: a time since the epoch, if it is to come, at which pods may be evicted.
    ``only``: UIDs of the only pods that may be evicted, if not all are to be considered.
    """

    pod: Pod
    governed: bool
    exempt: bool
    beside: Sequence[Pod] = ()
    as_of: float = 0.0
    only: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The pod can run on the node once these victims are evicted; the most important of them comes first.

    ``violations`` is how many of them violate a disruption budget. ``lost`` are the Jobs that it costs.
    """

    pod: Pod
    node: str
    victims: tuple[Pod, ...]
    violations: int
    lost: LostJobs = NONE_LOST


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Nobody is to be evicted for the pod.

    ``reason`` is one of these:

    - room: ``node`` has room;
    - waiting: room is coming there;
    - never: the pod may not preempt, or no node can ever take it;
    - undecidable: a constraint cannot be judged;
    - protected: nobody may be taken whose eviction would help;
    - gang: there is no plan for another member that the pod could start only together with.

    ``moments``: when pods may be evicted that min-run-time protects now, the first one first, since the epoch.
    """

    reason: str
    text: str
    node: str = ""
    moments: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CostedPlan:
    """A plan and its cost; of two plans the one of lower cost is better.

    ``cost`` compares in this order:

    1. evictions that violate a budget;
    2. Jobs that fail, and Jobs that are suspended;
    3. how far up the tree the nearest common queue of pod and victim stands, of the furthest victim;
    4. how far quotas, queues and namespaces fall below their bounds, as shares;
    5. the highest priority among the victims;
    6. the sum of their priorities, each counted from the lowest possible, so that more victims cost more;
    7. the earliest start among them in seconds, negated: of two victims the one that started later is cheaper;
    8. the name of the node.
    """

    plan: Plan
    cost: tuple[int, tuple[int, int], int, float, int, int, float, str]

    @property
    def loses_jobs(self) -> bool:
        """Whether it costs a Job."""
        return any(self.cost[1])
