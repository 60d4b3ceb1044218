"""A rule that fails: an exception at one of the calls that a question makes, whichever that is.

Every function of the rules may fail when it is called. Those that only keep the books may not: nobody puts right what
they leave undone. Generators do not fail by themselves, but what they call does.
"""

import inspect
import sys
from collections import Counter
from pathlib import Path
from typing import Self

import policy

RULES = Path(policy.__file__).parent
BOOKS = {
    "account",
    "branches",
    "changes",
    "entry",
    "gang_holds",
    "gates",
    "grants",
    "group",
    "helped",
    "ledger",
    "pod",
    "pod_demands",
    "pod_index",
    "quantity",
    "queue_account",
    "queue_ledger",
    "queue_tree",
    "reservation",
    "resources",
    "room",
    "sizes",
    "snapshot",
    "stepwise",
    "table",
    "trial",
    "unschedulable",
    "verdict",
}
"""Modules that keep the books."""
PARTS = {
    "attempts",
    "bounds",
    "capacity",
    "cluster",
    "destinations",
    "gate_admission",
    "groups",
    "in_flight",
    "leaving",
    "pod_states",
    "queue_changes",
    "queueing_hints",
    "reservations",
    "devices",
    "device_pools",
}
"""The cluster and its parts."""
ASKED_OF_CLUSTER = {
    "check",
    "keeps_claim",
    "has_claim",
    "is_governed",
    "is_held_for",
    "is_in_force",
    "is_kept_out",
    "is_reserved",
    "job",
    "members",
    "node_to_empty_for",
    "nodes_held_from",
    "nodes_reserved_from",
    "number_of_members",
    "priority_of_queue",
    "queue_of",
    "uids",
}
"""What of them is a rule; all else keeps the books."""
KEEP_BOOKS = {"changed", "close", "forget", "has_landed", "is_awaited", "let_through", "node_for"}
"""Functions of other modules that keep the books."""


class RuleFailed(Exception):
    """What a failing rule raises."""


class Calls:
    """A context that counts the calls of rules, by name. The call of this name and number (from 1) raises."""

    def __init__(self, name: str = "", number: int = 0) -> None:
        self.number: Counter[str] = Counter()
        self._fails_at = name, number

    def __enter__(self) -> Self:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame, event: str, _: object) -> None:
        if event == "call" and (name := _rule(frame.f_code)):
            self.number[name] += 1
            if (name, self.number[name]) == self._fails_at:
                raise RuleFailed(name)


def _rule(code) -> str:
    """The name of a rule's function; empty for all else."""
    known = _KNOWN.get(code)
    if known is None:
        known = _KNOWN[code] = _name_of_rule(code)
    return known


_KNOWN: dict[object, str] = {}


def _name_of_rule(code) -> str:
    path, names = Path(code.co_filename), code.co_qualname.split(".")  # comprehensions have their function's, too
    if (
        RULES not in path.parents
        or path.stem in BOOKS
        or code.co_flags & inspect.CO_GENERATOR
        or KEEP_BOOKS & set(names)
    ):
        return ""
    if path.stem in PARTS and not ASKED_OF_CLUSTER & set(names):
        return ""
    special = names[-1].startswith("__") and names[-1] != "__init__"
    return "" if special else f"{path.stem}.{code.co_qualname}"
