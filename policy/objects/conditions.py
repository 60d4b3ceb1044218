"""Conditions of an object that its owner should know."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

EXCEEDED = "Exceeded"
"""The type of the condition of a quota or queue of which pods use more than its bound."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about an object that its owner should know. It exists only while it is true."""

    type: str
    reason: str
    message: str


def one_of_each_type(found: Iterable[Condition]) -> list[Condition]:
    """Joins conditions of the same type: an API server refuses a status that has two of them."""
    joined: dict[str, Condition] = {}
    for each in found:
        known = joined.get(each.type)
        joined[each.type] = each if known is None else replace(known, message=f"{known.message}; {each.message}")
    return list(joined.values())
