"""The way in which one pod counts in the ledger, and what a change of it means for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from policy.objects import signature
from policy.objects.resources import Resources, is_lighter

if TYPE_CHECKING:
    from collections.abc import Hashable

EntryKind = Literal["assigned", "granted", "nominated", "held", "in_flight", "pending"]
TAKING = frozenset({"assigned", "granted", "held"})
"""The kinds of entries that take something of their queue; pods of any other kind wait."""


class Entry(NamedTuple):
    """The way in which one pod counts in the ledger: a tuple, as one is made and compared for each answer.

    ``queue`` is empty for a pod in no queue. ``claims``: it waits, and room is kept for what it waits for. Where an
    entry counts a ``number`` of pods that are alike, ``request`` is the sum of their requests. ``owner``: it is
    pending, and an elastic quota guarantees something to its namespace.
    """

    kind: EntryKind
    namespace: str
    request: Resources
    priority: int
    pinned: bool
    queue: str = ""
    claims: bool = False
    number: int = 1
    owner: bool = False

    def times(self, number: int) -> Entry:
        """Returns the entry for so many pods like this one together."""
        if number == 1:
            return self
        return self._replace(request={r: number * amount for r, amount in self.request.items()}, number=number)

    @property
    def of_one(self) -> Resources:
        """The request of each of them."""
        return self.request if self.number == 1 else {r: a // self.number for r, a in self.request.items()}


def key_of(entry: Entry) -> Hashable:
    """Returns a key that is equal for entries that count alike."""
    kind, namespace, request, *rest = entry
    return kind, namespace, signature.of_part(request), *rest


def asked_by(entry: Entry | None) -> tuple[str, str, Resources] | None:
    """Returns queue, namespace and request of a pod that takes or claims something. Admitting changes none of them."""
    if entry is None or not (entry.kind in TAKING or (entry.claims and entry.queue)):
        return None
    return entry.queue, entry.namespace, entry.request


def weight_of(entry: Entry | None) -> int:
    """Returns how much a pod keeps from others, in steps: 2 if it has taken something, 1 if it has a claim, else 0."""
    if entry is None:
        return 0
    return 2 if entry.kind in TAKING else 1 if entry.claims else 0


def may_ease(before: Entry, after: Entry) -> bool:
    """Whether a pod that changes from ``before`` to ``after`` may leave room that it did not leave before."""
    if before.kind == "pending":
        return False
    lighter = is_lighter(after.request, before.request)
    evictable = before.pinned and not after.pinned
    waits = ("nominated", "held", "pending")
    yields = after.kind in waits and (before.kind not in waits or after.priority < before.priority)
    yields = yields or (before.kind == "held" and after.kind == "nominated")
    yields = yields or after.kind == "pending"
    return lighter or evictable or yields
