"""The demands of a gang's members on other pods and on each other, while they are placed one after the other.

Members with equal demands, selected by the same terms, are one *kind*. The demands of a kind are counted once, and then
updated by a difference with each member that is placed. So the table stays as it is.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from policy.nodes import fit
from policy.nodes.node_attributes import Mask
from policy.nodes.table import NodeTable
from policy.nodes.topology import Demands, Spreading, demands_of, is_counted, is_mate, keeps_apart
from policy.objects import signature
from policy.objects.constraints import Constraints, PodTerm, steps
from policy.objects.pod import Pod

MOST_ONE_BY_ONE = 100
"""The most members with demands on other pods that are placed. It bounds the work while the scheduler waits."""
MOST_KINDS = 20
"""The most kinds that such members may be of: each is compared with each."""
MOST_STEPS_TOGETHER = 2000
"""The most steps that the demands of all such members may take together (see policy.objects.constraints)."""


def demands_something(pod: Pod) -> bool:
    """Whether the pod's own demands tie its place to other pods."""
    constraints = pod.constraints
    return bool(constraints.host_ports or constraints.affinity or constraints.anti_affinity or constraints.spread)


def is_bounded(table: NodeTable, members: Sequence[Pod]) -> bool:
    """Whether members with demands on other pods can be placed in a short time."""
    if len(members) > MOST_ONE_BY_ONE:
        return False
    kinds = Kinds(table, members)
    distinct = signature.distinct(member.constraints for member in members)
    costs = {signature.of_part(constraints): _cost(constraints) for constraints in distinct}
    return (
        len({kinds.of(member) for member in members}) <= MOST_KINDS
        and sum(costs[signature.of_part(member.constraints)] for member in members) <= MOST_STEPS_TOGETHER
    )


class Kinds:
    """Tells members apart by what decides where they may go; of their labels only those that some selector names."""

    def __init__(self, table: NodeTable, members: Sequence[Pod]) -> None:
        asked = table.demanding.keys_about(members[0].namespace)
        for constraints in signature.distinct(member.constraints for member in members):
            selectors = [part.selector for part in (*constraints.affinity, *constraints.anti_affinity)]
            selectors += [rule.selector for rule in constraints.spread]
            asked |= {each.key for selector in selectors if selector is not None for each in selector.requirements}
        self._asked = asked
        self._labels: dict[int, Hashable] = {}

    def of(self, member: Pod) -> Hashable:
        """Returns a key that is equal for members of one kind."""
        part = signature.of_part(member.labels)
        labels = self._labels.get(part)
        if labels is None:
            known = member.labels.keys() & self._asked
            labels = self._labels[part] = frozenset((key, member.labels[key]) for key in known)
        return signature.by_empty_nodes(member), member.priority, labels


@dataclass(slots=True)
class _OfKind:
    """The demands of one kind: the nodes it may go to, and which other kinds change that when they are placed.

    ``apart`` has, by the number of another kind, topology keys whose domains both must not share. ``mates`` are the
    kinds that its affinity asks for, ``counted`` the constraints of spreading that count a kind. ``ports`` are the
    kinds that take a host port of its own.
    """

    open: Mask
    demands: Demands | None
    apart: list[Collection[str]]
    mates: Collection[int]
    counted: list[list[Spreading]]
    ports: Collection[int]


class Together:
    """Kinds of members, by number, as if the placed ones stood where they were put. No other member counts."""

    def __init__(self, table: NodeTable, kinds: Sequence[Pod], members: Iterable[Pod]) -> None:
        """``kinds`` has one pod of each kind."""
        self._table = table
        uids = {member.uid for member in members if table.placed(member.uid)}
        self._of = [self._seen_by(pod, kinds, uids | set(fit.overlooked(table, pod))) for pod in kinds]

    def open_to(self, kind: int) -> Mask:
        """Returns the nodes that one more of a kind may go to, apart from room."""
        of_kind = self._of[kind]
        if of_kind.demands is None:
            return of_kind.open
        mask = of_kind.open.copy()
        of_kind.demands.restrict(mask)
        return mask

    def place(self, kind: int, row: int) -> None:
        """Notes that one of a kind was put on a node."""
        for each in self._of:
            for key in each.apart[kind]:
                domains = self._table.attributes.labels(key).codes
                if domains[row] >= 0:
                    each.open &= domains != domains[row]
            if kind in each.ports:
                each.open[row] = False
            if each.demands is not None and each.demands.affinity is not None and kind in each.mates:
                each.demands.affinity.add(row)
            for spreading in each.counted[kind]:
                spreading.add(row)

    def _seen_by(self, pod: Pod, kinds: Sequence[Pod], overlooked: Collection[str]) -> _OfKind:
        judged = self._table.demanding.is_judged(pod)
        demands = demands_of(self._table, pod, overlooked)
        rules = list(zip(pod.constraints.spread, demands.spread, strict=True)) if demands and judged else []
        return _OfKind(
            fit.open_to(self._table, pod, overlooked),
            demands,
            [keeps_apart(pod, other) for other in kinds],
            [number for number, other in enumerate(kinds) if pod.constraints.affinity and is_mate(pod, other)],
            [[counted for rule, counted in rules if is_counted(pod, rule, other)] for other in kinds],
            [number for number, other in enumerate(kinds) if fit.share_a_port(pod, other)],
        )


def _cost(constraints: Constraints) -> int:
    terms: tuple[PodTerm, ...] = constraints.affinity + constraints.anti_affinity
    return 1 + sum(map(steps, terms)) + sum(map(steps, constraints.spread)) + len(constraints.host_ports)
