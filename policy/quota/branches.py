"""Queues with children, and the root: what all queues below each have taken and claim, kept by differences.

Each queue, whether it has children or not, has its own account for the pods that are in it. Where it has children, a
branch stands above that account and above those below it. A queue without children is a leaf: no branch, one account.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, Union

from policy.objects.queue import ROOT
from policy.objects.resources import Resources, add, largest, replace_part, subtract
from policy.quota.proportion import Division
from policy.quota.queue_tree import QueueTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policy.objects.queue import Queue
    from policy.quota.queue_account import QueueAccount


@dataclass(slots=True, eq=False)
class Branch:
    """A queue with all queues below it.

    ``taken`` and ``in_flight`` are sums over them, as in their accounts. ``over`` is how many of them have more than
    they deserve. ``claims`` is what its children claim, and ``claim`` what it claims itself of its parent. ``queue`` is
    None for a root that no Queue bounds, ``parent`` is None for the root alone.
    """

    queue: Queue | None = None
    parent: Branch | None = None
    level: int = 0
    division: Division = field(default_factory=Division)
    taken: dict[str, int] = field(default_factory=dict)
    in_flight: dict[str, int] = field(default_factory=dict)
    over: int = 0
    claims: dict[str, int] = field(default_factory=dict)
    claim: dict[str, int] = field(default_factory=dict)

    def claim_now(self) -> dict[str, int]:
        """Returns what the claim has to be: what its children claim within its part, and its guarantee in any case."""
        unfilled = unfilled_part(self.division.deserved, self.taken)
        wanted = {r: min(left, self.claims[r]) for r, left in unfilled.items() if r in self.claims}
        return largest(wanted, unfilled_part(self.division.guarantee, self.taken))


Node: TypeAlias = Union["QueueAccount", Branch]
"""A queue as its parent sees it: a leaf's account, or a branch."""


class Branches:
    """The branches by name of queue, the root among them.

    Claims of branches are worked out when they are asked for: ``stale`` are those whose claim may have changed.
    """

    def __init__(self) -> None:
        self.root = Branch(division=Division(known=True))
        self.tree = QueueTree()
        self.by_name: dict[str, Branch] = {ROOT: self.root}
        self.stale: set[Branch] = set()

    def above(self, name: str) -> Branch:
        """Returns the branch that a queue is right below."""
        return self.by_name[self.tree.parent_of(name)]

    def note(self, node: Node) -> None:
        """Notes that something below the branches above a leaf or a branch has changed, and so may their claims."""
        self.stale.update(branches_above(node))

    def note_division(self, branch: Branch) -> None:
        """Notes that a branch has another part, and may have another claim."""
        self.stale.add(branch)
        self.note(branch)

    def settle(self) -> None:
        """Brings the claims of branches up to date, those furthest from the root first."""
        for branch in sorted(self.stale, key=lambda each: -each.level):
            claim_of(branch, branch.claim_now())
        self.stale.clear()

    def withdraw(self, name: str) -> None:
        """Takes the claim of a branch, if there is one of this name, out of what its parent's children claim."""
        if name != ROOT and (branch := self.by_name.get(name)) is not None:
            self.note(branch)
            claim_of(branch, {})

    def put(self, names: Iterable[str], queues: dict[str, Queue | None]) -> None:
        """Puts branches where the tree has them now, or drops those without children. They have been withdrawn."""
        self.root.queue = queues.get(ROOT, self.root.queue)
        for name in sorted(names, key=lambda name: len(list(self.tree.above(name)))):
            if name == ROOT:
                continue
            if not self.tree.has_children(name):
                self.stale.discard(self.by_name.pop(name, self.root))
                continue
            branch = self.by_name.setdefault(name, Branch())
            branch.queue, branch.parent = queues[name], self.above(name)
            branch.level = branch.parent.level + 1
            self.note_division(branch)


def claim_of(node: Node, claim: dict[str, int]) -> None:
    """Replaces the claim of a leaf or a branch, and so a part of what the children of its parent claim."""
    if node.parent is not None:
        replace_part(node.parent.claims, node.claim, claim)
    node.claim = claim


def count(account: QueueAccount, times: int) -> None:
    """Adds the sums of an account to those of the branches above it, without the root (1), or subtracts them (-1)."""
    step = add if times > 0 else subtract
    for branch in account.above:
        step(branch.taken, account.taken)
        step(branch.in_flight, account.in_flight)
        branch.over += times * account.over


def branches_above(node: Node) -> Iterator[Branch]:
    """Yields the branches above a leaf or a branch, its parent first, without the root."""
    branch = node.parent
    while branch is not None and branch.parent is not None:
        yield branch
        branch = branch.parent


def way_up(node: Node) -> Iterator[Node]:
    """Yields a leaf or a branch, and the branches above it, without the root."""
    if node.parent is not None:
        yield node
    yield from branches_above(node)


def unfilled_part(bound: Resources, taken: Resources) -> dict[str, int]:
    """Returns what is left of a bound, by resource; leaves out resources of which nothing is left."""
    return {resource: left for resource, most in bound.items() if (left := most - taken.get(resource, 0)) > 0}
