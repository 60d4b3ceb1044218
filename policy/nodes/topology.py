"""The demands of pods on each other's places: required (anti-)affinity, and spreading with DoNotSchedule.

Everything is counted by *domain*: the nodes that have the same value of a label, the topology key. ``demands_of``
counts once for a pod. After that each node can be asked by its row, also as if some pods were gone. Sources: the
plugins InterPodAffinity and PodTopologySpread of kube-scheduler 1.37.

A pod that is only expected somewhere counts wherever it can forbid something; no other pod may rely on it. Demands
beyond what is judged of the pod's namespace (policy.nodes.pod_demands) are ignored.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.nodes.node_attributes import Mask, Values
from policy.nodes.node_filters import matching_affinity, tolerated
from policy.nodes.pod_index import PodIndex
from policy.nodes.table import NodeTable
from policy.objects.constraints import UNCONSTRAINED, PodTerm, Selector, Spread, matches
from policy.objects.pod import Pod
from policy.stepwise import Steps, at_once

_NO_LEVEL = 2**31 - 1  # where no domain counts
_AT_ONCE = 50  # terms looked at between two pauses


@dataclass(frozen=True, slots=True)
class Domains:
    """The number of some pods in each domain, and which pod is where.

    A domain is a number: ``of_row`` has that of each node, -1 for one that lacks the key. ``counts`` is by domain, and
    ends with a zero, which is what -1 finds. ``pods`` are those that count, by their slots in the ``index`` of all.
    Valid as long as the table does not change.
    """

    of_row: NDArray[np.intp]
    counts: NDArray[np.intp]
    pods: Mask
    index: PodIndex

    def of_pod(self, uid: str) -> int:
        """Returns the domain of one of the pods; -1 for any other."""
        slot = self.index.slots.get(uid)
        return self.of_row.item(self.index.rows.item(slot)) if slot is not None and self.pods.item(slot) else -1

    def count(self, row: int, gone: Collection[str]) -> int:
        """Returns how many there are in the domain of a node, without those that are gone."""
        domain = self.of_row[row]
        count = int(self.counts[domain])
        return count - sum(self.of_pod(uid) == domain for uid in gone) if count else 0

    def any_left(self, gone: Collection[str]) -> bool:
        """Whether there is one in any domain, without those that are gone."""
        return int(self.counts.sum()) > sum(self.of_pod(uid) >= 0 for uid in gone)

    def add(self, row: int) -> None:
        """Counts one more on a node. Only answers for all nodes with nobody gone are right afterwards."""
        if (domain := self.of_row[row]) >= 0:
            self.counts[domain] += 1

    @property
    def labelled(self) -> Mask:
        """The nodes that have the topology key."""
        return self.of_row >= 0

    @property
    def occupied(self) -> Mask:
        """The nodes whose domain holds one."""
        return (self.counts > 0)[self.of_row]


@dataclass(frozen=True, slots=True)
class Affinity:
    """Required pod affinity: for the pods that match *all* terms, the domains of each term.

    ``first``: the pod matches its own terms, so it may be the first of its kind.
    """

    standing: tuple[Domains, ...]
    expected: tuple[Domains, ...]
    first: bool

    def allows(self, row: int, gone: Collection[str]) -> bool:
        """Whether the pod's mates are in the node's domains, or there are none and it may be the first here."""
        mates = self._mates(gone)
        if mates is not None:
            return all(domains.count(row, gone) > 0 for domains in mates)
        return self.first and all(domains.of_row[row] >= 0 for domains in self.standing)

    def add(self, row: int) -> None:
        """Counts one more of the pods on a node. Only answers for all nodes with nobody gone are right afterwards."""
        for domains in self.standing:
            domains.add(row)

    def allowing(self) -> Mask:
        """Returns every node that ``allows`` the pod, nobody gone."""
        mates = self._mates(())
        if mates is not None:
            return _all(domains.occupied for domains in mates)
        return _all(domains.labelled for domains in self.standing) & self.first

    def _mates(self, gone: Collection[str]) -> tuple[Domains, ...] | None:
        """Returns the pods that it must be near to. The first of its kind stays near expected pods of its kind."""
        if any(domains.any_left(gone) for domains in self.standing):
            return self.standing
        if self.first and any(domains.any_left(gone) for domains in self.expected):
            return self.expected
        return None


@dataclass(slots=True)
class Spreading:
    """One constraint of spreading. ``present`` are all pods that count, ``standing`` those that set the level.

    ``counting`` are the nodes that count. The level is the lowest number in any of their ``domains``: ``least`` with
    nobody gone, and always 0 while there are ``too_few`` domains. ``own`` is 1 where the pod itself would be counted.
    """

    max_skew: int
    present: Domains
    standing: Domains
    counting: Mask
    domains: NDArray[np.intp]
    least: int
    too_few: bool
    own: int

    def add(self, row: int) -> None:
        """Counts one more selected pod on a node. Only answers for all nodes with nobody gone are right afterwards."""
        if self.counting[row]:
            self.present.add(row)
            self.standing.add(row)
            self.least = _least(self.standing, self.domains)

    def allows(self, row: int, gone: Collection[str]) -> bool:
        """Whether the node's domain would not rise above the level by more than the rule allows."""
        if self.present.of_row[row] < 0:
            return False
        return self.present.count(row, gone) + self.own - self._level(gone) <= self.max_skew

    def allowing(self) -> Mask:
        """Returns every node that ``allows`` the pod, nobody gone."""
        skew = self.present.counts[self.present.of_row] + self.own - self._level(())
        return self.present.labelled & (skew <= self.max_skew)

    def _level(self, gone: Collection[str]) -> int:
        if self.too_few:
            return 0
        lost = Counter(domain for uid in gone if (domain := self.standing.of_pod(uid)) >= 0)
        return min([self.least, *(int(self.standing.counts[domain]) - number for domain, number in lost.items())])


