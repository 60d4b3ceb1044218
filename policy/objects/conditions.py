"""Conditions: what the owner of an object should know about it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about an object that its owner should know; it is there or not."""

    type: str
    reason: str
    message: str
