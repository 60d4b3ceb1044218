"""The pods that demand something of other pods: how much of that is judged, and which terms keep a pod away.

Pods of a namespace with the same demands are one *kind*. All kinds of a namespace share a budget of steps. The newest
kinds beyond it are not judged (their pods are undecidable), so that no other namespace pays for them. Terms of
anti-affinity are found by the namespace and the labels that they name. So a pod is compared only with terms that may
select it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from policy.objects.constraints import PodTerm, Spread, excess, matches, steps
from policy.objects.pod import Pod
from policy.objects.resources import add, subtract

MOST_IN_NAMESPACE = 10_000
"""The most steps (policy.objects.constraints) for all kinds of a namespace: about a thousand applications."""
REACHING = 10
"""The factor for a term of anti-affinity that names other namespaces, as their pods have to be asked."""

_Demands = tuple[str, tuple[PodTerm, ...], tuple[PodTerm, ...], tuple[Spread, ...]]
_Label = tuple[str, str | None]


@dataclass(slots=True, eq=False)
class DemandKind:
    """Pods of a namespace with the same demands: those that wait, and those that stand or are expected somewhere.

    ``since`` orders kinds by the oldest pod that each has had while it was there. ``judged``: the namespace's budget
    has room for it.
    """

    demands: _Demands
    cost: int
    since: tuple[float, str]
    waiting: set[str] = field(default_factory=set)
    placed: dict[str, None] = field(default_factory=dict)
    judged: bool = False

    @property
    def apart(self) -> tuple[PodTerm, ...]:
        """The terms of anti-affinity."""
        return self.demands[2]


@dataclass(slots=True)
class _Namespace:
    """The kinds of a namespace by age, how many of the oldest are judged, and the steps that these take."""

    kinds: list[DemandKind] = field(default_factory=list)
    judged: int = 0
    cost: int = 0

    def place_of(self, kind: DemandKind) -> int:
        """Returns the index where a kind stands, or would stand, by its age."""
        at = bisect_left(self.kinds, kind.since, key=lambda each: each.since)
        while at < len(self.kinds) and self.kinds[at].since == kind.since and self.kinds[at] is not kind:
            at += 1
        return at


@dataclass(slots=True)
class _Terms:
    """Terms about one namespace (or all), each with the kinds that have it, by a label that they ask for.

    A value of None: they ask only for the key. ``others`` ask for no label. ``keys`` counts all keys that they ask for.
    """

    by_label: dict[_Label, dict[PodTerm, dict[DemandKind, None]]] = field(default_factory=dict)
    others: dict[PodTerm, dict[DemandKind, None]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)

    def about(self, pod: Pod) -> Iterator[tuple[PodTerm, Iterable[DemandKind]]]:
        """Yields the terms that may select a pod."""
        yield from self.others.items()
        if self.by_label:
            for key, value in pod.labels.items():
                yield from self.by_label.get((key, value), {}).items()
                yield from self.by_label.get((key, None), {}).items()


class Demanding:
    """The pods that demand something of other pods, in all namespaces."""

    def __init__(self) -> None:
        """Begins without pods."""
        self._kinds: dict[_Demands, DemandKind] = {}
        self._waiting: dict[str, DemandKind] = {}
        self._placed: dict[str, DemandKind] = {}
        self._excessive: dict[str, dict[str, None]] = {}
        self._excess_of: dict[str, str] = {}
        self._namespaces: dict[str, _Namespace] = {}
        self._terms: dict[str | None, _Terms] = {}

    def wait(self, pod: Pod) -> bool:
        """Notes that a pod waits; returns whether the set of judged kinds has changed."""
        self._note_excess(pod)
        kind = self._waiting.get(pod.uid)
        demands = _demands(pod)
        if demands == (kind.demands if kind is not None else None):
            return False
        changed = self._leave_kind(pod.uid)
        if demands is None:
            return changed
        kind, changes = self._kind(demands, pod)
        kind.waiting.add(pod.uid)
        self._waiting[pod.uid] = kind
        return changes or changed

    def wait_no_more(self, uid: str) -> bool:
        """Notes that a pod no longer waits, if it did; returns whether the set of judged kinds has changed."""
        self._forget_excess(uid)
        return self._leave_kind(uid)

    def _note_excess(self, pod: Pod) -> None:
        if not excess(pod.constraints):
            self._forget_excess(pod.uid)
        elif pod.uid not in self._excess_of:
            self._excess_of[pod.uid] = pod.namespace
            self._excessive.setdefault(pod.namespace, {})[pod.uid] = None

    def _forget_excess(self, uid: str) -> None:
        namespace = self._excess_of.pop(uid, None)
        if namespace is not None:
            del self._excessive[namespace][uid]
            if not self._excessive[namespace]:
                del self._excessive[namespace]

    def _leave_kind(self, uid: str) -> bool:
        kind = self._waiting.pop(uid, None)
        if kind is None:
            return False
        kind.waiting.discard(uid)
        return self._drop_if_empty(kind)

    def place(self, pod: Pod) -> None:
        """Notes that a pod that was nowhere now stands somewhere or is expected there."""
        demands = _demands(pod)
        if demands is None:
            return
        kind, _ = self._kind(demands, pod)
        kind.placed[pod.uid] = None
        self._placed[pod.uid] = kind
        if len(kind.placed) == 1 and kind.judged:
            self._index(kind)

    def remove(self, uid: str) -> None:
        """Removes a pod that stood or was expected somewhere. Does nothing for any other."""
        kind = self._placed.pop(uid, None)
        if kind is None:
            return
        del kind.placed[uid]
        if not kind.placed and kind.judged:
            self._forget(kind)
        self._drop_if_empty(kind)

    def is_judged(self, pod: Pod) -> bool:
        """Whether what the pod demands of others is judged. An unknown pod's demands are, if the budget has room."""
        demands = _demands(pod)
        if demands is None:
            return True
        kind = self._waiting.get(pod.uid) or self._placed.get(pod.uid)
        if kind is None or kind.demands != demands:
            kind = self._kinds.get(demands)
        if kind is not None:
            return kind.judged
        known = self._namespaces.get(pod.namespace)
        cost = _cost(demands)
        return cost <= MOST_IN_NAMESPACE if known is None else known.cost + cost <= MOST_IN_NAMESPACE

    def keeping_away(self, pod: Pod) -> Iterator[tuple[PodTerm, Iterable[DemandKind]]]:
        """Yields the terms of anti-affinity that select a pod, each with the judged kinds of pods that have it."""
        for namespace in (None, pod.namespace):
            terms = self._terms.get(namespace)
            if terms is not None:
                for term, kinds in terms.about(pod):
                    if matches(term.selector, pod.labels):
                        yield term, kinds

    def may_keep_away(self, namespace: str) -> bool:
        """Whether any pod has a term of anti-affinity about pods of this namespace."""
        return None in self._terms or namespace in self._terms

    def keys_about(self, namespace: str) -> set[str]:
        """Returns the label keys named by terms of anti-affinity that may select pods of this namespace."""
        known = (self._terms[reach].keys for reach in (None, namespace) if reach in self._terms)
        return set(chain.from_iterable(known))

    def unjudged(self) -> dict[str, set[str]]:
        """Returns UIDs by namespace of waiting pods with more demands, alone or with others there, than is judged."""
        found = {namespace: set(uids) for namespace, uids in self._excessive.items()}
        for name, namespace in self._namespaces.items():
            for kind in namespace.kinds[namespace.judged :]:
                if kind.waiting:
                    found.setdefault(name, set()).update(kind.waiting)
        return found

    def _kind(self, demands: _Demands, pod: Pod) -> tuple[DemandKind, bool]:
        """Returns the kind of a new pod, and whether the set of judged kinds has changed."""
        since = pod.created, pod.uid
        kind = self._kinds.get(demands)
        if kind is None:
            kind = self._kinds[demands] = DemandKind(demands, _cost(demands), since)
            return kind, self._enter(kind)
        if since < kind.since:
            moved = self._leave(kind)
            kind.since = since
            return kind, self._enter(kind) or moved
        return kind, False

    def _drop_if_empty(self, kind: DemandKind) -> bool:
        if kind.waiting or kind.placed:
            return False
        del self._kinds[kind.demands]
        return self._leave(kind)

    def _enter(self, kind: DemandKind) -> bool:
        """Inserts a kind by age; returns whether newer ones fell out of the budget for it."""
        namespace = self._namespaces.setdefault(kind.demands[0], _Namespace())
        at = namespace.place_of(kind)
        namespace.kinds.insert(at, kind)
        if at < namespace.judged:
            namespace.judged += 1
            namespace.cost += kind.cost
            self._judge(kind, judged=True)
        return self._balance(namespace)

    def _leave(self, kind: DemandKind) -> bool:
        """Takes a kind out; returns whether newer ones are judged now in its place."""
        name = kind.demands[0]
        namespace = self._namespaces[name]
        at = namespace.place_of(kind)
        del namespace.kinds[at]
        if at < namespace.judged:
            namespace.judged -= 1
            namespace.cost -= kind.cost
            self._judge(kind, judged=False)
        if not namespace.kinds:
            del self._namespaces[name]
        return self._balance(namespace)

    def _balance(self, namespace: _Namespace) -> bool:
        """Judges as many of the oldest kinds as the budget allows; returns whether their number has changed."""
        before = namespace.judged
        while namespace.cost > MOST_IN_NAMESPACE:
            namespace.judged -= 1
            kind = namespace.kinds[namespace.judged]
            namespace.cost -= kind.cost
            self._judge(kind, judged=False)
        while namespace.judged < len(namespace.kinds):
            kind = namespace.kinds[namespace.judged]
            if namespace.cost + kind.cost > MOST_IN_NAMESPACE:
                break
            namespace.judged += 1
            namespace.cost += kind.cost
            self._judge(kind, judged=True)
        return namespace.judged != before

    def _judge(self, kind: DemandKind, *, judged: bool) -> None:
        kind.judged = judged
        if kind.placed:
            (self._index if judged else self._forget)(kind)

    def _index(self, kind: DemandKind) -> None:
        for reach, label, term in _places_of(kind):
            terms = self._terms.setdefault(reach, _Terms())
            holders = terms.others if label is None else terms.by_label.setdefault(label, {})
            holders.setdefault(term, {})[kind] = None
            add(terms.keys, _keys(term))

    def _forget(self, kind: DemandKind) -> None:
        for reach, label, term in _places_of(kind):
            terms = self._terms[reach]
            holders = terms.others if label is None else terms.by_label[label]
            del holders[term][kind]
            subtract(terms.keys, _keys(term))
            if not holders[term]:
                del holders[term]
            if label is not None and not holders:
                del terms.by_label[label]
            if not (terms.others or terms.by_label):
                del self._terms[reach]


