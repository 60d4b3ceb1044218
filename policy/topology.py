"""What pods demand of each other's places: required (anti-)affinity, and spreading with DoNotSchedule.

Everything is counted by *domain*: the nodes that have the same value of a label, the topology key. ``demands_of``
counts once for a pod; then every node can be asked, by its row, also as if some pods were gone. Sources: the plugins
InterPodAffinity and PodTopologySpread of kube-scheduler 1.37.

A pod that is only expected somewhere counts wherever it can forbid something, and nobody may rely on it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.constraints import PodTerm, Selector, Spread, holds, matches
from policy.node_table import Mask, NodeTable, Placed, Values
from policy.pod import Pod
from policy.suitability import attracting, tolerated

_NO_LEVEL = 2**31 - 1  # where no domain counts


@dataclass(frozen=True, slots=True)
class Domains:
    """How many of some pods each domain holds, and which pod is where (by UID).

    A domain is a number: ``of_row`` has that of each node, -1 for one that lacks the key. ``counts`` is by domain, and
    ends with a zero, which is what -1 finds.
    """

    of_row: NDArray[np.intp]
    counts: NDArray[np.intp]
    of_pod: Mapping[str, int]

    def count(self, row: int, gone: Collection[str]) -> int:
        """How many there are in the domain of a node, without those that are gone."""
        domain = self.of_row[row]
        count = int(self.counts[domain])
        return count - sum(self.of_pod.get(uid) == domain for uid in gone) if count else 0

    def any_left(self, gone: Collection[str]) -> bool:
        """Whether there is one in any domain."""
        return any(uid not in gone for uid in self.of_pod)

    @property
    def labelled(self) -> Mask:
        """The nodes that have the topology key."""
        return self.of_row >= 0

    @property
    def occupied(self) -> Mask:
        """The nodes whose domain holds one."""
        return self.counts[self.of_row] > 0


@dataclass(frozen=True, slots=True)
class Affinity:
    """Required pod affinity: of the pods that match *all* terms, the domains of each term.

    ``first``: the pod matches its own terms, so that it may be the first of its kind.
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

    def allowing(self) -> Mask:
        """Every node that ``allows`` the pod, nobody gone."""
        mates = self._mates(())
        if mates is not None:
            return _all(domains.occupied for domains in mates)
        return _all(domains.labelled for domains in self.standing) & self.first

    def _mates(self, gone: Collection[str]) -> tuple[Domains, ...] | None:
        """Those that the pod must be near to. The first of its kind keeps to others of it that are on their way."""
        if any(domains.any_left(gone) for domains in self.standing):
            return self.standing
        if self.first and any(domains.any_left(gone) for domains in self.expected):
            return self.expected
        return None


@dataclass(frozen=True, slots=True)
class Spreading:
    """One constraint of spreading. ``present`` are all pods that count, ``standing`` those that set the level.

    The level is the least that any of the domains that count holds: ``least`` with nobody gone, 0 for good while there
    are ``too_few`` domains. ``own`` is 1 where the pod itself would be counted.
    """

    max_skew: int
    present: Domains
    standing: Domains
    least: int
    too_few: bool
    own: int

    def allows(self, row: int, gone: Collection[str]) -> bool:
        """Whether the node's domain would not rise above the level by more than the rule allows."""
        if self.present.of_row[row] < 0:
            return False
        return self.present.count(row, gone) + self.own - self._level(gone) <= self.max_skew

    def allowing(self) -> Mask:
        """Every node that ``allows`` the pod, nobody gone."""
        skew = self.present.counts[self.present.of_row] + self.own - self._level(())
        return self.present.labelled & (skew <= self.max_skew)

    def _level(self, gone: Collection[str]) -> int:
        if self.too_few:
            return 0
        lost = Counter(self.standing.of_pod[uid] for uid in gone if uid in self.standing.of_pod)
        return min([self.least, *(int(self.standing.counts[domain]) - number for domain, number in lost.items())])


@dataclass(frozen=True, slots=True)
class Demands:
    """All that a pod's place depends on other pods for. ``apart``: pods that it must share no domain with."""

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
        """Leaves of a mask the nodes that they ``allow``, nobody gone."""
        for domains in self.apart:
            mask &= ~domains.occupied
        if self.affinity is not None:
            mask &= self.affinity.allowing()
        for spreading in self.spread:
            mask &= spreading.allowing()