@dataclass(frozen=True, slots=True)
class Demands:
    """All demands that tie a pod's place to other pods. ``apart``: by key, pods that it must share no domain with."""

    apart: tuple[Domains, ...]
    affinity: Affinity | None
    spread: tuple[Spreading, ...]

    def allow(self, row: int, gone: Collection[str]) -> bool:
        """Whether they allow a node, without the pods that are gone."""
        if any(domains.count(row, gone) > 0 for domains in self.apart):
            return False
        if self.affinity is not None and not self.affinity.allows(row, gone):
            return False
        return all(spreading.allows(row, gone) for spreading in self.spread)

    def restrict(self, mask: Mask) -> None:
        """Removes from a mask the nodes that they do not ``allow``, nobody gone."""
        for domains in self.apart:
            mask &= ~domains.occupied
        if self.affinity is not None:
            mask &= self.affinity.allowing()
        for spreading in self.spread:
            mask &= spreading.allowing()


def demands_of(table: NodeTable, pod: Pod, overlooked: Collection[str]) -> Demands | None:
    """Returns what the pod demands of others and others of it; None for nothing. Leaves out overlooked pods."""
    return at_once(demands_of_steps(table, pod, overlooked))


def demands_of_steps(table: NodeTable, pod: Pod, overlooked: Collection[str]) -> Steps[Demands | None]:
    """Works out ``demands_of`` in steps. The judged terms bound its work. The table must not change meanwhile."""
    constraints = pod.constraints if table.demanding.is_judged(pod) else UNCONSTRAINED
    apart: dict[str, Mask] = {}
    for number, (term, kinds) in enumerate(table.demanding.keeping_away(pod)):
        if table.attributes.has_label(term.topology_key):
            away = apart.setdefault(term.topology_key, np.zeros(table.index.size, np.bool_))
            for kind in kinds:
                away[[table.index.slots[uid] for uid in kind.placed]] = True
        if number % _AT_ONCE == _AT_ONCE - 1:
            yield
    for term in constraints.anti_affinity:
        if table.attributes.has_label(term.topology_key):
            known, selected = apart.get(term.topology_key), _selected(table, term)
            apart[term.topology_key] = selected if known is None else known | selected
            yield
    hidden = [table.index.slots[uid] for uid in overlooked if uid in table.index.slots]
    domains = (
        _domains(table, table.attributes.labels(key), _without(table, mask, hidden)) for key, mask in apart.items()
    )
    occupied = tuple(each for each in domains if each.counts.any())
    if not occupied and not constraints.affinity and not constraints.spread:
        return None
    affinity = (yield from _affinity_steps(table, pod, hidden)) if constraints.affinity else None
    spread = (yield from _all_spreading_steps(table, pod, hidden)) if constraints.spread else ()
    return Demands(occupied, affinity, spread)


def keeps_apart(pod: Pod, other: Pod) -> frozenset[str]:
    """Returns the topology keys whose domains two pods must not share. Both pods must be judged."""
    pairs = ((pod, other), (other, pod))
    return frozenset(
        term.topology_key for one, two in pairs for term in one.constraints.anti_affinity if _selects(term, two)
    )


