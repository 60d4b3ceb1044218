"""The devices that nodes have by DRA: those of the complete pools of the newest generation, by the name that counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from policy.objects.device_selector import holds
from policy.objects.resources import NOTHING, add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policy.objects.device import DeviceClass, DeviceSlice
    from policy.objects.device_selector import Value
    from policy.objects.resources import Resources

Pool = tuple[str, str]
"""Driver and name of a pool."""


class DevicePools:
    """The slices that drivers have published, and the devices of each node.

    ``undecidable`` are the names of devices of which it is not known how many a node has left: their class selects in a
    way that is not judged, devices may be shared, or they are not those of one node.
    """

    def __init__(self) -> None:
        self.slices: dict[str, DeviceSlice] = {}
        self.undecidable: frozenset[str] = frozenset()
        self._pools: dict[Pool, dict[str, DeviceSlice]] = {}
        self._generations: dict[Pool, Counter[tuple[int, int]]] = {}  # by generation, and how many slices it is to have
        self._on_nodes: dict[str, dict[str, DeviceSlice]] = {}
        self._classes: dict[str, tuple[str, DeviceClass]] = {}
        self._counts: dict[str, Resources] = {}
        self._stale: set[str] = set()
        self._of_nodes: dict[str, Resources] = {}
        self._amounts: dict[str, Counter[int]] = {}
        self._shared: dict[str, DeviceSlice] = {}
        self._names_of_shared: Counter[str] = Counter()
        self._unread: frozenset[str] = frozenset()

    def upsert(self, of: DeviceSlice) -> set[str]:
        """Adds or changes a slice. Returns the nodes whose devices may have changed."""
        if self.slices.get(of.name) == of:
            return set()
        touched, before = self.delete(of.name), self._counting(of.pool)
        self.slices[of.name] = self._pools.setdefault(of.pool, {})[of.name] = of
        self._generations.setdefault(of.pool, Counter())[of.generation, of.slices] += 1
        self._on_nodes.setdefault(of.node, {})[of.name] = of
        if of.shared or not of.node:
            self._shared[of.name] = of
            self._count_shared(of, 1)
        return touched | self._touched(of, before)

    def delete(self, name: str) -> set[str]:
        """Removes a slice. Returns the nodes whose devices may have changed; none for an unknown slice."""
        of = self.slices.pop(name, None)
        if of is None:
            return set()
        before = self._counting(of.pool)
        if self._shared.pop(name, None) is not None:
            self._count_shared(of, -1)
        self._counts.pop(name, None)
        del self._pools[of.pool][name], self._on_nodes[of.node][name]
        self._generations[of.pool] -= Counter([(of.generation, of.slices)])
        if not self._pools[of.pool]:
            del self._pools[of.pool], self._generations[of.pool]
        if not self._on_nodes[of.node]:
            del self._on_nodes[of.node]
        return self._touched(of, before)

    def see_classes(self, classes: Mapping[str, tuple[str, DeviceClass]]) -> set[str]:
        """Sees all device classes, each with the name by which its devices count. Returns all nodes with devices."""
        self._classes = dict(classes)
        self._counts.clear()
        self._stale.update(self._on_nodes)
        self._unread = frozenset(name for name, of in classes.values() if of.selects is None)
        self._names_of_shared.clear()
        for each in self._shared.values():
            self._count_shared(each, 1)
        self._note_undecidable()
        return self._on_nodes.keys() - {""}

    def of_node(self, node: str) -> dict[str, int]:
        """Returns how many devices a node has, by the name that counts."""
        counts: dict[str, int] = {}
        for of in self._on_nodes.get(node, {}).values():
            if of.generation == self._counting(of.pool):
                add(counts, self._counts_of(of))
        return counts

    def most_on_a_node(self, name: str) -> int:
        """Returns the largest number of devices of this name that a node has.

        Only nodes are counted again whose devices may have changed since the last time.
        """
        for node in self._stale:
            self._forget_amounts(node)
            if counts := self.of_node(node):
                self._of_nodes[node] = counts
                self._note_amounts(counts, 1)
        self._stale.clear()
        return max(self._amounts.get(name, ()), default=0)

    def _forget_amounts(self, node: str) -> None:
        self._note_amounts(self._of_nodes.pop(node, NOTHING), -1)

    def _note_amounts(self, counts: Resources, times: int) -> None:
        """Notes how many nodes have so many devices of a name."""
        for name, amount in counts.items():
            amounts = self._amounts.setdefault(name, Counter())
            amounts[amount] += times
            if not amounts[amount]:
                del amounts[amount]
            if not amounts:
                del self._amounts[name]

    def _counting(self, pool: Pool) -> int:
        """Returns the newest generation of a pool if all slices of it are there, else -1.

        Slices that do not agree on how many there are make it incomplete, whichever came first: a driver is at work.
        """
        generations = self._generations.get(pool)
        if not generations:
            return -1
        newest = max(generation for generation, _ in generations)
        there = [(slices, number) for (generation, slices), number in generations.items() if generation == newest]
        return newest if len(there) == 1 and there[0][0] == there[0][1] else -1

    def _touched(self, of: DeviceSlice, before: int) -> set[str]:
        """Returns the nodes of a pool if another generation of it counts than before; else that of the slice."""
        self._note_undecidable()
        changed = before != self._counting(of.pool)
        nodes = {each.node for each in self._pools.get(of.pool, {}).values()} if changed else set()
        nodes.add(of.node)
        for node in nodes:
            if node in self._on_nodes:
                self._stale.add(node)
            else:
                self._stale.discard(node)
                self._forget_amounts(node)
        return nodes - {""}

    def _counts_of(self, of: DeviceSlice) -> Resources:
        """Returns how many devices of a slice count by each name: those of a class whose selectors are judged."""
        known = self._counts.get(of.name)
        if known is None:
            known = self._counts[of.name] = {}
            for device in of.devices:
                given = dict(device)
                add(known, dict.fromkeys({name for name, each in self._classes.values() if _is_of(each, given)}, 1))
        return known

    def _note_undecidable(self) -> None:
        self.undecidable = (self._unread if self.slices else frozenset()).union(self._names_of_shared)

    def _count_shared(self, of: DeviceSlice, times: int) -> None:
        """Counts a slice whose devices are shared, by the names of these, so that no other slice is looked at again."""
        for name in self._counts_of(of):
            self._names_of_shared[name] += times
            if not self._names_of_shared[name]:
                del self._names_of_shared[name]


def _is_of(each: DeviceClass, given: Mapping[str, Value]) -> bool:
    return each.selects is not None and holds(each.selects, given)
