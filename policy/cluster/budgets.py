"""Pod disruption budgets: which evictions would violate one.

Tenants write budgets, as many and as long as they like. So it does not ask each budget whether it selects a pod. Each
namespace has an index from labels to the budgets that name them. It caches results until a selector changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policy.objects.constraints import Selector
from policy.objects.pod import Pod

MOST_KEPT = 4096
"""Sets of labels in a namespace whose selecting budgets are cached; beyond that, all are dropped."""
MOST_ALLOWED = 2**31
NOBODY = -1
"""The number of labels wanted by a budget that selects no pod: it never equals the number found."""

Label = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget: how many more of the pods it selects may be evicted now.

    ``disrupted`` names the pods whose eviction was allowed already and is not seen yet. ``never``: it will not allow
    any eviction, however healthy its pods are.
    """

    namespace: str
    name: str
    selector: Selector | None
    allowed: int
    disrupted: frozenset[str] = frozenset()
    never: bool = False


class Budgets(Mapping[tuple[str, str], Budget]):
    """All budgets by namespace and name, and which of them protect a pod, as the Eviction API sees it.

    An empty selector selects all pods of the namespace; an absent one none. (In kube-scheduler's own preemption, an
    empty one selects none, and a pod without labels is in no budget.) A pod does not draw on a budget in whose
    ``disrupted`` it is.
    """

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], Budget] = {}
        self._of: dict[str, _Index] = {}

    def __getitem__(self, key: tuple[str, str]) -> Budget:
        return self._all[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def put(self, budget: Budget) -> None:
        """Adds or changes a budget."""
        self._all[budget.namespace, budget.name] = budget
        index = self._of.get(budget.namespace)
        if index is None:
            index = self._of[budget.namespace] = _Index()
        index.put(budget)

    def remove(self, namespace: str, name: str) -> Budget | None:
        """Removes a budget and returns it; None for an unknown one."""
        budget = self._all.pop((namespace, name), None)
        if budget is not None:
            index = self._of[namespace]
            index.remove(budget)
            if not index.slots:
                del self._of[namespace]
        return budget

    def protecting(self, victim: Pod) -> list[Budget]:
        """Returns the budgets that the eviction of a pod would draw on."""
        index = self._of.get(victim.namespace)
        return [] if index is None else index.named(index.selecting(victim))

    def protect(self, victim: Pod) -> bool:
        """Whether the eviction of a pod would draw on any budget. It takes no longer for many budgets than for few."""
        index = self._of.get(victim.namespace)
        return index is not None and bool(index.selecting(victim).any())

    def keeping_for_good(self, victim: Pod) -> list[Budget]:
        """Returns the budgets because of which the Eviction API will never evict a pod.

        If two budgets protect a pod, the API refuses whatever they allow.
        """
        protecting = self.protecting(victim)
        return protecting if len(protecting) > 1 else [budget for budget in protecting if budget.never]

    def violating(self, victims: Iterable[Pod], *, with_exhausted: bool = True) -> set[str]:
        """Returns UIDs of those whose eviction would violate a budget, if evicted in this order, most important first.

        Without ``with_exhausted``, it leaves out budgets that allow no eviction now.
        """
        left = Left(self._of, with_exhausted=with_exhausted)
        return {victim.uid for victim in victims if not left.take(victim)}

    def left(self) -> "Left":
        """Returns what budgets allow now, for evictions to draw on."""
        return Left(self._of, with_exhausted=True)


class Left:
    """The rest of budgets while pods are evicted one after the other. Valid only while no budget changes."""

    def __init__(self, of: Mapping[str, "_Index"], *, with_exhausted: bool) -> None:
        self._of = of
        self._with_exhausted = with_exhausted
        self._left: dict[str, NDArray[np.int64]] = {}

    def take(self, victim: Pod) -> bool:
        """Counts an eviction; returns whether all budgets that protect the pod allow it."""
        index = self._of.get(victim.namespace)
        if index is None:
            return True
        selecting, left = index.selecting(victim), self._of_index(victim.namespace, index)
        left[selecting] -= 1
        return not bool((left[selecting] < 0).any())

    def allows(self, victim: Pod) -> bool:
        """Whether all budgets that protect the pod would allow its eviction."""
        index = self._of.get(victim.namespace)
        if index is None:
            return True
        return not bool((self._of_index(victim.namespace, index)[index.selecting(victim)] < 1).any())

    def _of_index(self, namespace: str, index: "_Index") -> NDArray[np.int64]:
        left = self._left.get(namespace)
        if left is None:
            allowed = index.allowed
            left = allowed.copy() if self._with_exhausted else np.where(allowed > 0, allowed, MOST_ALLOWED)
            self._left[namespace] = left
        return left


@dataclass(slots=True)
class _Said:
    """The slots of the budgets that name a label; ``slots`` has them as an array, None after a change."""

    by: set[int] = field(default_factory=set)
    slots: NDArray[np.intp] | None = None

    def array(self) -> NDArray[np.intp]:
        if self.slots is None:
            self.slots = np.fromiter(self.by, np.intp, len(self.by))
        return self.slots


class _Index:
    """The budgets of a namespace, each in a slot, by the labels that they require and that exclude a pod.

    A budget selects a pod that has all labels it requires, and none that exclude it. A requirement on a key alone has
    the value None.
    """

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.allowed = np.zeros(4, np.int64)
        self._budgets: list[Budget | None] = [None] * 4
        self._free = [3, 2, 1, 0]
        self._wanted = np.full(4, NOBODY, np.int64)
        self._asking: dict[tuple[str, str | None], _Said] = {}
        self._put_off: dict[tuple[str, str | None], _Said] = {}
        self._keys: dict[str, int] = {}
        self._known: dict[tuple[Label, ...], NDArray[np.bool_]] = {}
        self._disrupted: dict[str, set[int]] = {}

    def put(self, budget: Budget) -> None:
        slot = self.slots.get(budget.name)
        if slot is None:
            slot = self.slots[budget.name] = self._free_slot()
        before = self._budgets[slot]
        if before is None or before.selector != budget.selector:
            self._unread(slot, before)
            self._read(slot, budget)
        self._disrupt(slot, before.disrupted if before is not None else frozenset(), budget.disrupted)
        self._budgets[slot] = budget
        self.allowed[slot] = max(-MOST_ALLOWED, min(budget.allowed, MOST_ALLOWED))

    def remove(self, budget: Budget) -> None:
        slot = self.slots.pop(budget.name)
        self._unread(slot, budget)
        self._disrupt(slot, budget.disrupted, frozenset())
        self._budgets[slot] = None
        self._free.append(slot)

    def named(self, selecting: NDArray[np.bool_]) -> list[Budget]:
        return [budget for slot in np.flatnonzero(selecting) if (budget := self._budgets[slot]) is not None]

    def selecting(self, pod: Pod) -> NDArray[np.bool_]:
        """Returns a mask of the slots that protect a pod. The caller must not write to it."""
        labels = tuple([item for item in pod.labels.items() if item[0] in self._keys])
        found = self._known.get(labels)
        if found is None:
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            found = self._known[labels] = self._find(labels)
        if pod.name in self._disrupted:
            found = found.copy()
            found[list(self._disrupted[pod.name])] = False
        return found

    def _find(self, labels: tuple[Label, ...]) -> NDArray[np.bool_]:
        met, put_off = np.zeros_like(self._wanted), np.zeros(len(self._wanted), bool)
        for key, value in labels:
            for label in ((key, value), (key, None)):
                if (said := self._asking.get(label)) is not None:
                    met[said.array()] += 1
                if (said := self._put_off.get(label)) is not None:
                    put_off[said.array()] = True
        selecting: NDArray[np.bool_] = (met == self._wanted) & ~put_off
        return selecting

    def _free_slot(self) -> int:
        if not self._free:
            size = len(self._budgets)
            self._free += range(2 * size - 1, size - 1, -1)
            self._budgets += [None] * size
            self.allowed = np.concatenate((self.allowed, np.zeros(size, np.int64)))
            self._wanted = np.concatenate((self._wanted, np.full(size, NOBODY, np.int64)))
            self._known.clear()
        return self._free.pop()

    def _read(self, slot: int, budget: Budget) -> None:
        """Adds the labels of a selector to the index."""
        self._known.clear()
        terms = _terms(budget.selector)
        if terms is None:
            self._wanted[slot] = NOBODY
            return
        self._wanted[slot] = terms.number
        for labels, said in ((terms.asking, self._asking), (terms.put_off, self._put_off)):
            for label in labels:
                each = said.setdefault(label, _Said())
                each.by.add(slot)
                each.slots = None
        for key in terms.keys:
            self._keys[key] = self._keys.get(key, 0) + 1

    def _unread(self, slot: int, budget: Budget | None) -> None:
        """Takes the labels of a selector out of the index."""
        self._known.clear()
        self._wanted[slot] = NOBODY
        terms = _terms(budget.selector) if budget is not None else None
        if terms is None:
            return
        for labels, said in ((terms.asking, self._asking), (terms.put_off, self._put_off)):
            for label in labels:
                each = said[label]
                each.by.remove(slot)
                each.slots = None
                if not each.by:
                    del said[label]
        for key in terms.keys:
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]

    def _disrupt(self, slot: int, before: frozenset[str], names: frozenset[str]) -> None:
        """Notes the pods whose eviction a budget has allowed already."""
        for name in before - names:
            self._disrupted[name].remove(slot)
            if not self._disrupted[name]:
                del self._disrupted[name]
        for name in names - before:
            self._disrupted.setdefault(name, set()).add(slot)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The terms of a selector: the labels it requires, how many of them a pod must have, and those that exclude a pod.

    Of several values of one key a pod needs only one.
    """

    number: int
    asking: frozenset[tuple[str, str | None]]
    put_off: frozenset[tuple[str, str | None]]

    @property
    def keys(self) -> set[str]:
        return {key for key, _ in self.asking | self.put_off}


def _terms(selector: Selector | None) -> _Terms | None:
    """Returns the terms of a selector; None if it selects no pod, whatever its labels are."""
    if selector is None:
        return None
    one_of, there = dict[str, frozenset[str]](), set[str]()
    put_off = set[tuple[str, str | None]]()
    for requirement in selector.requirements:
        key, values = requirement.key, frozenset(requirement.values)
        match requirement.operator:
            case "In":
                one_of[key] = one_of.get(key, values) & values
            case "Exists":
                there.add(key)
            case "NotIn":
                put_off.update((key, value) for value in values)
            case "DoesNotExist":
                put_off.add((key, None))
            case _:
                return None
    if not all(one_of.values()):
        return None
    asking = {(key, value) for key, values in one_of.items() for value in values} | {(key, None) for key in there}
    return _Terms(len(one_of) + len(there), frozenset(asking), frozenset(put_off))