def is_mate(pod: Pod, other: Pod) -> bool:
    """Whether another pod is one that the pod's required affinity asks for."""
    return all(_selects(term, other) for term in pod.constraints.affinity)


def is_counted(pod: Pod, rule: Spread, other: Pod) -> bool:
    """Whether another pod is one that a pod's constraint of spreading counts."""
    return pod.namespace == other.namespace and matches(_narrowed(rule.selector), other.labels)


def _affinity_steps(table: NodeTable, pod: Pod, hidden: list[int]) -> Steps[Affinity]:
    terms = pod.constraints.affinity
    mates = _selected(table, terms[0])
    for term in terms[1:]:
        yield
        mates &= _selected(table, term)
    mates = _without(table, mates, hidden)
    standing = mates & table.index.stands[: table.index.size]
    expected = mates & ~standing
    topologies = [table.attributes.labels(term.topology_key) for term in terms]
    return Affinity(
        standing=tuple(_domains(table, values, standing) for values in topologies),
        expected=tuple(_domains(table, values, expected) for values in topologies),
        first=is_mate(pod, pod),
    )


def _all_spreading_steps(table: NodeTable, pod: Pod, hidden: list[int]) -> Steps[tuple[Spreading, ...]]:
    """Returns for each constraint of spreading which pods it counts on which nodes.

    A node counts if it has the topology keys of *all* the pod's constraints. If the rule says so, the pod's node
    affinity must also ask for the node, and the pod must tolerate its taints.
    """
    rules = pod.constraints.spread
    labelled = _all(table.attributes.labels(key).codes >= 0 for key in {rule.topology_key for rule in rules})
    affine, tolerates = matching_affinity(table, pod.constraints), tolerated(table, pod.constraints.tolerations)
    everywhere = np.ones(len(labelled), np.bool_)
    found = []
    for rule in rules:
        yield
        by_affinity = affine if rule.honor_node_affinity else everywhere
        counting = labelled & by_affinity & (tolerates if rule.honor_taints else everywhere)
        found.append(_spreading(table, pod, rule, counting, hidden))
    return tuple(found)


def _spreading(table: NodeTable, pod: Pod, rule: Spread, counting: Mask, hidden: list[int]) -> Spreading:
    """Counts pods of the same namespace that are not terminating, on the nodes that count."""
    index = table.index
    counted = _without(table, index.selected(_narrowed(rule.selector), (pod.namespace,)), hidden)
    counted &= ~index.terminating[: index.size]
    counted &= np.append(counting, False)[index.rows[: index.size]]
    values = table.attributes.labels(rule.topology_key)
    standing = _domains(table, values, counted & index.stands[: index.size])
    domains = np.flatnonzero(np.bincount(values.codes[counting], minlength=len(values.index)))
    return Spreading(
        rule.max_skew,
        _domains(table, values, counted),
        standing,
        counting,
        domains,
        least=_least(standing, domains),
        too_few=len(domains) < rule.min_domains,
        own=int(matches(rule.selector, pod.labels)),
    )


def _least(standing: Domains, domains: NDArray[np.intp]) -> int:
    return int(standing.counts[domains].min(initial=_NO_LEVEL))


def _narrowed(selector: Selector | None) -> Selector | None:
    """Returns the selector of pods that spreading counts. As in the scheduler, an empty one counts nobody."""
    return selector if selector and selector.requirements else None


def _selects(term: PodTerm, pod: Pod) -> bool:
    return (term.namespaces is None or pod.namespace in term.namespaces) and matches(term.selector, pod.labels)


def _selected(table: NodeTable, term: PodTerm) -> Mask:
    """Returns the pods that a term selects, by slot, as a new mask."""
    return table.index.selected(term.selector, term.namespaces)


def _without(table: NodeTable, pods: Mask, hidden: list[int]) -> Mask:
    """Changes the mask itself: keeps pods on known nodes and drops those that are overlooked."""
    pods[hidden] = False
    pods &= table.index.rows[: table.index.size] >= 0
    return pods


def _domains(table: NodeTable, values: Values, pods: Mask) -> Domains:
    codes = values.codes[table.index.rows[: table.index.size][pods]]
    counts = np.bincount(codes[codes >= 0], minlength=len(values.index) + 1)
    return Domains(values.codes, counts, pods, table.index)


def _all(masks: Iterable[Mask]) -> Mask:
    """Returns where all masks hold, as a new mask."""
    result: Mask = np.logical_and.reduce(list(masks))
    return result