def demands_of(table: NodeTable, pod: Pod, overlooked: Collection[str]) -> Demands | None:
    """What the pod demands of others and others of it; None for nothing. Pods that are overlooked are not there."""
    constraints = pod.constraints
    apart = [
        _domains(table.labels(term.topology_key), _known(holders, overlooked))
        for term, holders in table.kept_away_by(pod.namespace)
        if matches(term.selector, pod.labels)
    ]
    apart += [
        _domains(table.labels(term.topology_key), _selected(table, term, overlooked))
        for term in constraints.anti_affinity
    ]
    apart = [domains for domains in apart if domains.of_pod]
    if not apart and not constraints.affinity and not constraints.spread:
        return None
    return Demands(
        tuple(apart),
        _affinity(table, pod, overlooked) if constraints.affinity else None,
        tuple(_spreading(table, pod, rule, overlooked) for rule in constraints.spread),
    )


def _affinity(table: NodeTable, pod: Pod, overlooked: Collection[str]) -> Affinity:
    terms = pod.constraints.affinity
    mates = [
        each for each in _selected(table, terms[0], overlooked) if all(_selects(term, each.pod) for term in terms[1:])
    ]
    standing, expected = [each for each in mates if each.stands], [each for each in mates if not each.stands]
    topologies = [table.labels(term.topology_key) for term in terms]
    return Affinity(
        standing=tuple(_domains(values, standing) for values in topologies),
        expected=tuple(_domains(values, expected) for values in topologies),
        first=all(_selects(term, pod) for term in terms),
    )


def _spreading(table: NodeTable, pod: Pod, rule: Spread, overlooked: Collection[str]) -> Spreading:
    """Counts pods of the same namespace that are not on their way out, on the nodes that count.

    A node counts if it has the topology keys of *all* the pod's constraints, and, as the rule says, if the pod's node
    affinity asks for it and the pod tolerates its taints.
    """
    counting = _all(table.labels(other.topology_key).codes >= 0 for other in pod.constraints.spread)
    if rule.honor_node_affinity:
        counting &= attracting(table, pod.constraints)
    if rule.honor_taints:
        counting &= tolerated(table, pod.constraints.tolerations)
    fellows = PodTerm(_narrowed(rule.selector), rule.topology_key, frozenset((pod.namespace,)))
    counted = [
        each for each in _selected(table, fellows, overlooked) if counting[each.site.row] and not each.pod.terminating
    ]
    values = table.labels(rule.topology_key)
    present = _domains(values, counted)
    standing = _domains(values, [each for each in counted if each.stands])
    domains = np.unique(values.codes[counting])
    return Spreading(
        rule.max_skew,
        present,
        standing,
        least=int(standing.counts[domains].min(initial=_NO_LEVEL)),
        too_few=len(domains) < rule.min_domains,
        own=int(matches(rule.selector, pod.labels)),
    )


def _narrowed(selector: Selector | None) -> Selector | None:
    """The selector of pods that spreading counts: the scheduler counts nobody for one that selects everybody."""
    return selector if selector and selector.requirements else None


def _selects(term: PodTerm, pod: Pod) -> bool:
    return (term.namespaces is None or pod.namespace in term.namespaces) and matches(term.selector, pod.labels)


def _selected(table: NodeTable, term: PodTerm, overlooked: Collection[str]) -> list[Placed]:
    """The pods that a term selects. One requirement after the other, since the first leaves few for the next."""
    if term.selector is None:
        return []
    left = list(table.in_namespaces(term.namespaces))
    for requirement in term.selector.requirements:
        if requirement.operator == "In":
            key, values = requirement.key, requirement.values
            left = [each for each in left if each.pod.labels.get(key) in values]
        else:
            left = [each for each in left if holds(requirement, each.pod.labels)]
    return _known(left, overlooked)


def _known(pods: Iterable[Placed], overlooked: Collection[str]) -> list[Placed]:
    """Those on nodes that are known, without those that are overlooked."""
    return [each for each in pods if each.site.row >= 0 and each.pod.uid not in overlooked]


def _domains(values: Values, pods: list[Placed]) -> Domains:
    codes = values.codes[[each.site.row for each in pods]].tolist() if pods else []
    of_pod = {each.pod.uid: code for each, code in zip(pods, codes, strict=True) if code >= 0}
    counts = np.bincount(np.fromiter(of_pod.values(), np.intp, len(of_pod)), minlength=len(values.index) + 1)
    return Domains(values.codes, counts, of_pod)


def _all(masks: Iterable[Mask]) -> Mask:
    """Where all masks hold, as a new mask."""
    result: Mask = np.logical_and.reduce(list(masks))
    return result