def _demands(pod: Pod) -> _Demands | None:
    """Returns what the pod demands of other pods, in its namespace; None for nothing."""
    constraints = pod.constraints
    if not (constraints.affinity or constraints.anti_affinity or constraints.spread):
        return None
    return pod.namespace, constraints.affinity, constraints.anti_affinity, constraints.spread


def _cost(demands: _Demands) -> int:
    namespace, near, apart, spread = demands
    own = frozenset((namespace,))
    of_terms = sum(steps(term) * (1 if term.namespaces == own else REACHING) for term in apart)
    return of_terms + sum(map(steps, near)) + sum(map(steps, spread))


def _keys(term: PodTerm) -> dict[str, int]:
    return dict.fromkeys((each.key for each in term.selector.requirements), 1) if term.selector is not None else {}


def _places_of(kind: DemandKind) -> Iterator[tuple[str | None, _Label | None, PodTerm]]:
    """Yields the namespaces and labels under which the terms of a kind are found, each once."""
    for term in dict.fromkeys(kind.apart):
        if term.selector is None:
            continue
        labels = list(_labels_of(term))
        reaches: Iterable[str | None] = (None,) if term.namespaces is None else term.namespaces
        for reach in reaches:
            for label in labels:
                yield reach, label, term


def _labels_of(term: PodTerm) -> Iterator[_Label | None]:
    """Yields labels of which a pod must have one to be selected by a term; a single None if it needs none."""
    requirements = term.selector.requirements if term.selector is not None else ()
    named = min(
        (each for each in requirements if each.operator == "In"), key=lambda each: len(each.values), default=None
    )
    if named is not None:
        yield from ((named.key, value) for value in set(named.values))
        return
    there = next((each for each in requirements if each.operator == "Exists"), None)
    yield None if there is None else (there.key, None)
