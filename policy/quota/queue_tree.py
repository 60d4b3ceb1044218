"""The tree of queues: which queue stands below which, and which have no place in it.

Each queue names its parent. One that names a queue that does not exist, stands in a circle or too deep is invalid, and
so are all below it. They stand below the root, each for itself, so that what runs in them still counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from policy.objects.queue import ROOT
from policy.quota.closed_queues import shortened

MOST_LEVELS = 8
"""Levels of queues below the root."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The tree in numbers, for whoever goes through all of it: places of queues in the order of their names.

    ``parents`` has the place of each one's parent, -1 for the root. ``families`` are parents with their children, a
    parent before those below it.
    """

    names: list[str]
    parents: list[int]
    families: list[tuple[int, list[int]]]


class QueueTree:
    """Queues by name, each with its parent. There is never a circle in it, in whatever order queues come and go.

    ``invalid`` says of queues that have no place in the tree why. The root is not one of the queues.
    """

    def __init__(self) -> None:
        self._named: dict[str, str] = {}
        self._naming: dict[str, set[str]] = {}
        self._parents: dict[str, str] = {}
        self._children: dict[str, set[str]] = {}
        self.invalid: dict[str, str] = {}
        self._shape: Shape | None = None

    def put(self, name: str, parent: str | None) -> set[str]:
        """Adds a queue, changes the parent that it names, or removes it (None).

        Returns the queues that have another place now, or another above or right below them.
        """
        before = self._named.get(name)
        if name == ROOT or before == parent:
            return set()
        self._shape = None
        if before is not None:
            self._naming[before].discard(name)
            if not self._naming[before]:
                del self._naming[before]
            del self._named[name]
        if parent is not None:
            self._named[name] = parent
            self._naming.setdefault(parent, set()).add(name)
        changed = self.with_all_below(name)
        return changed.union(*(self._place(each) for each in changed)) - {ROOT}

    def parent_of(self, name: str) -> str:
        """Returns the parent of a queue."""
        return self._parents.get(name, ROOT)

    def children_of(self, name: str) -> list[str]:
        """Returns the queues right below one, by name."""
        return sorted(self._children.get(name, ()))

    def inside(self, name: str) -> list[str]:
        """Returns a queue and all queues that stand below it."""
        found = [name]
        for each in found:
            found += self.children_of(each)
        return found

    def has_children(self, name: str) -> bool:
        """Whether there are queues below one. There always may be some below the root."""
        return name == ROOT or name in self._children

    def above(self, name: str) -> Iterator[str]:
        """Yields the queues above one, its parent first, without the root."""
        while (name := self.parent_of(name)) != ROOT:
            yield name

    def with_all_below(self, name: str) -> set[str]:
        """Returns a queue and all that name it as their parent, or one of those, as far down as a tree reaches.

        Queues further down are too deep, whatever becomes of this one.
        """
        found, level = {name}, {name}
        for _ in range(MOST_LEVELS):
            level = {below for each in level for below in self._naming.get(each, ())} - found
            if not level:
                break
            found |= level
        return found

    @property
    def shape(self) -> Shape:
        """The tree as it is now."""
        if self._shape is None:
            names = sorted(self._named)
            places = {name: at for at, name in enumerate(names)} | {ROOT: -1}
            families = [(ROOT, self.children_of(ROOT))]
            for _, children in families:
                families += [(each, self.children_of(each)) for each in children if each in self._children]
            self._shape = Shape(
                names,
                [places[self._parents[name]] for name in names],
                [(places[parent], [places[each] for each in children]) for parent, children in families],
            )
        return self._shape

    def _place(self, name: str) -> set[str]:
        """Places a queue anew, or removes it where it is gone; returns its parents before and now."""
        before = self._parents.pop(name, None)
        if before is not None:
            self._children[before].discard(name)
            if not self._children[before]:
                del self._children[before]
        self.invalid.pop(name, None)
        if name not in self._named:
            return {before} if before is not None else set()
        parent = self._named[name]
        if why := self._why_invalid(name):
            self.invalid[name], parent = why, ROOT
        self._parents[name] = parent
        self._children.setdefault(parent, set()).add(name)
        return {parent} if before is None else {parent, before}

    def _why_invalid(self, name: str) -> str:
        """Returns why the way from a queue to the root does not lead there; empty if it does."""
        way = [name]
        while (parent := self._named[way[-1]]) != ROOT:
            if parent not in self._named:
                return f"there is no Queue {shortened(parent)}, which Queue {way[-1]} names as its parent"
            if parent in way:
                return f"Queue {parent} stands below itself"
            way.append(parent)
            if len(way) > MOST_LEVELS:
                return f"it stands more than {MOST_LEVELS} levels below the root"
        return ""
